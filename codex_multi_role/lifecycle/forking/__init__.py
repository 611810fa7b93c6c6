"""A new run with the past of another: prepared from what that run recorded, then worked on like any run."""

from codex_multi_role.lifecycle.forking.prepare import prepare_fork, prepare_restart

__all__ = ["prepare_fork", "prepare_restart"]
