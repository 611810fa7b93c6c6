"""Run the same tests several times to find those whose outcomes differ."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from codex_multi_role.checks.python import NO_TESTS_COLLECTED
from codex_multi_role.checks.suite import Suite, SuiteOutcome


@dataclass(frozen=True)
class Repeated:
    """``flaky``: the outcomes, run by run, of the tests that differ; ``problem``: why there is no result.

    ``bad`` are the tests that failed every time.
    """

    outcomes: tuple[SuiteOutcome, ...]
    flaky: Mapping[str, list[str]]
    bad: tuple[str, ...]
    problem: str = ""
    timed_out: bool = False

    @property
    def last(self) -> SuiteOutcome:
        return self.outcomes[-1]


def repeat(suite: Suite, runs: int, until: float) -> Repeated:
    """Run ``suite`` ``runs`` times, until ``until`` (monotonic). Raises the errors of `Suite.run`."""
    outcomes: list[SuiteOutcome] = []
    for _ in range(runs):
        outcomes.append(suite.run(max(0.0, until - time.monotonic())))
        if problem := _problem(outcomes[-1]):
            return Repeated(tuple(outcomes), {}, (), problem, outcomes[-1].ran.timed_out)
    flaky = _differing(outcomes)
    bad = tuple(test for test in outcomes[-1].bad if test not in flaky)
    return Repeated(tuple(outcomes), flaky, bad)


def _problem(outcome: SuiteOutcome) -> str:
    if outcome.cases is None:
        return f"the tests did not finish: {outcome.problem}"
    if outcome.ran.returncode == NO_TESTS_COLLECTED or not outcome.cases:
        return "pytest found no test"
    if outcome.problem:
        return outcome.problem
    return "" if outcome.complete else f"the tests did not finish: exit code {outcome.ran.returncode}"


def _differing(outcomes: list[SuiteOutcome]) -> dict[str, list[str]]:
    """By test, the outcomes that differ; ``missing`` in the runs that do not report the test."""
    cases = [outcome.cases or {} for outcome in outcomes]
    names = dict.fromkeys(name for each in cases for name in each)
    seen = {name: [each[name].outcome if name in each else "missing" for each in cases] for name in names}
    return {name: results for name, results in seen.items() if len(set(results)) > 1}
