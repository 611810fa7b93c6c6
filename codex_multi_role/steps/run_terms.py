"""What the bounds of a run depend on, from its options and the available checks."""

from __future__ import annotations

from collections.abc import Mapping

from codex_multi_role.checks import find_check
from codex_multi_role.flow import Terms


def terms(*, cycles: int, repair_attempts: int, run_tests: bool, test_seconds: float) -> Terms:
    """The terms of a run with these options (`RunOptions`); ``test_seconds`` is the deadline of every check."""

    def check_seconds(name: str, given: Mapping[str, object]) -> float:
        return find_check(name).max_seconds(given, test_seconds)

    return Terms(cycles, repair_attempts, check_seconds, check_seconds("tests", {}) if run_tests else 0.0)
