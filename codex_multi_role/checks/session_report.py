"""How the tests of one run ended, test by test: from what our plugin saw or, without it, from the JUnit report.

Both were written by a process that ran untrusted tests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from codex_multi_role.checks.interpreter import TESTS_FAILED
from codex_multi_role.checks.junit_report import parse_outcomes, read_report
from codex_multi_role.checks.test_changes import FAILED, PASSED, Outcomes, grouped

FILE, VARIABLE, PLUGIN = "outcomes.json", "CODEX_MULTI_ROLE_OUTCOMES", "codex_multi_role_outcomes"
OWN_FAILURE, EXIT_STATUS = "the session: a failure beside the tests", "the session: its exit status"
"""Ids of what is red without a failed test: a threshold, a hook. Beside failed tests, the second is not seen."""


class _PluginOutput(BaseModel):
    """What `PLUGIN` writes."""

    outcomes: dict[str, Literal["passed", "failed", "skipped"]]
    lacks: dict[str, str]
    failures: int
    limit: str
    cut_short: bool
    root: str


@dataclass(frozen=True)
class SessionReport:
    """``tests``: outcomes of tests and modules; ``session``: of the session itself, as far as seen.

    ``lacks``, ``limit``, ``cut_short`` and ``root`` as in `PLUGIN`, without which they are empty (``is_own``).
    """

    tests: Outcomes = field(default_factory=dict)
    session: Outcomes = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)
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

    @classmethod
    def read(cls, folder: Path, exit_code: int | None, *, own: bool = True) -> SessionReport:
        """Of the run of the tests with its artifacts in ``folder``; empty without a report that can be read."""
        if own and (seen := _seen_in(folder)):
            session = _session(seen.outcomes, exit_code, seen.failures)
            return cls(seen.outcomes, session, seen.lacks, seen.limit, seen.cut_short, seen.root, is_own=True)
        try:
            tests = parse_outcomes(read_report(folder / "junit.xml"))
        except ValueError:
            return cls()
        return cls(tests, _session(tests, exit_code, 0))


def _seen_in(folder: Path) -> _PluginOutput | None:
    try:
        return _PluginOutput.model_validate_json(read_report(folder / FILE, "outcomes"))
    except ValueError:
        return None


def _session(tests: Outcomes, exit_code: int | None, own_failures: int) -> dict[str, str]:
    found = {OWN_FAILURE: FAILED if own_failures > 0 else PASSED}
    if own_failures <= 0 and FAILED not in tests.values():
        found[EXIT_STATUS] = FAILED if exit_code == TESTS_FAILED else PASSED
    return found
