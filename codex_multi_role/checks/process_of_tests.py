"""Processes that run tests: with which Python and in which environment."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.checks.contract import CheckContext
from codex_multi_role.checks.interpreter import FROM_OPTION, Interpreter, find_interpreter, inspect
from codex_multi_role.host.redaction import without_secrets


def interpreter_of(context: CheckContext) -> Interpreter:
    """The run's Python, or that of a copy with an environment of its own, such as a setup makes.

    Outside a run, the one that `find_interpreter` finds. Raises UsageError, RunInterrupted.
    """
    root, python = context.workspace.root, context.python
    if python is not None and (python.project == root or python.source == FROM_OPTION):
        return python
    found = find_interpreter(root, context.environment)
    if python is None or found.path.is_relative_to(root):
        found = inspect(found, root, context.environment, context.sandbox, context.stopping)
        if python is None or not found.problem or found.only_unmeasured or python.problem:
            return found
    return python


def cache_in(scratch: Path) -> list[str]:
    """Arguments that keep pytest's cache out of the project; without one, it refuses settings such as ``--ff``."""
    return ["-o", f"cache_dir={scratch}/pytest_cache"]


def environment_of_tests(context: CheckContext, scratch: Path, python: Interpreter) -> dict[str, str]:
    """The run's environment without secrets, with ``python`` activated; temporary files go below ``scratch``."""
    temporary = scratch / "tmp"
    temporary.mkdir()
    environment = python.activate(without_secrets(context.environment))
    return {**environment, "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
