"""``controller_state.json``: the latest handoff of every role, and all handoffs in order."""

from __future__ import annotations

import json

from codex_multi_role.flow import FlowState
from codex_multi_role.host.atomic import write_json
from codex_multi_role.run_folder import RunFolder, TurnFolder


def write_state(folder: RunFolder, state: FlowState) -> None:
    """Write the file, unless ``state`` is from a replay that was cut short and knows less than the file.

    Raises `StorageError`.
    """
    if len(state.history) < _recorded_entries(folder):
        return
    history = [
        {
            "role": entry.role,
            "turn": entry.turn,
            "handoff": TurnFolder.of(folder, entry.instance, entry.turn).handoff(),
        }
        for entry in state.history
    ]
    latest = {entry["role"]: entry["handoff"] for entry in history}
    record = {"goal": state.goal, "latest_json_by_role": latest, "history": history}
    write_json(folder.state_path, record)


def _recorded_entries(folder: RunFolder) -> int:
    """The length of the history in the file; 0 if it cannot be read."""
    try:
        return len(json.loads(folder.state_path.read_text(encoding="utf-8"))["history"])
    except (OSError, ValueError, LookupError, TypeError):
        return 0
