"""How long the checks and tests of a run can take, for its bounds."""

from __future__ import annotations

from collections.abc import Mapping

from codex_multi_role.checks import find_check
from codex_multi_role.flow import Terms
from codex_multi_role.run_options import RunOptions


def terms(options: RunOptions, cycles: int | None = None) -> Terms:
    """The terms of a run with these options; ``cycles`` overrides theirs. `test_seconds` limits every check."""

    def check_seconds(name: str, given: Mapping[str, object]) -> float:
        return find_check(name).max_seconds(given, options.tests.test_seconds)

    seconds_of_tests = check_seconds("tests", {}) if options.tests.run_tests else 0.0
    baseline = options.tests.test_seconds if options.tests.baseline else 0.0
    return Terms(cycles or options.cycles, options.answers.repair_attempts, check_seconds, seconds_of_tests, baseline)
