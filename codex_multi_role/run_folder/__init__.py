"""The layout of ``runs/<id>/``, atomic writes, the event log."""

from codex_multi_role.run_folder.events import EventLog, Record, RunEvent
from codex_multi_role.run_folder.folder import RunFolder, list_runs
from codex_multi_role.run_folder.owner import Owner
from codex_multi_role.run_folder.questions import Answer, AskPerson, Question, Questions, answer_of_person
from codex_multi_role.run_folder.redaction import Redactor
from codex_multi_role.run_folder.turns import TurnFolder, close_unfinished, list_turns

__all__ = [
    "Answer",
    "AskPerson",
    "EventLog",
    "Owner",
    "Question",
    "Questions",
    "Record",
    "Redactor",
    "RunEvent",
    "RunFolder",
    "TurnFolder",
    "answer_of_person",
    "close_unfinished",
    "list_runs",
    "list_turns",
]
