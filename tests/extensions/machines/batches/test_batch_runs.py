"""Batches of real runs: once through, resumed, killed, within budgets, on repositories."""

from __future__ import annotations

import json
import shlex
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from unittest.mock import Mock

import psutil
import pytest

from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.machines.batches.batch_runs import BatchRuns, BatchWork
from codex_multi_role.extensions.machines.batches.goal_results import GoalResult, ResultFile
from codex_multi_role.extensions.machines.batches.planned_runs import plan_runs
from codex_multi_role.extensions.machines.batches.schedule import FAILURES, TOTAL_BUDGET, Bounds
from codex_multi_role.extensions.machines.commands.batch_summary import higher_limits
from tests.support.batches import batch, defaults, goals, one_role, results, started, write_goals
from tests.support.console import console
from tests.support.leftovers import end, wait_until_gone
from tests.support.processes import wait_for
from tests.support.teams import Record, read, say
from tests.support.workspaces import commit_all, git

GONE_SECONDS = 60.0
KILLS = 6


@pytest.mark.real
@pytest.mark.sample("batch")
def test_goals_run_and_finished_ones_are_not_repeated(tmp_path: Path) -> None:
    """The command that a batch prints when its total is used up completes it. One goal works in a clone of its own."""
    team = one_role(tmp_path, say(), say(status="DONE"))
    (tmp_path / "shop").mkdir()
    commit_all(tmp_path / "shop")
    git(tmp_path / "shop", "branch", "other")
    second: Record = {"goal": "second", "cycles": 2, "repository": "shop", "ref": "other"}
    write_goals(team, {"id": "a", "goal": "first", "cycles": 2}, second)
    parked = batch(team, "--max-turns=2", "--total-max-turns=3", "--concurrency=1")
    assert parked.returncode == ExitCode.BUDGET_USED_UP, parked.stderr
    first = read(team.runs / "goals-a/run.json")
    assert (first["goal"], list(results(team))) == ("first", ["a", "2"])
    line = next(line for line in parked.stderr.splitlines() if line.startswith("  next "))
    done = console(*shlex.split(line)[2:], folder=tmp_path)
    assert done.returncode == 0, line + done.stderr
    assert "2 of 2 goals reached" in done.stderr
    found = results(team)
    assert [(name, each["run_id"], each["exit_code"]) for name, each in found.items()] == [
        ("a", "goals-a", 0),
        ("2", "goals-2", 0),
    ]
    assert read(team.runs / "goals-a/run.json") == first
    clone = Path(found["2"]["workspace"])
    assert not clone.is_relative_to(tmp_path)  # where the project's own tests would find it
    assert git(clone, "branch", "--show-current").strip() == "other"
    assert batch(team).returncode == ExitCode.WRONG_USAGE
    again = batch(team, "--resume", "--json")
    assert [json.loads(line)["type"] for line in again.stdout.splitlines()] == ["batch_ended"]
    assert results(team) == found


@pytest.mark.long
def test_batch_that_is_killed_again_and_again_ends_once(tmp_path: Path) -> None:
    """Only here a batch without a database is killed: at any moment, each turn is paid for once, no process is left."""
    files: list[Record] = [{"files": [{"path": f"{number}.txt", "content": "x"}]} for number in range(2)]
    team = one_role(tmp_path, *({**say(**more), "delay_seconds": 0.3} for more in files), say(status="DONE"))
    team.roles["one"]["behaviors"]["apply_files"] = True
    team.write_catalog()
    (tmp_path / "repo").mkdir()
    commit_all(tmp_path / "repo")
    places = ("workspace", "repository")
    write_goals(team, *({"goal": "g", "cycles": 3, places[number % 2]: "repo"} for number in range(6)))
    random, finished, record = Random(1), dict[Path, str](), team.runs / "batches/goals/batch.json"
    for _ in range(KILLS):
        resumes = ["--resume"] if record.exists() else []
        with started(team, "--concurrency=3", *resumes) as process, suppress(subprocess.TimeoutExpired):
            wait_for(record)
            process.wait(random.uniform(0.5, 5.0))
        turns = {path: path.read_text() for path in team.runs.glob("goals-*/one/turn_*/turn.json")}
        finished = {**{path: text for path, text in turns.items() if '"completed"' in text}, **finished}
    done = batch(team, "--concurrency=3", "--resume")
    assert done.returncode == 0, done.stderr
    assert [path for path, text in finished.items() if path.read_text() != text] == []
    for result in results(team).values():
        assert result["totals"]["turns"] >= 3
        turns_of_run = Path(result["folder"]).glob("one/turn_*/turn.json")
        assert sum(read(path)["status"] == "completed" for path in turns_of_run) == 3
        assert {"0.txt", "1.txt"} <= {path.name for path in Path(result["workspace"]).iterdir()}
    assert end(wait_until_gone(tmp_path, GONE_SECONDS)) == []


