"""Batches of real runs: once through, resumed, killed, within budgets, on repositories."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from unittest.mock import Mock

import psutil
import pytest
import yaml

from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.machines.batches.batch_runs import BatchRuns, BatchWork
from codex_multi_role.extensions.machines.batches.goal_results import GoalResult, ResultFile
from codex_multi_role.extensions.machines.batches.planned_runs import plan_runs
from codex_multi_role.extensions.machines.batches.schedule import TOTAL_BUDGET, Bounds
from tests.support.batches import batch, defaults, goals, one_role, results, started, write_goals
from tests.support.console import console
from tests.support.leftovers import end, wait_until_gone
from tests.support.prices import price_playbook
from tests.support.processes import wait_for
from tests.support.teams import Record, TeamFolder, read, say
from tests.support.workspaces import git

GONE_SECONDS = 60.0
KILLS = 6


def write_play(team: TeamFolder, name: str, *plays: Record) -> None:
    """Another playbook beside the team's."""
    (team.folder / name).write_text(yaml.safe_dump({"name": "other", "roles": {"one": list(plays)}}))


@pytest.mark.real
@pytest.mark.sample("batch")
def test_goals_run_and_finished_ones_are_not_repeated(tmp_path: Path) -> None:
    team = one_role(tmp_path)
    write_goals(team, {"id": "a", "goal": "first"}, {"goal": "second", "cycles": 1})
    done = batch(team, "--concurrency=2")
    assert done.returncode == 0, done.stderr
    assert "2 of 2 goals reached" in done.stderr
    found = results(team)
    assert [(name, each["run_id"], each["exit_code"]) for name, each in found.items()] == [
        ("a", "goals-a", 0),
        ("2", "goals-2", 0),
    ]
    assert read(team.runs / "goals-a/run.json")["goal"] == "first"
    assert batch(team).returncode == ExitCode.WRONG_USAGE
    again = batch(team, "--resume", "--json")
    assert [json.loads(line)["type"] for line in again.stdout.splitlines()] == ["batch_ended"]
    assert results(team) == found


@pytest.mark.long
def test_goals_share_a_total_in_money(tmp_path: Path) -> None:
    """Each goal's run costs some seven dollars of the ten that it reserves."""
    team = one_role(tmp_path)
    price_playbook(tmp_path / "roles/prices.yaml")
    write_goals(team, {"id": "a", "goal": "first"}, {"id": "b", "goal": "second"})
    limits = ("--max-cost=10", "--total-max-cost=15")
    done = batch(team, *limits, "--concurrency=2")
    assert done.returncode == ExitCode.BUDGET_USED_UP, done.stderr
    first, second = results(team).values()
    assert 5 < first["totals"]["cost"] < 10
    assert second["status"] == "not_started"
    assert "of $15.00 are left for the batch; the goal may use $10.00" in second["reason"]
    assert f"  cost     ${first['totals']['cost']:.2f}" in done.stderr.splitlines()


