"""What changed from one run of the same tests to another, by their ids. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

FAILED, PASSED = "failed", "passed"
Outcomes = Mapping[str, str]
"""``passed``, ``failed`` or ``skipped`` by the runner's id of the test."""


@dataclass(frozen=True)
class TestChanges:
    """The ids. ``new_failures``: what fails now and did not before, then what passed before and no longer runs.

    ``fixed``: what failed before and passes now; ``removed``: what failed before and no longer runs.
    """

    __test__ = False

    new_failures: tuple[str, ...] = ()
    still_failing: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @classmethod
    def between(cls, before: Outcomes, after: Outcomes, *, same_selection: bool) -> TestChanges:
        """``same_selection``: whether both ran the same tests, so that a missing one counts."""
        failing = {test for test, outcome in after.items() if outcome == FAILED}
        failed = {test for test, outcome in before.items() if outcome == FAILED}
        passed = {test for test, outcome in before.items() if outcome == PASSED}
        silent, vanished = (_vanished(tests, after) if same_selection else set[str]() for tests in (passed, failed))
        return cls(
            new_failures=(*_sorted(failing - failed), *_sorted(silent)),
            still_failing=_sorted(failing & failed),
            fixed=_sorted({test for test in failed if after.get(test) == PASSED}),
            removed=_sorted(vanished),
        )

    def without(self, flaky: Collection[str]) -> TestChanges:
        """The changes if those failures do not count."""
        left = tuple(test for test in self.new_failures if test not in flaky)
        return TestChanges(left, self.still_failing, self.fixed, self.removed)


def _vanished(tests: set[str], after: Outcomes) -> set[str]:
    """Those that did not run."""
    return {test for test in tests if after.get(test) not in (PASSED, FAILED)}


def _sorted(tests: set[str]) -> tuple[str, ...]:
    return tuple(sorted(tests))