def test_what_parked_goals_need_is_raised(tmp_path: Path) -> None:
    planned = plan_runs(goals({"goal": "g"}, {"goal": "h"}), defaults(tmp_path, max_turns=1), "night", tmp_path)
    parked = {"status": "parked", "outcome": "budget_used_up", "exit_code": 5, "suggestion": "resume RUN --max-turns 3"}
    (tmp_path / "run.json").write_text(json.dumps(parked))
    found = [GoalResult(str(number), 1, "", str(tmp_path), "parked", exit_code=5) for number in (1, 2)]
    found[1] = replace(found[1], status="succeeded", exit_code=0, totals={"turns": 1})
    given = {each.id: each for each in found}, planned
    assert list(higher_limits(*given, {})) == ["--max-turns=3"]
    assert list(higher_limits(*given, {"turns": 2})) == ["--max-turns=3", "--total-max-turns=4"]


@pytest.mark.parametrize(
    ("end", "bounds", "outcome", "code"),
    [
        (("parked", "quota", 5), Bounds(1), "quota", 5),
        (("failed", "failed", 3), Bounds(1, max_failures=1), FAILURES, None),
    ],
)
def test_no_more_goals_start_after_an_end(
    end: tuple[str, str, int], bounds: Bounds, outcome: str, code: int | None, tmp_path: Path
) -> None:
    planned = plan_runs(goals({"goal": "g"}, {"goal": "h"}), defaults(tmp_path), "night", tmp_path)
    runs, file = Mock(recorded=lambda _: None), ResultFile(tmp_path / "results", [])
    runs.news.return_value = [("1", GoalResult("1", 1, "night-1", "", *end))]
    batch = BatchRuns.of(planned, runs)
    BatchWork(batch, planned, bounds, runs, file, Mock()).work(Mock(asked=False))
    runs.start.assert_called_once_with(planned[0])
    assert [(each.status, each.outcome, each.exit_code) for each in batch.results.values()] == [
        end,
        ("not_started", outcome, code),
    ]


def test_parked_goal_that_is_not_resumed_keeps_its_reason(tmp_path: Path) -> None:
    planned = plan_runs(goals({"goal": "g"}), defaults(tmp_path, max_turns=4), "night", tmp_path)
    parked = GoalResult(
        "1", 1, "night-1", "", "parked", "budget_used_up", 5, "3 of 3 turns are used: one 3", {"turns": 3}
    )
    runs, watcher, file = Mock(), Mock(), ResultFile(tmp_path / "results", [])
    bounds = Bounds(1, {"turns": 3})
    BatchWork(BatchRuns(planned, {"1": parked}), planned, bounds, runs, file, watcher).work(Mock(asked=False))
    reason = "0 of 3 turns are left for the batch; the goal may use 1 more (before: 3 of 3 turns are used: one 3)"
    watcher.ended.assert_called_once_with(replace(parked, outcome=TOTAL_BUDGET, reason=reason))
    runs.start.assert_not_called()


@pytest.mark.long
def test_killed_run_is_a_failure_and_is_resumed(tmp_path: Path) -> None:
    """Only here the process of a goal is killed, and not the batch; also before it had a `run.json`."""
    team = one_role(tmp_path, {**say(status="DONE"), "delay_seconds": 4})
    write_goals(team, {"id": "a", "goal": "killed"})
    with started(team) as process:
        wait_for(team.runs / "goals-a/one/turn_001/prompt.txt")
        psutil.Process(read(team.runs / "goals-a/owner.json")["pid"]).kill()
        assert process.wait(GONE_SECONDS) == ExitCode.FAILED
    assert results(team)["a"]["status"] == "killed"
    (team.runs / "goals-a/run.json").unlink()
    resumed = batch(team, "--resume")
    assert resumed.returncode == 0, resumed.stderr


@pytest.mark.long
def test_clone_ends_with_a_killed_batch(tmp_path: Path) -> None:
    """Only here a batch is killed that waits for git, whose server does not answer."""
    team = one_role(tmp_path)
    write_goals(team, {"goal": "g", "repository": "ext::sleep 600"})
    with started(team, GIT_ALLOW_PROTOCOL="ext") as process:
        wait_for(team.runs / "batches/goals/repositories", "*.part")
        process.kill()
        assert end(wait_until_gone(tmp_path, GONE_SECONDS)) == []


def test_changed_goal_is_not_mistaken_for_its_run(tmp_path: Path) -> None:
    """Its run is of an earlier process; nothing starts."""
    team = one_role(tmp_path)
    write_goals(team, {"goal": "one"})
    (team.runs / "goals-1").mkdir(parents=True)
    record = {"options": {"goal": "another", "flow": "cycles"}}
    (team.runs / "goals-1/run.json").write_text(json.dumps(record))
    refused = batch(team)
    assert "goals.jsonl:1: the run goals-1 already exists" in refused.stderr
