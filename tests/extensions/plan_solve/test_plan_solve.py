"""System C, plan and solve: its worked example, and every way it can take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import RunReport, fork
from codex_multi_role.errors import UsageError
from codex_multi_role.option_keywords import ForkKeywords
from tests.support.console import console
from tests.support.plan_solve import (
    DOUBTED,
    GIVES_UP,
    TWO,
    VERIFIED,
    asked,
    call,
    history,
    planned,
    results,
    solve,
    solved,
    team_of,
    todo,
)
from tests.support.scripted_codex import codex_replaced
from tests.support.teams import Record, TeamFolder, read, read_lines

pytestmark = pytest.mark.usefixtures("scripted_codex")


def handed(team: TeamFolder, path: str) -> Any:
    prompt = (team.runs / "latest" / path / "prompt.txt").read_text()
    return json.JSONDecoder().raw_decode(prompt.split("INCOMING HANDOFF (JSON):\n")[1])[0]


def calls(folder: Path, turn: str) -> list[tuple[str, bool, str]]:
    return [(each["tool"], each["success"], each["text"]) for each in read_lines(folder / turn / "tool_calls.jsonl")]


def test_planner_is_asked_until_its_plan_is_valid(tmp_path: Path) -> None:
    """Its first plan, an answer without tools, is invalid. Tools reject the second. It thinks, then writes again."""
    circle: Record = {"json": {"todos": [todo("A", "B"), todo("B", "A"), {"id": "C", "content": "Do C"}]}}
    thinks: Record = {"steps": [call("write_todos", todos=[todo("A", "Z")]), call("validate_plan"), {"text": "Hm."}]}
    team = team_of(tmp_path, [circle, {**thinks, "repairs": [planned(todo("A"))]}], [solved("a")])
    assert solve(team).outcome == "success"
    (problem,) = handed(team, "planner_agent/turn_002")["problems"]
    assert problem.startswith("tasks depend on each other: ")
    (rejected,) = [text for _, good, text in calls(team.runs / "latest", "planner_agent/turn_002") if not good]
    assert "A depends on Z, which is not a task" in rejected
    assert read(team.runs / "latest/planner_agent/turn_002/turn.json")["outcome"] == "unfinished"
    assert handed(team, "solver/turn_001")["task"]["dependencies"] == []
    assert [each["result"] for each in results(team)] == ["a"]


def test_failed_and_skipped_tasks_are_visible_to_aggregator(tmp_path: Path) -> None:
    """A task that fails for good is failed in the results, and the tasks that depend on it are skipped."""
    plan = planned(todo("A"), todo("B", "A"), todo("C"))
    team = team_of(tmp_path, [plan], [GIVES_UP, solved("never"), solved("c")])
    report = solve(team)
    assert (report.exit_code, report.outcome) == (1, "tasks_failed")
    assert [(each["status"], each["error"]) for each in results(team)] == [
        ("failed", "role solver gave up: no data"),
        ("skipped", "not started: it needs A"),
        ("done", ""),
    ]
    assert history(team) == ["IDLE", "PLANNING", "SOLVING", "VERIFYING", "FAILED"]
    assert history(team, "A") == ["PENDING", "IN_PROGRESS", "FAILED", "IN_PROGRESS", "FAILED"]
    assert history(team, "B") == ["PENDING", "SKIPPED"]
    shown = console("show", "latest", folder=tmp_path).stdout
    assert "states     IDLE → PLANNING → SOLVING → VERIFYING → FAILED\n" in shown
    assert " ■ B: not started: it needs A\n" in shown
    before = read(team.runs / "latest/states.json")
    assert team.resume().outcome == "tasks_failed"
    assert read(team.runs / "latest/states.json") == before


@pytest.fixture(scope="module")
@codex_replaced()
def doubted(tmp_path_factory: pytest.TempPathFactory) -> tuple[TeamFolder, RunReport]:
    """A run whose answer was not verified."""
    team = team_of(tmp_path_factory.mktemp("doubted"), [TWO], [solved("a"), solved("b")], DOUBTED)
    return team, solve(team)


def test_unverified_answer_is_not_success(doubted: tuple[TeamFolder, RunReport]) -> None:
    team, report = doubted
    assert (report.exit_code, report.outcome) == (1, "not_verified")
    assert report.reason == "the verifier found: a figure is wrong"
    shown = console("show", report.run_id, folder=team.folder)
    assert "reason     the verifier found: a figure is wrong\n" in shown.stdout, shown.stderr
    assert read(report.folder / "run.json")["reason"] == report.reason
    assert f"next: codex-multi-role fork {report.run_id} --from solve" in shown.stdout
    assert not (report.folder / "answer.md").exists()


def test_no_run_begins_with_a_concurrency_of_nothing(tmp_path: Path) -> None:
    team = team_of(tmp_path, [TWO], [])
    with pytest.raises(UsageError, match=r'the input "concurrency" must be at least 1'):
        solve(team, concurrency=0)
    assert not team.runs.exists()


def test_fork_from_step_reuses_plan_and_results(doubted: tuple[TeamFolder, RunReport]) -> None:
    team, earlier = doubted
    team.plays["verifier"] = [VERIFIED]
    team.write_plays()
    team.events.clear()
    changes: ForkKeywords = {"playbook": str(team.playbook)}
    report = fork(earlier.run_id, runs_dir=team.runs, start="verify", changes=changes, on_event=team.events.append)
    assert (report.outcome, asked(team)) == ("success", ["verifier"])
    assert history(team) == ["IDLE", "PLANNING", "SOLVING", "VERIFYING", "FINISHED"]
    assert history(team, "B") == ["PENDING", "IN_PROGRESS", "COMPLETED"]
    assert (report.folder / "answer.md").read_text() == "the answer\n"
