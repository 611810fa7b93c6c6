"""A plan is written, judged, and kept for the flow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.checks.tools import find_tool
from codex_multi_role.replies import schema_problems
from tests.support.plan_solve import todo as task
from tests.support.tools import call


def test_written_plan_is_kept_with_all_its_fields(tmp_path: Path) -> None:
    result = call("write_todos", {"todos": [{"id": "T1", "content": "look it up"}, task("T2", "T1")]}, tmp_path)
    assert result.text.splitlines() == [
        "The plan has 2 tasks now:",
        "T1 [pending, medium] look it up",
        "T2 [pending, medium] Do T2 (after T1)",
    ]
    assert result.keep["todos"][0] == {
        "status": "pending",
        "priority": "medium",
        "dependencies": [],
        "active_form": "look it up",
        "id": "T1",
        "content": "look it up",
    }


def test_number_of_tasks_is_judged_by_what_the_caller_wants(tmp_path: Path) -> None:
    kept = {"todos": [task("A"), task("B", "A")]}
    assert call("validate_plan", {}, tmp_path, kept).success
    assert "too few: at least 3" in call("validate_plan", {"min_steps": 3}, tmp_path, kept).text
    assert "too many: at most 1" in call("validate_plan", {"max_steps": 1}, tmp_path, kept).text
    refused = call("validate_plan", {}, tmp_path, {"todos": [task(str(number)) for number in range(21)]})
    assert (refused.success, "21 tasks are too many: at most 20" in refused.text) == (False, True)


def test_terminate_says_how_it_ended_and_asks_for_the_summary(tmp_path: Path) -> None:
    result = call("terminate", {"status": "failure", "reason": "no figures"}, tmp_path)
    assert "final summary" in result.text
    assert result.keep == {"terminated": {"status": "failure", "reason": "no figures"}}


@pytest.mark.parametrize(
    "todo", [{"content": "no id"}, {"id": "A"}, {"id": "", "content": "x"}, {**task("A"), "status": "odd"}]
)
def test_task_of_another_form_is_refused(todo: dict[str, Any]) -> None:
    assert schema_problems({"todos": [todo]}, find_tool("write_todos").input_schema)
