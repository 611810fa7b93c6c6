"""What a run did to the workspace, derived from its folder at any time: states, patches, branches, lines, merges."""

from codex_multi_role.history.applying import Applied, apply_result
from codex_multi_role.history.exporting import Exported, export
from codex_multi_role.history.patches import Diff, diff
from codex_multi_role.history.run_history import Result, RunHistory, history_of, result_of
from codex_multi_role.history.workspace_states import Change

__all__ = ["Applied", "Result", "RunHistory", "apply_result", "history_of", "result_of"]
__all__ += ["Change", "Diff", "Exported", "diff", "export"]  # for users of the Python API
