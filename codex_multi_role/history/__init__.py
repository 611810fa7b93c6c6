"""What a run did to the workspace, derived from its folder at any time: states, patches, branches, lines, merges."""

from codex_multi_role.history.applying import Applied, apply_result
from codex_multi_role.history.run_history import Result, RunHistory, history_of, result_of

__all__ = ["Applied", "Result", "RunHistory", "apply_result", "history_of", "result_of"]
