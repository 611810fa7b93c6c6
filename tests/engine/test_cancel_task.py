"""One item of a fan-out is cancelled from elsewhere while the run continues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import codex_multi_role
from codex_multi_role import RunReport
from codex_multi_role.errors import UsageError
from codex_multi_role.run_folder.typed_answers import user_name
from tests.support.console import console
from tests.support.plan_solve import GIVES_UP, TWO, asked, history, planned, results, solved, team_of, todo
from tests.support.processes import interrupted
from tests.support.teams import NEVER, Record, TeamFolder, read, with_flow

pytestmark = [pytest.mark.extensions, pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

THREE = planned(todo("A"), todo("B", "A"), todo("C"))


def cancel(team: TeamFolder, task: str, comment: str = "") -> str:
    return codex_multi_role.cancel_task("latest", task, runs_dir=team.runs, comment=comment)


def during(team: TeamFolder, when: Callable[[Record], bool], act: Callable[[], object], **options: object) -> RunReport:
    """A run in which ``act`` is done at the first event that ``when`` holds for."""
    done: list[Record] = []

    def on_event(event: Record) -> None:
        team.events.append(event)
        if not done and when(event):
            done.append(event)
            act()

    team.events.clear()
    return codex_multi_role.run(team.options(**options), on_event)


def state_of(item: str, state: str) -> Callable[[Record], bool]:
    return lambda event: event["type"] == "state_changed" and (event["item"], event["state"]) == (item, state)


def turn_of(role: str) -> Callable[[Record], bool]:
    return lambda event: event["type"] == "turn_started" and event["role"] == role


def test_task_in_progress_is_interrupted_and_the_rest_continues(tmp_path: Path) -> None:
    team = team_of(tmp_path, [THREE], [NEVER, solved("b"), solved("c")])
    report = during(team, turn_of("solver"), lambda: cancel(team, "A", "known"), flow="plan-solve")
    assert (report.exit_code, report.outcome) == (1, "tasks_failed")
    first, *others = results(team)
    assert (first["status"], first["error"]) == ("skipped", f"cancelled by {user_name()}: known")
    assert [(each["status"], each["error"]) for each in others] == [
        ("skipped", "not started: it needs A"),
        ("done", ""),
    ]
    assert history(team, "A") == ["PENDING", "IN_PROGRESS", "SKIPPED"]
    assert history(team, "B") == ["PENDING", "SKIPPED"]
    assert history(team, "C") == ["PENDING", "IN_PROGRESS", "COMPLETED"]
    assert read(report.folder / "solver/turn_001/turn.json")["outcome"] == "cancelled"
    assert team.resume().outcome == "tasks_failed"
    assert asked(team) == []


def test_cancelled_pending_task_never_starts(tmp_path: Path) -> None:
    team = team_of(tmp_path, [THREE], [solved("a"), solved("b"), solved("c")])
    during(team, turn_of("solver"), lambda: cancel(team, "C"), flow="plan-solve", inputs={"concurrency": 1})
    assert [each["status"] for each in results(team)] == ["done", "done", "skipped"]
    assert history(team, "C") == ["PENDING", "SKIPPED"]


def test_task_that_waits_to_be_tried_again_is_not(tmp_path: Path) -> None:
    team = team_of(tmp_path, [planned(todo("A"))], [GIVES_UP])
    during(team, state_of("A", "FAILED"), lambda: cancel(team, "A"), flow="plan-solve")
    assert history(team, "A") == ["PENDING", "IN_PROGRESS", "FAILED", "SKIPPED"]
    assert asked(team).count("solver") == 1


def test_cancelled_task_stays_cancelled_after_a_stop_and_resume(tmp_path: Path) -> None:
    team = team_of(tmp_path, [TWO], [NEVER, solved("b")])
    interrupted(team, ("turn_started", "solver"), flow="plan-solve")
    told = console("cancel", "latest", "--task", "A", "--runs-dir", str(team.runs), folder=tmp_path.parent)
    assert told.returncode == 0
    assert "task A is IN_PROGRESS; it is skipped when `codex-multi-role resume" in told.stderr
    assert f" --runs-dir {team.runs}` continues" in told.stderr
    assert team.resume().outcome == "tasks_failed"
    assert [each["status"] for each in results(team)] == ["skipped", "skipped"]
    assert asked(team) == ["aggregator", "verifier"]


def test_check_and_a_called_flow_are_cancelled_alike(tmp_path: Path) -> None:
    slow: Record = {
        "check": "command",
        "with": {"argv": ["sleep", "60"]},
        "for_each": {"items": ["x", "y"], "concurrency": 2},
    }
    steps: list[Record] = [{"id": "slow", **slow}, {"id": "outer", "call": "called", "for_each": [1]}]
    team = with_flow(TeamFolder(tmp_path, {"one": {}}, {}), {"steps": steps})
    with_flow(team, {"steps": [{"id": "inner", **slow, "for_each": ["x", "y"]}]}, "called")

    def on_event(event: Record) -> None:
        team.events.append(event)
        if event["type"] == "state_changed" and event["state"] == "IN_PROGRESS" and event["unit"] != "outer.1.0":
            cancel(team, event["unit"].partition("/")[0])

    assert codex_multi_role.run(team.options(flow="own"), on_event).exit_code == 0
    told = {each["unit"]: each["state"] for each in team.of_type("state_changed")}
    assert told.pop("outer.1.0/inner.1.1") == "PENDING"
    assert (len(told), set(told.values())) == (4, {"SKIPPED"})


def test_task_that_cannot_be_cancelled_is_reported(solved_chain: TeamFolder) -> None:
    team = solved_chain
    with pytest.raises(UsageError, match="has no task 'Z'") as caught:
        cancel(team, "Z")
    assert caught.value.hint == "It has A, B, C."
    with pytest.raises(UsageError, match=r"the task A of the run \S+ is COMPLETED"):
        cancel(team, "A")
    done = console("cancel", "nope", "--task", "A", folder=team.folder)
    assert (done.returncode, 'no run "nope"' in done.stderr) == (2, True)
