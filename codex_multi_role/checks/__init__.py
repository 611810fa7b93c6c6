"""Checks: work that needs no model, one module each. Others come by entry point ``codex_multi_role.checks``."""

from __future__ import annotations

import difflib
from importlib.metadata import entry_points

from codex_multi_role.checks.base import CheckContext, CheckFunction
from codex_multi_role.checks.choose import choose_best
from codex_multi_role.checks.command import run_argv
from codex_multi_role.checks.merge import merge_copies
from codex_multi_role.checks.schema import check_schema
from codex_multi_role.checks.tests import run_tests
from codex_multi_role.errors import UsageError

__all__ = ["CHECKS", "CheckContext", "CheckFunction", "check_names", "find_check"]

ENTRY_POINT_GROUP = "codex_multi_role.checks"
CHECKS: dict[str, CheckFunction] = {
    "tests": run_tests,
    "command": run_argv,
    "schema": check_schema,
    "choose": choose_best,
    "merge": merge_copies,
}


def check_names() -> list[str]:
    """The names of all checks there are, built in and installed, sorted."""
    return sorted({*CHECKS, *entry_points(group=ENTRY_POINT_GROUP).names})


def find_check(name: str) -> CheckFunction:
    """The check called ``name``; a built-in one wins over an installed one.

    Raises UsageError for a name that no check has, with the nearest one, and for an installed check that does not load.
    """
    if name in CHECKS:
        return CHECKS[name]
    found = entry_points(group=ENTRY_POINT_GROUP, name=name)
    if not found:
        near = difflib.get_close_matches(name, check_names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(check_names())}"
        raise UsageError(f"there is no check called {name!r}", hint)
    entry = next(iter(found))
    try:
        check: CheckFunction = entry.load()
    except Exception as error:
        raise UsageError(f"the check {name!r} ({entry.value}) does not load: {error}", "mend or remove it") from error
    return check
