"""What a run did to the workspace, derived from its folder at any time: states, patches, and taking the result home."""

from codex_multi_role.history.applying import Applied, apply_result
from codex_multi_role.history.recorded import RecordedHistory, Result, recorded_history, result_of
from codex_multi_role.history.states import Change, States

__all__ = [
    "Applied",
    "Change",
    "RecordedHistory",
    "Result",
    "States",
    "apply_result",
    "recorded_history",
    "result_of",
]
