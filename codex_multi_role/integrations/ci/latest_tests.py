"""The latest tests of a run, test by test, with the place of each failure in the workspace."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_multi_role.checks.junit_report import read_cases, read_report
from codex_multi_role.integrations.ci.ended import LONGEST_TEXT
from codex_multi_role.presentation.recorded import read_tests
from codex_multi_role.run_folder import RunFolder

if TYPE_CHECKING:
    from junitparser import TestCase as ReportedCase

PASSED, FAILED, ERROR, SKIPPED = "passed", "failed", "error", "skipped"
RED = frozenset({FAILED, ERROR})
NOTHING_TO_TELL = frozenset({"no tests"})
MOST_CASES = 5_000
MOST_PARTS = 20
MOST_PLACES = 100
PLACE = re.compile(r"^(?P<file>[^\s:][^:\n]{0,500}):(?P<line>\d{1,7}): ", re.MULTILINE)


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
        return bool(self.result.get("status") != PASSED)


def latest_tests(folder: RunFolder) -> LatestTests | None:
    """Read the run's last tests; None if it ran none or found none."""
    results = read_tests(folder)
    if not results or results[-1].get("status") in NOTHING_TO_TELL:
        return None
    result = results[-1]
    workspace = Path(str(folder.record().get("workspace", "")))
    cases = _cases(Path(result["folder"]) / "junit.xml", workspace, folder.redact)
    return LatestTests(result["number"], result, cases)


def _cases(report: Path, workspace: Path, redact: Callable[[str], str]) -> list[Case]:
    try:
        return [_case(case, workspace, redact) for case in read_cases(read_report(report))[:MOST_CASES]]
    except ValueError:  # the result says why there is no report
        return []


def _case(case: ReportedCase, workspace: Path, redact: Callable[[str], str]) -> Case:
    from junitparser import Error, Skipped

    classname, name = str(case.classname or ""), str(case.name or "")
    bad = [result for result in case.result if not isinstance(result, Skipped)]
    if not bad:
        message = str(case.result[0].message or "") if case.result else ""
        return Case(classname, name, SKIPPED if case.result else PASSED, _seconds(case), message)
    result = bad[0]
    text = redact(str(result.text or ""))[-LONGEST_TEXT:]  # redacted first: half a secret would not be recognized
    file, line = _place(text, classname or name, workspace)
    outcome = ERROR if isinstance(result, Error) else FAILED
    return Case(classname, name, outcome, _seconds(case), str(result.message or ""), text, file, line)


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
