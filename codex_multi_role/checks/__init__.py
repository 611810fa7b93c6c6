"""Checks: work that needs no model, one module each. Others come by entry point ``codex_multi_role.checks``."""

from __future__ import annotations

from codex_multi_role.checks.base import CheckContext, CheckFunction, RunFacts, lasts, longest_seconds
from codex_multi_role.checks.choose import choose_best
from codex_multi_role.checks.command import run_argv
from codex_multi_role.checks.coverage import measure_coverage
from codex_multi_role.checks.flaky import find_flaky
from codex_multi_role.checks.judge_tests import judge_tests
from codex_multi_role.checks.merge import merge_copies
from codex_multi_role.checks.merge_items import merge_items
from codex_multi_role.checks.merge_tests import merge_tests
from codex_multi_role.checks.mutation import judge_mutants
from codex_multi_role.checks.plan import check_plan
from codex_multi_role.checks.prune_tests import prune_tests
from codex_multi_role.checks.python_files import find_python_files
from codex_multi_role.checks.results_file import write_test_results
from codex_multi_role.checks.schema import check_schema
from codex_multi_role.checks.tests import run_tests
from codex_multi_role.checks.text_files import read_file, write_file
from codex_multi_role.registry import Registry

__all__ = [
    "CHECKS",
    "CheckContext",
    "CheckFunction",
    "RunFacts",
    "check_names",
    "find_check",
    "lasts",
    "longest_seconds",
]

CHECKS: dict[str, CheckFunction] = {
    "tests": run_tests,
    "command": run_argv,
    "coverage": measure_coverage,
    "schema": check_schema,
    "plan": check_plan,
    "choose": choose_best,
    "merge": merge_copies,
    "merge_items": merge_items,
    "read_file": read_file,
    "write_file": write_file,
    "python_files": find_python_files,
    "judge_tests": judge_tests,
    "prune_tests": prune_tests,
    "test_results": write_test_results,
    "merge_tests": merge_tests,
    "mutation": judge_mutants,
    "flaky": find_flaky,
}
_REGISTRY = Registry("check", "codex_multi_role.checks", CHECKS)


def check_names() -> list[str]:
    """The names of all checks there are, built in and installed, sorted."""
    return _REGISTRY.names()


def find_check(name: str) -> CheckFunction:
    """The check called ``name``. Raises UsageError for a name that no check has, and for one that does not load."""
    return _REGISTRY.find(name)
