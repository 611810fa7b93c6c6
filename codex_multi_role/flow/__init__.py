"""What happens next: run state, routing, worst-case bounds. Pure: no I/O, threads or clock."""

from codex_multi_role.flow.answer_ways import AnswerWays, ExpectedAnswer
from codex_multi_role.flow.bounds import WalkBound, WorstCase, walk_bound, worst_case
from codex_multi_role.flow.conditions import may_call
from codex_multi_role.flow.effort import Terms, steps_per_ask
from codex_multi_role.flow.fan_out_items import first_asked, items_of, name_of, needs_of
from codex_multi_role.flow.routing import End, GoTo, after
from codex_multi_role.flow.state import FlowState, HistoryEntry, new_state

__all__ = [
    "AnswerWays",
    "End",
    "ExpectedAnswer",
    "FlowState",
    "GoTo",
    "HistoryEntry",
    "Terms",
    "WalkBound",
    "WorstCase",
    "after",
    "first_asked",
    "items_of",
    "may_call",
    "name_of",
    "needs_of",
    "new_state",
    "steps_per_ask",
    "walk_bound",
    "worst_case",
]
