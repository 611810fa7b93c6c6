"""A prompt about to be sent: to whom, on which thread, and as which try."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps.turn_result import TurnResult

CURRENT_THREAD = ""
NEW_THREAD = "new"


@dataclass(frozen=True)
class TurnPrompt:
    """A prompt about to be sent. ``visit``: which ask of this role it is; ``step``: how often it
    was continued; ``repair``: 0, or the repair turn's number.

    ``instance`` is the process that takes it. ``thread``: `CURRENT_THREAD` of that process, `NEW_THREAD`, or an id.
    ``opened``: an earlier attempt is on that thread already. ``place`` is the turn's in the journal, ``unit`` the key
    of the unit that asks. ``when_forgotten`` is sent instead where that thread holds nothing of the role's earlier
    turns. ``kept``: what tools kept for the handoff in the turns of this ask before.
    """

    role: RoleSpec
    instance: str
    prompt: str
    when_forgotten: str
    visit: int
    cycle: int
    thread: str = CURRENT_THREAD
    opened: bool = False
    place: int = 0
    repair: int = 0
    repair_of: int | None = None
    unit: str = ""
    step: int = 0
    continues: int | None = None
    kept: Json = field(default_factory=dict)


def repair_of(asked: TurnPrompt, prompt: str, turn: TurnResult) -> TurnPrompt:
    """The prompt that asks once more for what ``turn`` should have answered, on the same thread."""
    after = _after(asked, prompt, turn)
    return replace(after, repair=asked.repair + 1, repair_of=turn.turn, continues=None)


def continued(asked: TurnPrompt, prompt: str, turn: TurnResult) -> TurnPrompt:
    """The prompt that has the role go on with what ``turn`` left unfinished, on the same thread."""
    return replace(_after(asked, prompt, turn), step=asked.step + 1, continues=turn.turn)


def _after(asked: TurnPrompt, prompt: str, turn: TurnResult) -> TurnPrompt:
    thread = CURRENT_THREAD if asked.thread == CURRENT_THREAD else turn.thread_id
    return replace(asked, prompt=prompt, thread=thread, kept=turn.kept)
