"""What one role of a run is doing."""

from __future__ import annotations

from dataclasses import dataclass

from codex_multi_role.run_folder import states

STARTING, READY, WORKING, REPAIRING, SKIPPED = "starting", "ready", "working", "repairing", "skipped"
ENDED_TASKS = frozenset({states.COMPLETED, states.FAILED, states.SKIPPED})
BUSY = frozenset({WORKING, REPAIRING})


@dataclass
class RoleProgress:
    """One role. ``state``: a constant of this module or, after a turn, its status. Tokens and seconds add up."""

    name: str
    state: str = STARTING
    turn: int = 0
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    working_since: str = ""
    last: str = ""
