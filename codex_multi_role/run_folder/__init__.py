"""The layout of ``runs/<id>/``, atomic writes, the event log."""

from codex_multi_role.run_folder.events import EventLog, Record, RunEvent
from codex_multi_role.run_folder.folder import RunFolder, list_runs
from codex_multi_role.run_folder.owner import Owner
from codex_multi_role.run_folder.redaction import Redactor
from codex_multi_role.run_folder.turns import TurnFolder, close_unfinished, list_turns

__all__ = [
    "EventLog",
    "Owner",
    "Record",
    "Redactor",
    "RunEvent",
    "RunFolder",
    "TurnFolder",
    "close_unfinished",
    "list_runs",
    "list_turns",
]
