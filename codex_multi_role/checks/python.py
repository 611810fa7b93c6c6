"""The Python that runs a workspace's tests, and their environment."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.checks.contract import CheckContext
from codex_multi_role.checks.interpreter import Interpreter, find_interpreter, inspect
from codex_multi_role.host.redaction import without_secrets

TESTS_FAILED, NO_TESTS_COLLECTED = 1, 5
"""Exit codes of pytest."""


def interpreter_of(context: CheckContext) -> Interpreter:
    """The run's Python, or outside a run the one that `find_interpreter` finds. Raises UsageError, RunInterrupted."""
    if context.python is not None:
        return context.python
    root = context.workspace.root
    return inspect(find_interpreter(root, context.environment), root, context.environment, context.sandbox)


def cache_in(scratch: Path) -> list[str]:
    """Arguments that keep pytest's cache out of the project; without one, it refuses settings such as ``--ff``."""
    return ["-o", f"cache_dir={scratch}/pytest_cache"]


def environment_of_tests(context: CheckContext, scratch: Path, python: Interpreter) -> dict[str, str]:
    """The run's environment without secrets, with ``python`` activated; temporary files go below ``scratch``."""
    temporary = scratch / "tmp"
    temporary.mkdir()
    environment = python.activate(without_secrets(context.environment))
    return {**environment, "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
