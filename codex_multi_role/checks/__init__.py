"""Checks: work that needs no model, one module each.

Systems and plug-ins add more by entry point ``codex_multi_role.checks``.
"""

from __future__ import annotations

from codex_multi_role.checks.contract import (
    Check,
    CheckContext,
    CheckFunction,
    CheckOptions,
    CheckResult,
    ResultPart,
    RunFacts,
    Settings,
    TimeLeft,
    as_json,
    at_most_own,
    declare_check,
    inside,
    no_time,
)
from codex_multi_role.errors import UsageError
from codex_multi_role.reading.registry import Registry

__all__ = [
    "Check",
    "CheckContext",
    "CheckFunction",
    "CheckOptions",
    "CheckResult",
    "ResultPart",
    "RunFacts",
    "Settings",
    "TimeLeft",
    "as_json",
    "at_most_own",
    "check_names",
    "declare_check",
    "find_check",
    "inside",
    "no_time",
]

CHECKS = {
    "answer": "codex_multi_role.checks.text_files:write_answer",
    "tests": "codex_multi_role.checks.tests:run_tests",
    "command": "codex_multi_role.checks.command:run_argv",
    "schema": "codex_multi_role.checks.json_schema:check_schema",
    "choose": "codex_multi_role.checks.choose:choose_best",
    "merge": "codex_multi_role.checks.merge:merge_copies",
    "merge_items": "codex_multi_role.checks.merge:merge_items",
    "read_file": "codex_multi_role.checks.text_files:read_file",
    "write_file": "codex_multi_role.checks.text_files:write_file",
}
_REGISTRY: Registry[Check] = Registry("check", "codex_multi_role.checks", CHECKS)


def check_names() -> list[str]:
    """Sorted names of all checks, built in and installed."""
    return _REGISTRY.names()


def find_check(name: str) -> Check:
    """The check called ``name``. Raises UsageError if it does not exist or cannot be loaded."""
    found = _REGISTRY.find(name)
    if not isinstance(found, Check):
        raise UsageError(
            f"the check '{name}' is a plain function: nothing says which of its results are bad",
            "Declare it with `@declare_check(result=…)`, whose class has `status` and `bad`.",
        )
    return found
