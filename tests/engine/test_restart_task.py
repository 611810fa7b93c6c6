"""One item of a fan-out is done again, in a run that keeps what the others came to."""

from __future__ import annotations

from pathlib import Path

import pytest

import codex_multi_role
from codex_multi_role.errors import RunBusy, UsageError
from codex_multi_role.option_keywords import ForkKeywords
from codex_multi_role.run_folder import list_runs
from tests.support.catalogs import raised
from tests.support.console import console
from tests.support.plan_solve import (
    CHAIN,
    DOUBTED,
    GIVES_UP,
    asked,
    history,
    planned,
    restart,
    results,
    solve,
    solved,
    solvers,
    team_of,
    todo,
)
from tests.support.teams import NEVER, WRITER, Record, TeamFolder, read, say, with_flow

pytestmark = [pytest.mark.extensions, pytest.mark.usefixtures("scripted_codex")]


def test_failed_task_is_restarted_with_its_dependents(tmp_path: Path) -> None:
    """The results of the other tasks are kept."""
    team = team_of(tmp_path, [CHAIN], [GIVES_UP, solved("b"), solved("c")])
    first = solve(team)
    assert first.outcome == "tasks_failed"
    solvers(team, solved("better"), solved("b"), NEVER)
    report = restart(team, "A")
    assert (report.outcome, report.exit_code, report.totals["turns"]) == ("success", 0, 4)
    assert asked(team) == ["solver", "solver", "aggregator", "verifier"]
    assert [each["result"] for each in results(team)] == ["better", "b", "c"]
    assert history(team, "A") == ["PENDING", "IN_PROGRESS", "COMPLETED"]
    assert history(team, "C") == ["PENDING", "COMPLETED"]
    assert history(team)[-3:] == ["SOLVING", "VERIFYING", "FINISHED"]
    record = read(report.folder / "run.json")
    assert record["forked_from"] == {"run_id": first.run_id, "step": "solve", "visit": 1, "task": "A"}
    told = read(report.folder / "controller_state.json")["history"]
    assert [each["handoff"]["result"] for each in told if each["role"] == "solver"] == ["better", "b", "c"]
    assert read(first.folder / "run.json")["outcome"] == "tasks_failed"


def test_restarted_run_can_be_restarted_and_keeps_its_results(solved_chain: TeamFolder) -> None:
    team = solved_chain
    team.plays["verifier"] = [DOUBTED]
    solvers(team, NEVER, NEVER, solved("c2"))
    assert restart(team, "C").outcome == "not_verified"
    solvers(team, NEVER, solved("b2"), NEVER)
    assert restart(team, "solve.1.1").outcome == "not_verified"
    assert [each["result"] for each in results(team)] == ["a", "b2", "c2"]


def test_parked_run_is_restarted_and_solves_what_was_left_too(tmp_path: Path) -> None:
    team = team_of(tmp_path, [CHAIN], [solved("a"), solved("b"), solved("c")])
    assert team.run(flow="plan-solve", max_turns=2, inputs={"concurrency": 1}).exit_code == 5
    with pytest.raises(UsageError, match=r"the task B of the run .* has not ended"):
        restart(team, "B")
    solvers(team, solved("a2"), solved("b"), solved("c"))
    changes: ForkKeywords = {"playbook": str(team.playbook), "max_turns": 20}
    report = codex_multi_role.fork("latest", task="A", runs_dir=team.runs, changes=changes, on_event=team.events.append)
    assert report.outcome == "success"
    assert [each["result"] for each in results(team)] == ["a2", "b", "c"]


def test_command_and_what_cannot_be_restarted(solved_chain: TeamFolder) -> None:
    team = solved_chain
    done = console("fork", "latest", "--task", "B", "--quiet", folder=team.folder)
    assert done.returncode == 0, done.stderr
    assert len(list_runs(team.runs)) == 2
    done = console("fork", "latest", "--task", "Z", folder=team.folder)
    assert (done.returncode, "has no task 'Z'" in done.stderr, "It has A, B, C." in done.stderr) == (2, True, True)
    assert console("fork", "nope", "--task", "A", folder=team.folder).returncode == 2
    assert console("fork", "--task", "A", "--from", "solve", folder=team.folder).returncode == 2
    assert len(list_runs(team.runs)) == 2


def test_live_run_is_not_restarted(tmp_path: Path) -> None:
    team = team_of(tmp_path, [planned(todo("A"), todo("B", "A"))], [solved("a"), solved("b")])
    refused: list[str] = []

    def restart_meanwhile(event: Record) -> None:
        if event["type"] == "state_changed" and (event["item"], event["state"]) == ("A", "COMPLETED"):
            for task, error in (("A", RunBusy), ("B", UsageError)):
                refused.append(str(raised(error, restart, team, task)))

    assert codex_multi_role.run(team.options(flow="plan-solve"), restart_meanwhile).exit_code == 0
    assert "is being worked on" in refused[0]
    assert "the task B of the run" in refused[1]
    assert refused[1].endswith("has not ended")


def test_tasks_that_change_workspace_cannot_be_restarted_singly(tmp_path: Path) -> None:
    steps: list[Record] = [{"ask": "writer", "for_each": ["x", "y"]}]
    files = [{"path": "a.txt", "content": "a"}]
    team = with_flow(TeamFolder(tmp_path, {"writer": WRITER}, {"writer": [say(files=files)] * 2}), {"steps": steps})
    team.run(flow="own")
    with pytest.raises(UsageError, match="the tasks of writer may change the workspace"):
        restart(team, "1")
    assert len(list_runs(team.runs)) == 1
