"""What reports on a run contain: how it ended, or that none began, and its latest tests, test by test."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from junitparser import Error, Skipped

from codex_multi_role.checks.junit_report import read_cases, read_report, test_id
from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import OUTCOMES, exit_in_words, next_command, outcome_in_words
from codex_multi_role.presentation.recorded import read_tests
from codex_multi_role.presentation.wording import judged, one_line
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunReport

if TYPE_CHECKING:
    from junitparser import TestCase as ReportedCase

LONGEST_TEXT = 20_000
NOT_STARTED = "No run"
PASSED, FAILED, ERROR, SKIPPED = "passed", "failed", "error", "skipped"
RED = frozenset({FAILED, ERROR})
NOT_COUNTED = {
    "still_failing": "it failed before the run as well, and does not count",
    "flaky": "it passed when it ran again, and does not count",
}
NOTHING_TO_TELL = frozenset({"no tests"})
MOST_CASES = 5_000
MOST_PARTS = 20
MOST_PLACES = 100
PLACE = re.compile(r"^(?P<file>[^\s:][^:\n]{0,500}):(?P<line>\d{1,7}): ", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class RunEvidence:
    """What a run recorded, ended or not. ``folder`` is None if no run began; ``redact`` removes secrets."""

    folder: RunFolder | None
    course: Course
    totals: dict[str, float]
    redact: Callable[[str], str] = str

    @cached_property
    def tests(self) -> LatestTests | None:
        """The run's last tests; None if it ran none or found none."""
        return _latest_tests(self.folder) if self.folder else None

    def line(self, text: object, limit: int = 200) -> str:
        """Apply `one_line` without secrets."""
        return one_line(self.redact(str(text)), limit)


@dataclass(frozen=True, kw_only=True)
class EndedRun(RunEvidence):
    """``outcome`` is in words; ``following``: the command to continue with."""

    exit_code: int
    outcome: str
    reason: str
    hint: str
    following: str

    @classmethod
    def of(cls, report: RunReport, course: Course) -> EndedRun:
        folder = RunFolder(report.folder)
        return cls(
            exit_code=report.exit_code,
            outcome=outcome_in_words(report.outcome),
            reason=report.reason,
            hint=report.hint,
            following=next_command(folder, report.exit_code),
            folder=folder,
            course=course,
            totals=dict(report.totals),
            redact=folder.redact,
        )

    @classmethod
    def without_run(cls, error: CodexMultiRoleError) -> EndedRun:
        """Create it for an ``error`` before, or instead of, the end of a run."""
        return cls(
            exit_code=error.exit_code,
            outcome=NOT_STARTED,
            reason=str(error),
            hint=error.hint,
            following="",
            folder=None,
            course=Course(),
            totals={},
        )

    @property
    def name(self) -> str:
        """The run's id; empty without a run."""
        return self.folder.run_id if self.folder else ""

    @property
    def meaning(self) -> str:
        """``exit code 1: ended without reaching the goal``."""
        return f"exit code {exit_in_words(self.exit_code)}"

    @property
    def is_own_word(self) -> bool:
        """Whether ``outcome`` is one of our words, not a flow's own name for its end."""
        return self.outcome in OUTCOMES.values() or self.outcome == NOT_STARTED

    @property
    def headline(self) -> str:
        """``All cycles are used up: …`` on one line."""
        reason = self.line(self.reason, 500)
        return f"{one_line(self.outcome)}: {reason}" if reason else one_line(self.outcome)

    def next_steps(self) -> Iterator[str]:
        """Yield the hint and the command to continue with."""
        if self.hint:
            yield self.line(self.hint, 2000)
        if self.following:
            yield f"next: {self.following}"


@dataclass(frozen=True)
class Case:
    """One test. ``file``: relative to the workspace, empty if the report has none; ``line``: from 1, or 0.

    The tests wrote all the texts in it.
    """

    __test__ = False

    classname: str
    name: str
    outcome: str
    seconds: float
    message: str = ""
    text: str = ""
    file: str = ""
    line: int = 0

    @property
    def full_name(self) -> str:
        return "::".join(part for part in (self.classname, self.name) if part)


@dataclass(frozen=True)
class LatestTests:
    """``result``: the content of ``result.json``; ``cases``: empty if the tests left no report."""

    number: int
    result: dict[str, Any]
    cases: list[Case]

    @property
    def red(self) -> list[Case]:
        return [case for case in self.cases if case.outcome in RED]

    @property
    def is_red(self) -> bool:
        return judged(self.result) != PASSED


def _latest_tests(folder: RunFolder) -> LatestTests | None:
    results = read_tests(folder)
    if not results or results[-1].get("status") in NOTHING_TO_TELL:
        return None
    result = results[-1]
    workspace = Path(str(folder.record().get("workspace", "")))
    uncounted = {test: NOT_COUNTED[kind] for kind in NOT_COUNTED for test in result.get(f"{kind}_tests") or ()}
    cases = _cases(Path(result["folder"]) / "junit.xml", workspace, folder.redact, uncounted)
    return LatestTests(result["number"], result, cases)


def _cases(report: Path, workspace: Path, redact: Callable[[str], str], uncounted: Mapping[str, str]) -> list[Case]:
    try:
        cases = read_cases(read_report(report))[:MOST_CASES]
        return [_case(case, workspace, redact, uncounted.get(test_id(case), "")) for case in cases]
    except ValueError:  # the result says why there is no report
        return []


def _case(case: ReportedCase, workspace: Path, redact: Callable[[str], str], uncounted: str) -> Case:
    classname, name = str(case.classname or ""), str(case.name or "")
    bad = [result for result in case.result if not isinstance(result, Skipped)]
    if not bad:
        message = str(case.result[0].message or "") if case.result else ""
        return Case(classname, name, SKIPPED if case.result else PASSED, _seconds(case), message)
    result = bad[0]
    text = redact(str(result.text or ""))[-LONGEST_TEXT:]  # redacted first: half a secret would not be recognized
    file, line = _place(text, classname or name, workspace)
    outcome = SKIPPED if uncounted else ERROR if isinstance(result, Error) else FAILED
    message = ": ".join(filter(None, (uncounted, str(result.message or ""))))
    return Case(classname, name, outcome, _seconds(case), message, text, file, line)


def _seconds(case: ReportedCase) -> float:
    return float(case.time or 0)


def _place(text: str, module: str, workspace: Path) -> tuple[str, int]:
    """Find where a test failed: the last traceback place in its own file, else in the workspace, else its file."""
    own = _file_of(module, workspace)
    places = [(match["file"], int(match["line"])) for match in PLACE.finditer(text)][::-1]
    in_own = (place for place in places if place[0] == own)
    inside = (place for place in places[:MOST_PLACES] if _is_inside(place[0], workspace))
    return next(chain(in_own, inside), (own, 0))


def _is_inside(file: str, workspace: Path) -> bool:
    path = Path(file)
    try:
        return not path.is_absolute() and ".." not in path.parts and (workspace / path).is_file()
    except (OSError, ValueError):  # not a valid file name
        return False


def _file_of(module: str, workspace: Path) -> str:
    """Find the file of a module: ``tests/test_a.py`` for ``tests.test_a.TestB``; empty if it does not exist."""
    parts = module.split(".")
    if len(parts) > MOST_PARTS:
        return ""
    names = ("/".join(parts[:count]) + ".py" for count in range(len(parts), 0, -1))
    return next((name for name in names if _is_inside(name, workspace)), "")
