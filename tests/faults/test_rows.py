"""The lists of faults and of what a client must do are whole: nothing that they name can get lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codex_multi_role.codex import failures
from codex_multi_role.presentation.outcome import outcome_in_words
from codex_multi_role.steps.recovery import ADVICE
from tests.faults.played import PLAYED
from tests.faults.row import played, started
from tests.faults.rows import ROWS
from tests.faults.starts import STARTS
from tests.faults.symphony import MATRIX
from tests.support.long_run import value_of
from tests.support.tables import load_test

TEST_ID = re.compile(r"([\w/]+\.py::test_\w+)(?:\[(.+)\])?")
LISTED = {**{row.fault: row.tests for row in ROWS}, **MATRIX}
CODEXS_OWN = {"sandbox_error", "denied_too_often", "against_policy"}
"""What only a real provider, or Codex itself, brings about: held by the table of `codex.failures` alone."""


@pytest.mark.extensions
@pytest.mark.parametrize("line", LISTED)
def test_every_line_names_existing_tests(line: str) -> None:
    """Among them are the endurance tests, whose scenarios need the systems."""
    assert LISTED[line]
    for test in LISTED[line]:
        found = TEST_ID.fullmatch(test)
        assert found is not None, test
        case = found[2]
        function = load_test(found[1])
        marks = getattr(function, "pytestmark", [])
        cases = {str(value_of(each)) for mark in marks if mark.name == "parametrize" for each in mark.args[1]}
        assert case is None or case in cases, test


def test_every_fault_that_is_played_is_in_the_list() -> None:
    listed = {test for row in ROWS for test in row.tests}
    assert {*played(*PLAYED), *started(*STARTS)} <= listed
    assert len({row.fault for row in ROWS}) == len(ROWS)


def test_list_says_what_the_tests_see() -> None:
    outcomes = {played(name)[0]: row.outcome for name, row in PLAYED.items()}
    outcomes |= {started(name)[0]: row.outcome for name, row in STARTS.items()}
    for row in ROWS:
        assert {outcomes[test] for test in row.tests if test in outcomes} <= {row.outcome}, row.fault


def test_advice_in_the_list_is_that_of_the_outcome() -> None:
    rows = [row for row in PLAYED.values() if row.outcome in ADVICE]
    assert [row for row in rows if row.advice not in f"{ADVICE[row.outcome]} tries again"] == []


def every_outcome() -> set[str]:
    """That a fault can have: those of the list, and those of the table of Codex's classes."""
    pairs = [each for each in (*vars(failures).values(), *failures._CLASSES.values()) if isinstance(each, tuple)]
    named = {each[0] for each in pairs if len(each) == 2 and isinstance(each[1], failures.Remedy)}
    return named | {row.outcome for row in ROWS if row.outcome} | ADVICE.keys()


def test_each_outcome_is_documented_and_has_its_own_words() -> None:
    documented = (Path(__file__).parents[2] / "docs/reference/outcomes.md").read_text(encoding="utf-8")
    outcomes = every_outcome()
    assert [outcome for outcome in sorted(outcomes) if f"`{outcome}`" not in documented] == []
    assert len({outcome_in_words(outcome) for outcome in outcomes}) == len(outcomes)
    assert outcomes - {row.outcome for row in ROWS} == CODEXS_OWN
