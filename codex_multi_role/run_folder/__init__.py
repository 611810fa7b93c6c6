"""The layout of ``runs/<id>/``, atomic writes, the event log."""

from codex_multi_role.run_folder.event_log import EventLog, event_of, read_events, skim_events
from codex_multi_role.run_folder.events import Record, RunEvent
from codex_multi_role.run_folder.folder import RunFolder, list_runs
from codex_multi_role.run_folder.items import Cancellations
from codex_multi_role.run_folder.owner import Owner
from codex_multi_role.run_folder.past import (
    Beginning,
    beginnings,
    events_with_inherited,
    inherit,
    inherit_turn,
    skim_with_inherited,
)
from codex_multi_role.run_folder.questions import Questions
from codex_multi_role.run_folder.turn_folder import (
    TurnFolder,
    close_unfinished,
    inherited_threads,
    list_turns,
    own_turns,
    started_turns,
    totals_of,
)
from codex_multi_role.run_folder.typed_answers import Answer, AskPerson, Question

__all__ = [
    "Answer",
    "AskPerson",
    "Beginning",
    "Cancellations",
    "EventLog",
    "Owner",
    "Question",
    "Questions",
    "Record",
    "RunEvent",
    "RunFolder",
    "TurnFolder",
    "beginnings",
    "close_unfinished",
    "event_of",
    "events_with_inherited",
    "inherit",
    "inherit_turn",
    "inherited_threads",
    "list_runs",
    "list_turns",
    "own_turns",
    "read_events",
    "skim_events",
    "skim_with_inherited",
    "started_turns",
    "totals_of",
]