@pytest.mark.long
def test_killed_batch_leaves_no_process_and_resumes(tmp_path: Path) -> None:
    """Only what is left is run: the finished goal is not, and the killed one repeats no finished turn."""
    team = one_role(tmp_path)
    write_play(team, "slow.yaml", say(), {**say(status="DONE"), "delay_seconds": 4})
    lines: list[Record] = [{"id": "a", "goal": "done"}, {"id": "b", "goal": "two turns"}, {"id": "c", "goal": "last"}]
    lines[1] |= {"playbook": "slow.yaml", "cycles": 2}
    write_goals(team, *lines)
    with started(team, "--concurrency=1") as process:
        wait_for(team.runs / "goals-b/one/turn_002/prompt.txt")
        process.kill()
        assert end(wait_until_gone(tmp_path, GONE_SECONDS)) == []
    assert {name: each["status"] for name, each in results(team).items()} == {
        "a": "succeeded",
        "b": "running",
        "c": "waiting",
    }
    first, turn = (read(team.runs / path) for path in ("goals-a/run.json", "goals-b/one/turn_001/turn.json"))
    resumed = batch(team, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert read(team.runs / "goals-a/run.json") == first
    assert read(team.runs / "goals-b/one/turn_001/turn.json") == turn
    assert [each["exit_code"] for each in results(team).values()] == [0, 0, 0]
    assert [each["totals"]["turns"] for each in results(team).values()] == [1, 3, 1]


@pytest.mark.long
def test_batch_that_is_killed_again_and_again_ends_once(tmp_path: Path) -> None:
    """At any moment, in worktrees and in clones: each goal ends with its turns and files, each paid for once."""
    files: list[Record] = [{"files": [{"path": f"{number}.txt", "content": "x"}]} for number in range(2)]
    team = one_role(tmp_path, *({**say(**more), "delay_seconds": 0.3} for more in files), say(status="DONE"))
    team.roles["one"]["behaviors"]["apply_files"] = True
    team.write_catalog()
    (tmp_path / "repo").mkdir()
    git(tmp_path / "repo", "init", "-q")
    git(tmp_path / "repo", "commit", "-q", "--allow-empty", "-m", "Start")
    places = ("workspace", "repository")
    write_goals(team, *({"goal": "g", "cycles": 3, places[number % 2]: "repo"} for number in range(6)))
    random, finished = Random(1), dict[Path, str]()
    for _ in range(KILLS):
        resumes = ["--resume"] if (team.runs / "batches/goals/batch.json").exists() else []
        with started(team, "--concurrency=3", *resumes) as process, suppress(subprocess.TimeoutExpired):
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


@pytest.mark.long
def test_interrupted_batch_can_be_resumed(tmp_path: Path) -> None:
    team = one_role(tmp_path, {**say(status="DONE"), "delay_seconds": 4})
    write_goals(team, {"id": "a", "goal": "slow"}, {"id": "b", "goal": "waits"})
    with started(team, "--concurrency=1") as process:
        wait_for(team.runs / "goals-a/one/turn_001/prompt.txt")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=GONE_SECONDS)
    assert process.returncode == ExitCode.INTERRUPTED
    assert json.loads(output.splitlines()[-1])["exit_code"] == ExitCode.INTERRUPTED
    assert [each["status"] for each in results(team).values()] == ["interrupted", "waiting"]
    assert end(wait_until_gone(tmp_path, GONE_SECONDS)) == []
    assert batch(team, "--resume").returncode == 0


@pytest.mark.real
@pytest.mark.parametrize("limits", [("--max-turns=1",), ("--max-turns=2", "--total-max-turns=3")])
def test_command_printed_by_a_parked_batch_completes_it(tmp_path: Path, limits: tuple[str, ...]) -> None:
    """It raises the limit of a goal, or the total, although one goal was reached or ended without being reached."""
    team = one_role(tmp_path, say(), say(status="DONE"))
    write_goals(team, *({"id": name, "goal": name, "cycles": 2} for name in "ab"))
    done = batch(team, *limits, "--concurrency=1")
    line = next(line for line in done.stderr.splitlines() if line.startswith("  next "))
    again = console(*shlex.split(line)[2:], folder=tmp_path)
    assert (again.returncode, again.stderr.splitlines()[0][:3]) == (0, "2 g"), line + again.stderr


@pytest.mark.long
def test_total_is_never_exceeded_and_can_be_raised(tmp_path: Path) -> None:
    team = one_role(tmp_path, *[say()] * 9)
    write_goals(team, *({"id": name, "goal": name, "cycles": 2} for name in "abc"))
    refused = batch(team, "--total-max-turns=5")
    assert refused.returncode == ExitCode.WRONG_USAGE
    assert "goals.jsonl:1: --total-max-turns needs a limit for each goal" in refused.stderr
    done = batch(team, "--total-max-turns=5", "--max-turns=2", "--concurrency=3")
    assert done.returncode == ExitCode.GOAL_NOT_REACHED, done.stderr
    found = results(team)
    assert [each["exit_code"] for each in found.values()] == [1, 1, 5]
    assert found["c"]["status"] == "not_started"
    assert found["c"]["reason"] == "1 of 5 turns are left for the batch; the goal may use 2"
    assert not (team.runs / "goals-c").exists()
    batch(team, "--resume", "--total-max-turns=6")
    assert [each["exit_code"] for each in results(team).values()] == [1, 1, 1]


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
def test_repositories_are_cloned_once_and_worked_on_apart(tmp_path: Path) -> None:
    """A missing one does not keep the others from their goal."""
    team = one_role(tmp_path, say(status="DONE", files=[{"path": "made.txt", "content": "by a goal"}]))
    team.roles["one"]["behaviors"]["apply_files"] = True
    team.write_catalog()
    for name in ("shop", "cart"):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "-q", "-b", "main")
        git(tmp_path / name, "commit", "-q", "--allow-empty", "-m", "Start")
        git(tmp_path / name, "branch", "other")
    repositories = ["shop", "cart", "missing"]
    write_goals(team, {"id": "x", "goal": "g", "repositories": repositories, "ref": "other"})
    done = batch(team)
    assert done.returncode == ExitCode.WRONG_USAGE, done.stderr
    found = results(team)
    assert [each["exit_code"] for each in found.values()] == [0, 0, 2]
    assert found["x.missing"]["reason"].startswith(f"the repository {tmp_path / 'missing'} was not cloned: fatal:")
    for name in ("shop", "cart"):
        clone = Path(found[f"x.{name}"]["workspace"])
        assert not clone.is_relative_to(tmp_path)  # where the project's own tests would find it
        assert (clone / "made.txt").read_text() == "by a goal"
        assert git(clone, "branch", "--show-current").strip() == "other"
        assert git(clone, "remote", "get-url", "origin").strip() == str(tmp_path / name)
        assert not (tmp_path / name / "made.txt").exists()


