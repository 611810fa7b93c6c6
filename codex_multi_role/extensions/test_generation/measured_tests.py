"""Measure a set of test modules, and select the fewest tests that reach as much."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from codex_multi_role.checks import CheckContext
from codex_multi_role.extensions.measuring.coverage_report import Reached
from codex_multi_role.extensions.measuring.coverage_run import CoverageRun
from codex_multi_role.extensions.measuring.suite import Repeated, Suite, repeat
from codex_multi_role.extensions.test_generation.kill_matrix import Judge, KillMatrix
from codex_multi_role.extensions.test_generation.mutants import Mutant

NOTHING = Reached(frozenset(), frozenset())


@dataclass(frozen=True)
class SuiteMeasurement:
    """``reached`` and ``kills`` are by test, all parameters of which are one. ``problem``: why there is no result."""

    problem: str = ""
    timed_out: bool = False
    coverage: float | None = None
    reached: Mapping[str, Reached] = field(default_factory=dict)
    kills: Mapping[str, frozenset[str]] = field(default_factory=dict)
    matrix: KillMatrix = field(default_factory=KillMatrix)

    @property
    def reaches(self) -> dict[str, frozenset[Hashable]]:
        """Lines, branches and killed mutants together, by test."""
        return {
            test: frozenset[Hashable]().union(reached.lines, reached.branches, self.kills.get(test, frozenset()))
            for test, reached in self.reached.items()
        }

    def is_kept_by(self, other: SuiteMeasurement) -> bool:
        """Whether ``other`` covers and kills everything that this one does."""
        killed, still = ({*each.matrix.killers} - {*each.matrix.survived} for each in (self, other))
        return (other.coverage or 0.0) >= (self.coverage or 0.0) and killed <= still

    def part(self, tests: Collection[str]) -> dict[str, int]:
        """The figures of ``tests`` alone."""
        mine = [test for test in self.reached if test in tests]
        places = {place for test in mine for place in (*self.reached[test].lines, *self.reached[test].branches)}
        killed = {each for test in mine for each in self.kills.get(test, ())} | {*self.matrix.unattributed}
        return {"tests": len(mine), "reached": len(places), "killed": len(killed)}

    def as_json(self) -> dict[str, object]:
        matrix = self.matrix
        return {
            "coverage": self.coverage,
            "mutants": len(matrix.killers),
            "score_percent": matrix.score_percent,
            "ids": list(matrix.killers),
            "survivors": matrix.survived,
            "matrix": {test: sorted(killed) for test, killed in self.kills.items()},
        }


@dataclass(frozen=True)
class Bench:
    """Measures test modules on ``target`` and its ``mutants``, until ``until`` on the monotonic clock."""

    context: CheckContext
    target: str
    mutants: Sequence[Mutant]
    scratch: Path
    until: float
    concurrency: int

    def repeat(self, files: Mapping[str, str], runs: int) -> Repeated:
        """Run the modules ``files`` that many times. Raises the errors of `Suite.run`."""
        return repeat(Suite(self.context, list(files), self._folder(), self.target, files), runs, self.until)

    def measure(self, files: Mapping[str, str]) -> SuiteMeasurement:
        """Run the modules under coverage.py and on every mutant. Raises the errors of `Suite.run`."""
        run = CoverageRun(self.context, self.target, list(files), self._folder(), files, per_test=True)
        outcome = run.outcome(max(0.0, self.until - time.monotonic()))
        if outcome.status != "passed":
            return SuiteMeasurement(outcome.reason or f"the tests have {outcome.status}", outcome.status == "timed out")
        suite = Suite(self.context, list(files), self._folder(), self.target, files)
        undisturbed = repeat(suite, 1, self.until)
        if undisturbed.problem or undisturbed.bad:
            return SuiteMeasurement(undisturbed.problem or f"{undisturbed.bad[0]} fails", undisturbed.timed_out)
        judge = Judge(suite, self.target, undisturbed.last)
        matrix = judge.matrix(self.mutants, self.until, self.concurrency)
        if matrix.left:
            return SuiteMeasurement(f"{len(matrix.left)} of {len(self.mutants)} mutants were not judged", True)
        kills: dict[str, frozenset[str]] = {}
        for name, killed in matrix.by_test(judge.tests).items():
            unit = name.partition("[")[0]
            kills[unit] = kills.get(unit, frozenset()).union(killed)
        reached = {test: outcome.reached.get(test, NOTHING) for test in units(undisturbed.last.cases or {})}
        return SuiteMeasurement("", False, outcome.measured.percent, reached, kills, matrix)

    def _folder(self) -> Path:
        return Path(mkdtemp(prefix="measure", dir=self.scratch))


def units(names: Iterable[str]) -> list[str]:
    """The test functions behind ``names``, several of which may be parameters of one."""
    return list(dict.fromkeys(name.partition("[")[0] for name in names))


def smallest_cover(reaches: Mapping[str, frozenset[Hashable]]) -> list[str]:
    """The tests to keep, in the order of ``reaches``: together they reach everything that all tests do.

    Greedy: take the test that reaches most of what is missing, the first of equal ones, until nothing is; then remove
    the tests that others made redundant, the last one taken first. The true minimum is not searched for, because that
    takes exponential time.
    """
    missing = frozenset[Hashable]().union(*reaches.values())
    taken: list[str] = []
    while missing:
        best = max(reaches, key=lambda test: len(reaches[test] & missing))
        taken.append(best)
        missing -= reaches[best]
    reached_by = Counter(each for test in taken for each in reaches[test])
    for test in reversed(taken.copy()):
        if all(reached_by[each] > 1 for each in reaches[test]):
            taken.remove(test)
            reached_by.subtract(reaches[test])
    return [test for test in reaches if test in taken]
