"""Checks: work that needs no model, one module each. Others come by entry point ``codex_multi_role.checks``."""

from __future__ import annotations

from codex_multi_role.checks.base import CheckContext, CheckFunction, lasts, longest_seconds
from codex_multi_role.checks.choose import choose_best
from codex_multi_role.checks.command import run_argv
from codex_multi_role.checks.coverage import measure_coverage
from codex_multi_role.checks.merge import merge_copies
from codex_multi_role.checks.schema import check_schema
from codex_multi_role.checks.tests import run_tests
from codex_multi_role.registry import Registry

__all__ = ["CHECKS", "CheckContext", "CheckFunction", "check_names", "find_check", "lasts", "longest_seconds"]

CHECKS: dict[str, CheckFunction] = {
    "tests": run_tests,
    "command": run_argv,
    "coverage": measure_coverage,
    "schema": check_schema,
    "choose": choose_best,
    "merge": merge_copies,
}
_REGISTRY = Registry("check", "codex_multi_role.checks", CHECKS)


def check_names() -> list[str]:
    """The names of all checks there are, built in and installed, sorted."""
    return _REGISTRY.names()


def find_check(name: str) -> CheckFunction:
    """The check called ``name``. Raises UsageError for a name that no check has, and for one that does not load."""
    return _REGISTRY.find(name)
