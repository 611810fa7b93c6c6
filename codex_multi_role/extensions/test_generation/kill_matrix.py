"""Find which test kills which mutant: run the tests that can on each mutant, in parallel, until a deadline."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from codex_multi_role.extensions.measuring.suite import INTERRUPTED, MOST_OVERDUE, Suite, SuiteOutcome
from codex_multi_role.extensions.test_generation.mutants import Mutant
from codex_multi_role.extensions.test_generation.warm_suite import TimeLimits, run_warm

SLOWER = 5.0
"""A mutant's tests may take this many times the original's time, because others run at the same time."""
LEAST_SECONDS = 1.0
"""Minimum time limit of a single test, however fast it is on the original."""
START_SECONDS = 5.0
"""Time for Python and the sandbox to start on a busy machine."""


@dataclass
class KillMatrix:
    """``killers``: by mutant id, the tests that kill it; empty for a survivor.

    ``unattributed`` mutants died without naming a test: the interpreter crashed, or only the deadline ended it.
    ``left`` were not judged because time ran out.
    """

    killers: dict[str, list[str]] = field(default_factory=dict)
    unattributed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def killed(self) -> int:
        return sum(bool(tests) for tests in self.killers.values()) + len(self.unattributed)

    @property
    def survived(self) -> list[str]:
        """The ids of the mutants that no test kills."""
        return [each for each, tests in self.killers.items() if not tests and each not in self.unattributed]

    @property
    def score_percent(self) -> float | None:
        """Percentage of killed mutants among the judged ones; None without any."""
        return round(100 * self.killed / len(self.killers), 2) if self.killers else None

    def by_test(self, tests: Sequence[str]) -> dict[str, list[str]]:
        """The mutants that each of ``tests`` kills."""
        return {test: [each for each, killers in self.killers.items() if test in killers] for test in tests}


class Judge:
    """``original`` is the outcome of the tests on the unchanged ``target``; ``without`` are tests not to trust."""

    def __init__(self, suite: Suite, target: str, original: SuiteOutcome, without: Sequence[str] = ()) -> None:
        cases = original.cases or {}
        self.tests = [name for name, case in cases.items() if case.outcome == "passed" and name not in without]
        self._suite, self._target = suite, target
        self._test_seconds = max(LEAST_SECONDS, SLOWER * original.longest_seconds)
        self._seconds = SLOWER * original.ran.seconds + MOST_OVERDUE * self._test_seconds + START_SECONDS

    def matrix(self, mutants: Sequence[Mutant], until: float, concurrency: int, *, is_whole: bool = True) -> KillMatrix:
        """Judge ``mutants``, ``concurrency`` at once, until ``until`` (monotonic). Raises the errors of `Suite.run`.

        Unless it ``is_whole``, one test per killed mutant is enough.

        Those that cannot be judged from a process with loaded tests get one of their own.
        """
        limits = TimeLimits(self._test_seconds, self._seconds, until)
        known = run_warm(self._suite, mutants, limits, concurrency, 0 if is_whole else 1)
        pool = ThreadPoolExecutor(concurrency, thread_name_prefix="mutant")
        try:
            verdicts = list(pool.map(lambda mutant: self._killers(mutant, known.get(mutant.id), until), mutants))
        finally:
            pool.shutdown(cancel_futures=True)  # waits: for tests on mutants, ended by the deadline of each
        judged = {mutant.id: verdict for mutant, verdict in zip(mutants, verdicts, strict=True) if verdict}
        return KillMatrix(
            killers={each: killers for each, (killers, _) in judged.items()},
            unattributed=[each for each, (_, is_named) in judged.items() if not is_named],
            left=[each.id for each in mutants if each.id not in judged],
        )

    def _killers(self, mutant: Mutant, known: SuiteOutcome | None, until: float) -> tuple[list[str], bool] | None:
        """The tests that kill the mutant, and whether they are known; None if no time is left to find out."""
        if known is not None:
            return self._blamed(known)
        left = until - time.monotonic()
        if left <= 0:
            return None
        outcome = self._suite.run(min(left, self._seconds), {self._target: mutant.text}, self._test_seconds)
        if outcome.ran.timed_out:
            return None if left < self._seconds else ([], False)
        return self._blamed(outcome)

    def _blamed(self, outcome: SuiteOutcome) -> tuple[list[str], bool]:
        """Blame the tests that pass on the original and are missing or do not pass here, if they were to run."""
        if outcome.cases is None:
            # pytest's startup imports the target: pytest refuses to run anything (exit code 4), or crashes.
            return (self.tests, True) if outcome.ran.returncode == 4 else ([], False)
        passed = {name for name, case in outcome.cases.items() if case.outcome == "passed"}
        missing_counts = outcome.ran.returncode != INTERRUPTED
        tests = [test for test in self.tests if outcome.selected is None or test in outcome.selected]
        killers = [test for test in tests if test not in passed and (missing_counts or test in outcome.cases)]
        return killers, bool(killers) or outcome.complete
