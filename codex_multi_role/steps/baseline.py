"""The project's tests before the first turn, and what a later result says beside them.

Old failures do not count: a result is judged by what changed since the run began.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock

from codex_multi_role.checks.test_changes import FAILED, PASSED, Outcomes, TestChanges
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder

NOT_MEASURED = "the tests did not run before the first turn"
INTERRUPTED = 2
"""Pytest's exit code if a module could not be imported, among others: the other tests did not run."""
KINDS = ("new_failures", "still_failing", "fixed", "removed", "flaky")
OF_BASELINE = frozenset({*KINDS, *(f"{kind}_tests" for kind in KINDS)})
"""The fields that a result has beside a baseline, and that are empty in most."""
BESIDE_BASELINE = ("verdict", *KINDS, "without_baseline")
UNJUDGED = ("timed out", "could not run")


@dataclass(frozen=True)
class Baseline:
    """``folder`` has the result of the tests as they were; ``pytest_cmd``: how they were started, empty for pytest.

    ``workspace``: where they ran; empty for copies of it. ``require_sandbox`` waits until the sandbox of the tests has
    worked once, and raises if it does not.
    """

    folder: Path
    workspace: Path | None = None
    pytest_cmd: str = ""
    require_sandbox: Callable[[], object] = lambda: None
    lock: Lock = field(default_factory=Lock)

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
    def outcomes(self) -> Outcomes:
        """Of each test by its id; empty if nothing can be compared with them."""
        return {} if self.problem else outcomes_in(self.folder)

    @property
    def failing(self) -> set[str]:
        return {test for test, outcome in self.outcomes.items() if outcome == FAILED}

    @cached_property
    def problem(self) -> str:
        """Why nothing can be compared with the tests as they were; empty if it can."""
        result = self._result
        if not result:
            return NOT_MEASURED
        if result["status"] not in ("passed", "failed"):
            return f"before the first turn, the tests ended so: {result['status']} {result['reason']}".strip()
        if result["exit_code"] == INTERRUPTED:
            return "before the first turn, pytest was interrupted: some tests could not be collected"
        return ""

    def judge(self, folder: Path, result: Json, pytest_cmd: str, look_again: Callable[[], Outcomes]) -> Json:
        """What ``result``, whose report is in ``folder``, says beside the baseline; see `PytestResult`.

        ``look_again`` runs the same command once more: a new failure that is green then does not count.
        """
        if result["status"] in UNJUDGED:
            return {"verdict": result["status"]}
        after = outcomes_in(folder)
        failing = sorted(test for test, outcome in after.items() if outcome == FAILED)
        if self.problem:
            return {"verdict": result["status"], "without_baseline": self.problem, **_listed(new_failures=failing)}
        same = pytest_cmd == self.pytest_cmd
        changes, flaky = TestChanges.between(self.outcomes, after, same_selection=same), list[str]()
        if changes.new_failures:
            again = look_again()
            flaky = [test for test in changes.new_failures if again.get(test) == PASSED]
            changes = changes.without(flaky)
        unexplained = result["status"] == "failed" and not failing
        verdict = "failed" if changes.new_failures or unexplained else "passed" if after else result["status"]
        return {"verdict": verdict, **_listed(**vars(changes), flaky=flaky)}


def outcomes_in(folder: Path) -> Outcomes:
    """Of each test in the report there; empty without a report that can be read."""
    from codex_multi_role.checks.junit_report import parse_outcomes, read_report  # here: after the processes started

    try:
        return parse_outcomes(read_report(folder / "junit.xml"))
    except ValueError:
        return {}


def _listed(**tests: list[str] | tuple[str, ...]) -> Json:
    """For each kind the number of tests, and their ids."""
    return {key: value for kind, ids in tests.items() for key, value in ((kind, len(ids)), (f"{kind}_tests", [*ids]))}


def left_by_runs(run: RunFolder, failing: Collection[str]) -> dict[str, int]:
    """How many of the ``failing`` tests were new failures at the end of an earlier run in this workspace, by its id.

    Each test counts for the latest of these runs.
    """
    left, found = set(failing), dict[str, int]()
    workspace = read_object(run.record_path).get("workspace")
    for other in run.others() if left else ():
        if read_object(other / "run.json").get("workspace") != workspace:
            continue
        if own := left.intersection(_last_result(other).get("new_failures_tests") or ()):
            found[other.name] = len(own)
            left -= own
    return found


def _last_result(run: Path) -> Json:
    results = (read_object(folder / "result.json") for folder in sorted(run.glob("tests/*"), reverse=True))
    return next(filter(None, results), {})
