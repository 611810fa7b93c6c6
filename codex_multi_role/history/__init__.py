"""What a run did to the workspace, derived from its folder at any time: states, patches, and taking the result home."""

from codex_multi_role.history.applying import Applied, apply_result
from codex_multi_role.history.run_history import Result, RunHistory, history_of, result_of
from codex_multi_role.history.workspace_states import Change, WorkspaceStates

__all__ = [
    "Applied",
    "Change",
    "Result",
    "RunHistory",
    "WorkspaceStates",
    "apply_result",
    "history_of",
    "result_of",
]
