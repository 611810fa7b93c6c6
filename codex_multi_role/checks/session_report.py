"""How the tests of one run ended, test by test: from what our plugin saw or, without it, from the JUnit report.

Both were written by a process that ran untrusted tests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, NonNegativeInt

from codex_multi_role.checks.interpreter import TESTS_FAILED
from codex_multi_role.checks.junit_report import TestCounts, parse_outcomes, read_report
from codex_multi_role.checks.test_changes import FAILED, PASSED, Outcomes, grouped

FILE, VARIABLE, PLUGIN = "outcomes.json", "CODEX_MULTI_ROLE_OUTCOMES", "codex_multi_role_outcomes"
OWN_FAILURE, EXIT_STATUS = "the session: a failure beside the tests", "the session: its exit status"
"""Ids of what is red without a failed test: a threshold, a hook. Beside failed tests, only `PLUGIN` sees them."""

MAX_OTHER_COUNTS = 10
"""Plug-ins of pytest give them names of their own."""


class _PluginOutput(BaseModel):
    """What `PLUGIN` writes."""

    outcomes: dict[str, Literal["passed", "failed", "skipped"]]
    lacks: dict[str, str]
    refused: dict[str, Literal["sockets", "files outside the workspace"]]
    counts: dict[str, NonNegativeInt]
    failures: int
    is_red_by_hook: bool
    limit: str
    cut_short: bool
    root: str

    def session(self, exit_code: int | None) -> Outcomes:
        is_explained = self.failures > 0 or FAILED in self.outcomes.values()
        is_red = self.is_red_by_hook or (exit_code == TESTS_FAILED and not is_explained)
        return {OWN_FAILURE: _ended(self.failures > 0), EXIT_STATUS: _ended(is_red)}


@dataclass(frozen=True)
class SessionReport:
    """``tests``: outcomes of tests and modules; ``session``: of the session itself, as far as seen.

    The others are as in `PLUGIN`, without which they are empty (``is_own``).
    """

    tests: Outcomes = field(default_factory=dict)
    session: Outcomes = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    limit: str = ""
    cut_short: bool = False
    root: str = "."
    is_own: bool = False

    @property
    def outcomes(self) -> Outcomes:
        return {**self.tests, **self.session}

    def grouped(self, unstable: Collection[str]) -> SessionReport:
        """The cases of these functions by numbers, as ids that change by themselves cannot be compared."""
        return replace(self, tests=grouped(self.tests, unstable)) if unstable else self

    def counted(self, counts: TestCounts) -> TestCounts:
        """``counts`` with pytest's own figures, where they are known."""
        if not self.counts:
            return counts
        other = dict(self.counts)
        passed, failed, errors, skipped = (other.pop(name, 0) for name in ("passed", "failed", "error", "skipped"))
        other = dict([*other.items()][:MAX_OTHER_COUNTS])
        return TestCounts(passed, failed, errors, skipped, other, counts.failures)

    @classmethod
    def read(cls, folder: Path, exit_code: int | None, *, own: bool = True) -> SessionReport:
        """Of the run of the tests with its artifacts in ``folder``; empty without a report that can be read."""
        if own and (seen := _seen_in(folder)):
            told = {
                each.name: getattr(seen, each.name) for each in fields(cls) if each.name in _PluginOutput.model_fields
            }
            return cls(seen.outcomes, seen.session(exit_code), **told, is_own=True)
        try:
            tests = parse_outcomes(read_report(folder / "junit.xml"))
        except ValueError:
            return cls()
        return cls(tests, {} if FAILED in tests.values() else {EXIT_STATUS: _ended(exit_code == TESTS_FAILED)})


def _seen_in(folder: Path) -> _PluginOutput | None:
    try:
        return _PluginOutput.model_validate_json(read_report(folder / FILE, "outcomes"))
    except ValueError:
        return None


def _ended(is_red: bool) -> str:
    return FAILED if is_red else PASSED
