"""How a run ends: one value for ``run.json``, the screen and the exit code, and the map from errors to it."""

from __future__ import annotations

from dataclasses import dataclass

from codex_multi_role.errors import CodexMultiRoleError, RunInterrupted


@dataclass(frozen=True)
class Ending:
    """``status``: succeeded, ended (without its goal), failed or interrupted. ``outcome``: the end's own name."""

    status: str
    outcome: str
    reason: str
    exit_code: int
    hint: str = ""


def ending_for(error: BaseException) -> Ending:
    """The ending an error means. What is no error of ours is a bug, and ends a run all the same."""
    if isinstance(error, RunInterrupted | KeyboardInterrupt):
        return Ending("interrupted", "interrupted", "the run was stopped", RunInterrupted.exit_code)
    if isinstance(error, CodexMultiRoleError):
        return Ending("failed", error.reason, str(error), error.exit_code, error.hint)
    return Ending("failed", "internal_error", f"{type(error).__name__}: {error}", CodexMultiRoleError.exit_code)
