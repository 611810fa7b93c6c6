"""The project's tests before the first turn, and what a later result says beside them.

Old failures do not count: a result is judged by what changed since the run began.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING

from codex_multi_role.checks.moved_tests import TestSources
from codex_multi_role.checks.test_changes import (
    FAILED,
    GONE,
    PASSED,
    Outcomes,
    TestChanges,
    differing,
    matches,
    unstable_functions,
)
from codex_multi_role.errors import RunInterrupted
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.steps.cancellation_token import CancellationToken

if TYPE_CHECKING:
    from codex_multi_role.checks.session_report import SessionReport

NOT_MEASURED = "the tests did not run before the first change"
KINDS = ("new_failures", "still_failing", "fixed", "removed", "moved", "dropped", "flaky")
OTHER_FIGURES = ("other_counts", "forbidden")
OFTEN_EMPTY = frozenset({*KINDS, *(f"{kind}_tests" for kind in (*KINDS, "forbidden")), "not_seen", *OTHER_FIGURES})
"""The fields that are empty in most results."""
BESIDE_BASELINE = ("verdict", *KINDS, "without_baseline", "not_seen")
NOT_SEEN = "failures of the session itself, such as a coverage threshold, beside failed tests"
UNJUDGED = ("timed out", "could not run")
QUICK_SECONDS = 30.0
"""Tests that take no longer run twice more before one that passed is called broken: each look halves mere chance."""


@dataclass(frozen=True)
class Baseline:
    """``folder`` has the result of the tests as they were; ``pytest_cmd``: how they were started, empty for pytest.

    ``workspace``: where they ran; empty for copies of it. ``require_sandbox`` waits until the sandbox of the tests has
    worked once, and raises if it does not. ``tests``: set if this session measures them, until ``stopping`` is set;
    ``rewinds``: the workspace is not in its present state meanwhile.
    """

    folder: Path
    workspace: Path | None = None
    pytest_cmd: str = ""
    require_sandbox: Callable[[], object] = lambda: None
    lock: Lock = field(default_factory=Lock)
    tests: Future[None] | None = None
    stopping: CancellationToken = field(default_factory=CancellationToken)
    rewinds: bool = False

    def wait(self, stopping: CancellationToken) -> None:
        """Wait until the tests have ended. Raises what they raised, and `RunInterrupted` once ``stopping`` is set."""
        if self.tests is None:
            return
        woken = Event()
        self.tests.add_done_callback(lambda _: woken.set())
        with stopping.calling(woken.set):
            # waits: for the sandbox and one test run, ended by PROBE_SECONDS and --test-seconds, or when stopping
            woken.wait()
        if not self.tests.done():
            raise RunInterrupted
        self.tests.result()  # waits: for nothing: it is done

    def stopped(self) -> Baseline:
        """The baseline for which nobody waits any more: if the tests still run, they end now."""
        self.stopping.set()
        if self.tests is not None:
            self.tests.exception()  # waits: for programs that are being ended
        return replace(self, tests=None)

    @cached_property
    def of_copies(self) -> Baseline:
        """The tests as they were in a copy of the workspace, which can lack what they need there."""
        return Baseline(self.folder / "copies", None, self.pytest_cmd, self.require_sandbox)

    @property
    def is_measured(self) -> bool:
        return bool(self._result)

    @property
    def _result(self) -> Json:
        """Empty if it is missing or incomplete."""
        return read_object(self.folder / "result.json")

    @cached_property
    def report(self) -> SessionReport:
        """Empty without tests that ran."""
        return report_in(self.folder)

    @property
    def failing(self) -> set[str]:
        return {test for test, outcome in self.report.tests.items() if outcome == FAILED}

    @cached_property
    def problem(self) -> str:
        """Why nothing can be compared with the tests as they were; empty if it can."""
        if not (result := self._result):
            return NOT_MEASURED
        if result["status"] not in UNJUDGED and self.report.tests:
            return ""
        return f"before the first change, the tests ended so: {result['status']} {result['reason']}".strip()

    def judge(
        self,
        folder: Path,
        result: Json,
        pytest_cmd: str,
        look_again: Callable[[], SessionReport],
        sources: Callable[[SessionReport], TestSources],
        same_files: Collection[SessionReport] = (),
    ) -> Json:
        """What ``result``, whose report is in ``folder``, says beside the baseline; see `PytestResult`.

        ``look_again`` runs the same command once more; ``same_files``: earlier runs on the same files. What is
        green there does not count. ``sources``: the test functions before the first turn and now.
        """
        if result["status"] in UNJUDGED:
            return {"verdict": result["status"]}
        before, after, told = self.report, report_in(folder), dict[str, object]()
        if before.tests and after.is_own != before.is_own:  # only such reports name a test in the same way
            before, after = report_in(self.folder, own=False), report_in(folder, own=False)
        where, same, flaky = sources(after), pytest_cmd == self.pytest_cmd, set[str]()
        if self.problem:
            changes = TestChanges(new_failures=_failing(after.outcomes), removed=tuple(where.gone()))
            told["without_baseline"] = self.problem
        else:
            changes, told["not_seen"] = _compared(before, after, same_selection=same)
            if changes.new_failures or any("[" in test for test in changes.removed):
                again = look_again()
                unstable = unstable_functions(after.tests, again.tests)
                before, after, again = (each.grouped(unstable) for each in (before, after, again))
                changes, told["not_seen"] = _compared(before, after, same_selection=same)
                flaky = differing(after.outcomes, [each.outcomes for each in (again, *same_files)])
                broken = differing(after.tests, [before.tests]).intersection(changes.new_failures) - flaky
                if broken and result["seconds"] <= QUICK_SECONDS:
                    flaky |= differing(after.outcomes, [look_again().grouped(unstable).outcomes])
            if not after.tests and not changes.removed:
                changes = replace(changes, removed=tuple(where.gone_files()))
        moved = where.moved(changes.removed, before.tests, after.tests)
        changes = changes.without({*flaky, *moved})
        told |= {"lacks": dict(after.lacks), **_listed(**vars(changes), moved=sorted(moved), flaky=sorted(flaky))}
        return {"verdict": _verdict(changes, result, after), **told}


def confirmed(result: Json, allowed: Collection[str]) -> Json:
    """``result`` if the tests that match the globs ``allowed`` may be gone."""
    if result.get("verdict") != GONE or not all(matches(test, allowed) for test in result["removed_tests"]):
        return result
    has_tests = any(map(result.get, ("passed", "skipped", "other_counts")))
    return {**result, "verdict": PASSED if has_tests else result["status"]}


def report_in(folder: Path, *, own: bool = True) -> SessionReport:
    """What the tests with their artifacts in ``folder`` said."""
    from codex_multi_role.checks.session_report import SessionReport  # here: after the processes started

    code = read_object(folder / "result.json").get("exit_code")
    return SessionReport.read(folder, code, own=own)


def _compared(before: SessionReport, after: SessionReport, *, same_selection: bool) -> tuple[TestChanges, str]:
    """The changes, and what is not seen: what did not run, and what only one of the sessions says of itself."""
    unseen = set[str]()
    if after.cut_short and after.tests and before.limit == after.limit:
        unseen = {test for test, outcome in before.tests.items() if test not in after.tests and outcome == PASSED}
    either = before.session.keys() ^ after.session.keys()
    is_seen = after.session and (not either or PASSED in after.session.values())
    texts = [f"pytest stopped early ({after.limit}): {len(unseen)} tests did not run"] if unseen else []
    texts += [NOT_SEEN] if after.tests and not is_seen else []
    one, other = ({t: o for t, o in each.outcomes.items() if t not in either} for each in (before, after))
    if before.cut_short:  # what did not run then may have failed as well
        other = {test: outcome for test, outcome in other.items() if test in one or outcome != FAILED}
    return TestChanges.between(one, other, same_selection=same_selection).without(unseen), "; ".join(texts)


def _failing(outcomes: Outcomes) -> tuple[str, ...]:
    return tuple(sorted(test for test, outcome in outcomes.items() if outcome == FAILED))


def _verdict(changes: TestChanges, result: Json, after: SessionReport) -> str:
    if changes.new_failures:
        return FAILED
    if changes.removed:
        return GONE
    is_explained = bool(_failing(after.outcomes))
    if result["status"] == FAILED and not is_explained:
        return FAILED
    return PASSED if after.tests else str(result["status"])


def _listed(**tests: list[str] | tuple[str, ...]) -> Json:
    """For each kind the number of tests, and their ids."""
    return {key: value for kind, ids in tests.items() for key, value in ((kind, len(ids)), (f"{kind}_tests", [*ids]))}


def left_by_runs(run: RunFolder, failing: Collection[str]) -> dict[str, int]:
    """How many of the ``failing`` tests were new failures at the end of an earlier run in this workspace, by its id.

    Each test counts for the latest of these runs.
    """
    left, found = set(failing), dict[str, int]()
    for other in _others_here(run) if left else ():
        if own := left.intersection(_last_result(other).get("new_failures_tests") or ()):
            found[other.name] = len(own)
            left -= own
    return found


def last_seconds(run: RunFolder) -> float:
    """How long the tests took before the latest earlier run that measured them in this workspace; 0.0 if none did."""
    results = (read_object(other / "baseline/result.json") for other in _others_here(run))
    return next((float(result["seconds"]) for result in results if result), 0.0)


def _others_here(run: RunFolder) -> Iterator[Path]:
    """The other runs for the same workspace, also those in a worktree of it, the latest first."""

    def place(folder: Path) -> object:
        record = read_object(folder / "run.json")
        return record.get("source_workspace") or record.get("workspace")

    own = place(run.path)
    return (other for other in run.others() if place(other) == own)


def _last_result(run: Path) -> Json:
    results = (read_object(folder / "result.json") for folder in sorted(run.glob("tests/*"), reverse=True))
    return next(filter(None, results), {})
