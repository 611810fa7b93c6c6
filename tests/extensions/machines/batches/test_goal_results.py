"""The result file, and the one exit code of a batch."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from codex_multi_role.errors import ExitCode, RunStatus
from codex_multi_role.extensions.machines.batches.goal_results import (
    NOT_STARTED,
    WORST_FIRST,
    GoalResult,
    ResultFile,
    exit_code_of,
)
from tests.support.teams import read_lines


def result(name: str, code: int | None = None, status: str = RunStatus.ENDED) -> GoalResult:
    return GoalResult(name, 1, f"night-{name}", "", status, exit_code=code)


def test_result_file_has_a_line_per_goal_in_file_order(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "results.jsonl", [result("b"), result("a")])
    file.put(result("a", 0))
    file.put(result("b", 3))
    file.write()
    assert [(line["id"], line["exit_code"]) for line in read_lines(file.path)] == [("b", 3), ("a", 0)]


def test_exit_code_is_the_worst_in_any_order() -> None:
    assert exit_code_of([]) == exit_code_of([result("a", 0)]) == ExitCode.GOAL_REACHED
    for codes in permutations((0, 1, 2, 3, 4, 5), 3):
        expected = next((code for code in WORST_FIRST if code in codes), 0)
        assert exit_code_of(result(str(code), code) for code in codes) == expected
    assert exit_code_of([result("a", 3)], interrupted=True) == ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (result("a", status=RunStatus.KILLED), ExitCode.FAILED),
        (result("a", 5, NOT_STARTED), ExitCode.BUDGET_USED_UP),
        (result("a", status=NOT_STARTED), ExitCode.GOAL_REACHED),
    ],
)
def test_killed_and_unstarted_goals_count(found: GoalResult, code: ExitCode) -> None:
    """A goal that was not started because others failed adds nothing to their exit code."""
    assert exit_code_of([found]) == code