@pytest.mark.long
def test_goals_in_one_plain_folder_run_one_after_another(tmp_path: Path) -> None:
    team = one_role(tmp_path)
    write_goals(team, *({"goal": str(number), "workspace": "workspace"} for number in range(3)))
    done = batch(team, "--concurrency=3", "--plain")
    assert done.returncode == 0, done.stderr
    assert "they run one after another" in done.stderr
    said = [line.split()[0] for line in done.stderr.splitlines() if line.startswith(("started", "ended"))]
    assert said == ["started", "ended"] * 3


@pytest.mark.long
def test_shards_run_every_goal_once(tmp_path: Path) -> None:
    team = one_role(tmp_path)
    write_goals(team, *({"goal": str(number)} for number in range(4)))
    done = [batch(team, f"--shard={index}/2") for index in (1, 2)]
    assert [each.returncode for each in done] == [0, 0], done
    parts = [results(team, f"goals.{index}-of-2") for index in (1, 2)]
    assert sorted([*parts[0], *parts[1]]) == ["1", "2", "3", "4"]


@pytest.mark.long
def test_no_more_goals_start_after_failures(tmp_path: Path) -> None:
    team = one_role(tmp_path, {"fault": {"status": 400}})
    write_goals(team, *({"goal": str(number)} for number in range(3)))
    done = batch(team, "--max-failures=1", "--concurrency=1")
    assert done.returncode == ExitCode.FAILED
    assert [each["status"] for each in results(team).values()] == ["failed", "not_started", "not_started"]


@pytest.mark.long
def test_killed_run_is_a_failure_and_is_resumed(tmp_path: Path) -> None:
    """Also one that was killed before it had a `run.json`."""
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
def test_parked_goal_is_resumed_with_a_raised_limit(tmp_path: Path) -> None:
    """What is not given again is remembered: the cycles, and the playbook."""
    team = one_role(tmp_path, say(), say(status="DONE"))
    write_goals(team, {"goal": "g"})
    parked = batch(team, "--cycles=3", "--max-turns=1")
    assert parked.returncode == ExitCode.BUDGET_USED_UP, parked.stderr
    assert results(team)["1"]["outcome"] == "budget_used_up"
    again = console("batch", "goals.jsonl", "--resume", "--max-turns=9", folder=tmp_path)
    assert again.returncode == 0, again.stderr
    assert results(team)["1"]["totals"]["turns"] == 2


@pytest.mark.long
def test_clone_ends_with_a_killed_batch(tmp_path: Path) -> None:
    """Git waits for a server that does not answer."""
    team = one_role(tmp_path)
    write_goals(team, {"goal": "g", "repository": "ext::sleep 600"})
    with started(team, GIT_ALLOW_PROTOCOL="ext") as process:
        wait_for(team.runs / "batches/goals/repositories", "*.part")
        process.kill()
        assert end(wait_until_gone(tmp_path, GONE_SECONDS)) == []


@pytest.mark.long
def test_quota_that_is_used_up_keeps_other_goals_from_starting(tmp_path: Path) -> None:
    team = one_role(tmp_path, {"fault": {"status": 429, "code": "usage_limit_reached"}})
    write_goals(team, {"goal": "refused"}, {"goal": "not started"})
    done = batch(team, "--concurrency=1")
    assert done.returncode == ExitCode.BUDGET_USED_UP, done.stderr
    assert [(each["status"], each["outcome"]) for each in results(team).values()] == [
        ("parked", "quota"),
        ("not_started", "quota"),
    ]


def test_changed_goal_is_not_mistaken_for_its_run(tmp_path: Path) -> None:
    """Its run is of an earlier process; nothing starts."""
    team = one_role(tmp_path)
    write_goals(team, {"goal": "one"})
    (team.runs / "goals-1").mkdir(parents=True)
    record = {"options": {"goal": "another", "flow": "cycles"}}
    (team.runs / "goals-1/run.json").write_text(json.dumps(record))
    refused = batch(team)
    assert "goals.jsonl:1: the run goals-1 already exists" in refused.stderr
