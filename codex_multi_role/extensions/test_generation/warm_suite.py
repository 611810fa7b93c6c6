"""Run a suite on many changed texts of its target from a few processes that have collected the tests once.

Each process works in one private copy, in the sandbox (``plugins/codex_multi_role_warm``).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.checks.junit_report import TestCase, junit_name, read_report
from codex_multi_role.extensions.measuring.suite import INTERRUPTED, Suite, SuiteOutcome
from codex_multi_role.extensions.test_generation.mutants import Mutant
from codex_multi_role.workspace import CommandResult

FOLDER = Path(__file__).parent / "plugins"
PLUGIN = ("-p", "codex_multi_role_warm")
FOLDER_VARIABLE, SLOT_VARIABLE = "CODEX_MULTI_ROLE_WARM", "CODEX_MULTI_ROLE_WARM_SLOT"
TARGET_VARIABLE, SECONDS_VARIABLE = "CODEX_MULTI_ROLE_WARM_TARGET", "CODEX_MULTI_ROLE_WARM_SECONDS"
MIN_MUTANTS = 4
"""For fewer, starting a process that first runs all tests twice takes longer than a new process for each."""
MAX_STARTS = 3
"""Times that one process is replaced after a test has ended it or changed files."""
CONCLUSIVE = (0, 1, INTERRUPTED)


@dataclass(frozen=True)
class TimeLimits:
    """Seconds for a single test and for all of them; ``until``, on the monotonic clock, ends everything."""

    test_seconds: float
    seconds: float
    until: float


def run_warm(
    suite: Suite, mutants: Sequence[Mutant], limits: TimeLimits, slots: int, maxfail: int = 0
) -> dict[str, SuiteOutcome]:
    """The outcomes by id, each of the tests that the mutant can affect, judged by ``slots`` processes at once.

    Only the tests until ``maxfail`` of them have failed run on a mutant (0: all).
    A mutant without an outcome must be judged by `Suite.run`: a new process could come to another one, or time ran
    out. Raises the errors of `Suite.run`.
    """
    if sys.platform != "linux" or len(mutants) < MIN_MUTANTS:
        return {}
    shared = suite.scratch / "warm"
    (shared / "outcomes").mkdir(parents=True)
    given = {"seconds": limits.seconds, "maxfail": maxfail}
    jobs = ({"id": each.id, "text": each.text, "lines": [*each.lines], **given} for each in mutants)
    (shared / "jobs").write_text("".join(f"{json.dumps(job)}\n" for job in jobs))
    (shared / "claimed").write_text("0")
    pool = ThreadPoolExecutor(slots, thread_name_prefix="warm-suite")
    try:
        list(pool.map(lambda _: _serve(suite, shared, limits), range(slots)))
    finally:
        pool.shutdown(cancel_futures=True)  # waits: for processes, ended by the deadline of all
    outcomes = {each.id: _outcome(shared / "outcomes" / f"{each.id}.json") for each in mutants}
    return {name: outcome for name, outcome in outcomes.items() if outcome}


def _serve(suite: Suite, shared: Path, limits: TimeLimits) -> None:
    for _ in range(MAX_STARTS):
        waiting, left = _waiting(shared), limits.until - time.monotonic()
        if not waiting or left <= 0:
            return
        with suite.prepared(limits.test_seconds) as copy:
            variables = {
                "PYTHONPATH": f"{FOLDER}:{copy.environment['PYTHONPATH']}",
                FOLDER_VARIABLE: str(shared),
                SLOT_VARIABLE: str(copy.folder),
                TARGET_VARIABLE: str(copy.root / suite.target),
                SECONDS_VARIABLE: str(limits.seconds),
                "COVERAGE_CORE": "ctrace",  # others record a line only once, even if more tests reach it
            }
            suite.run_copy(copy, PLUGIN, left, variables, suite.scratch)
        if _waiting(shared) == waiting:
            return


def _waiting(shared: Path) -> int:
    """The size of the jobs that no process has claimed, in bytes; 0 if tests have overwritten what tells."""
    try:
        return (shared / "jobs").stat().st_size - int((shared / "claimed").read_text())
    except (OSError, ValueError):
        return 0


def _outcome(answer: Path) -> SuiteOutcome | None:
    """The outcome that tests left, who may have written anything there; None if it is inconclusive."""
    try:
        told = json.loads(read_report(answer))
        selected = frozenset(junit_name(str(each)) for each in told["tests"])
        passed = {junit_name(test): is_passed is True for test, is_passed in told["passed"].items()}
        ran = CommandResult(int(told["code"]), "", timed_out=False, seconds=0.0, truncated=False)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    if ran.returncode not in CONCLUSIVE or not passed.keys() <= selected:
        return None
    cases = {test: TestCase("passed" if is_passed else "failed", 0.0) for test, is_passed in passed.items()}
    return SuiteOutcome(ran, cases, selected=selected)
