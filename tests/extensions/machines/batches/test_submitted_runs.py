"""Batches whose goals wait in a database: what the command shows of what workers do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from codex_multi_role.errors import ExitCode, UsageError
from codex_multi_role.extensions.machines.batches.goal_results import GoalResult
from codex_multi_role.extensions.machines.batches.planned_runs import plan_runs
from codex_multi_role.extensions.machines.batches.submitted_runs import BatchQueue, SubmittedRuns
from codex_multi_role.extensions.machines.workers.batch_totals import CONCURRENCY, recorded_limits
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.housekeeping import keep_house
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRun, QueuedRuns, RunState
from codex_multi_role.extensions.machines.workers.run_requests import RunRequest
from codex_multi_role.extensions.machines.workers.submission import OF_THIS_MACHINE, require_portable
from codex_multi_role.run_options import RunOptions
from tests.support.batches import batch, defaults, goals, one_role, results, write_goals
from tests.support.played_workers import PlayedWorker, ending
from tests.support.shared_runs import request
from tests.support.teams import TeamFolder

pytestmark = pytest.mark.real


def url_of(team: TeamFolder) -> str:
    team.runs.mkdir(exist_ok=True)
    return f"sqlite:///{team.runs}/queue.sqlite"


def test_results_come_from_the_database(tmp_path: Path) -> None:
    """A batch with a failed goal names the commands that continue it, and is resumed where its runs are."""
    team = one_role(tmp_path)
    write_goals(team, {"id": "a", "goal": "first", "priority": 3, "labels": ["gpu"]}, {"goal": "second"})
    failing = PlayedWorker(url_of(team), 2, **ending(3, "failed"))
    failing.start()
    done = batch(team, "--database-url", url_of(team), "--max-turns=4", "--queue=nightly")
    failing.end()
    assert done.returncode == 3, done.stderr
    assert "2 goals for workers: no worker takes runs of the queue nightly" in done.stderr
    found = results(team)
    assert {name: (each["run_id"], each["totals"]["turns"]) for name, each in found.items()} == {
        "a": ("goals-a", 3),
        "2": ("goals-2", 3),
    }
    rows = {run.run_id: run for run in QueuedRuns(Database.open(url_of(team))).list()}
    assert (rows["goals-a"].queue, rows["goals-a"].priority, rows["goals-a"].line) == ("nightly+gpu", 3, 1)
    assert rows["goals-2"].request.limits == {"turns": 4}
    assert f"codex-multi-role show goals-a --database-url {url_of(team)}\n" in done.stderr
    resumed = f"codex-multi-role batch goals.jsonl --resume --name=goals --database-url={url_of(team)} --queue=nightly"
    assert f"next     {resumed}\n" in done.stderr
    refused = batch(team, "--database-url", url_of(team))
    assert (refused.returncode, "already exists" in refused.stderr) == (ExitCode.WRONG_USAGE, True)
    worker = PlayedWorker(url_of(team), 2, **ending(0, "succeeded"))
    worker.start()
    assert batch(team, "--database-url", url_of(team), "--resume").returncode == 0
    worker.end()
    again = batch(team, "--database-url", url_of(team), "--resume")
    assert "2 goals, 2 of them finished for workers: 0 workers with 0 places\n" in again.stderr
    last = batch(team, "--database-url", url_of(team), "--resume", "--json")
    assert [json.loads(line)["type"] for line in last.stdout.splitlines()] == ["batch_ended"]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--max-failures=1", "--max-failures cannot be used with --database-url"),
        ("--codex-bin=/usr/bin/true", "--codex-bin cannot be used for a run on workers"),
    ],
)
def test_option_that_workers_cannot_follow_is_refused(tmp_path: Path, option: str, words: str) -> None:
    team = one_role(tmp_path)
    write_goals(team, {"goal": "first"})
    refused = batch(team, "--database-url", url_of(team), option)
    assert (refused.returncode, words in refused.stderr) == (ExitCode.WRONG_USAGE, True), refused.stderr


def test_goal_that_could_not_start_is_resumed(tmp_path: Path) -> None:
    """Such as one whose repository was missing."""
    team = one_role(tmp_path)
    write_goals(team, {"goal": "first", "repository": str(tmp_path / "gone")})
    for code, status, options in ((2, "failed", ()), (0, "succeeded", ("--resume",))):
        worker = PlayedWorker(url_of(team), 1, **ending(code, status))
        worker.start()
        done = batch(team, "--database-url", url_of(team), *options)
        worker.end()
        assert (done.returncode, results(team)["1"]["status"]) == (code, status), done.stderr
        assert results(team)["1"]["reason"] == "as played"


def test_goals_beyond_the_total_are_not_started(tmp_path: Path) -> None:
    """A worker leaves the second run to the totals of its batch, and nothing runs that could free a part."""
    team = one_role(tmp_path)
    write_goals(team, {"goal": "first"}, {"goal": "second"})
    worker = PlayedWorker(url_of(team), 2, **ending(0, "succeeded"))
    worker.start()
    done = batch(team, "--database-url", url_of(team), "--concurrency=3", "--max-turns=4", "--total-max-turns=6")
    worker.end()
    assert done.returncode == ExitCode.BUDGET_USED_UP
    assert [each["status"] for each in results(team).values()] == ["succeeded", "not_started"]
    assert results(team)["2"]["reason"] == "the batch has used or reserved 3 of 6 turns"
    database = Database.open(url_of(team))
    left = QueuedRuns(database).find("goals-2")
    assert left is not None
    assert (left.state, left.exit_code) == (RunState.PARKED, ExitCode.BUDGET_USED_UP)
    assert keep_house(database, QueuedRuns(database)) == [], (
        "no worker starts what the batch has reported as not started"
    )
    second = PlayedWorker(url_of(team), 1, **ending(0, "succeeded"))
    second.start()
    resumed = batch(team, "--database-url", url_of(team), "--resume", "--total-max-turns=7")
    second.end()
    assert resumed.returncode == 0, resumed.stderr
    with database.transaction() as connection:
        assert recorded_limits(connection, "goals") == {"concurrency": 3, "turns": 7}


@dataclass
class Watched:
    """Two goals of a batch that allows one run at once. The second one is held, because the first one runs."""

    folder: Path

    def __post_init__(self) -> None:
        self.database = Database.open(f"sqlite:///{self.folder}/queue.sqlite")
        self.queued = QueuedRuns(self.database)
        place = BatchQueue("night", "goals", {CONCURRENCY: 1})
        self.runs = SubmittedRuns(self.database, Mock(request=self.request), place)
        for run in plan_runs(goals({"goal": "g"}, {"goal": "h"}), defaults(self.folder), "night", self.folder):
            self.runs.start(run)
        assert self.news() == []
        self.first = self.claim("night-1")
        assert self.first is not None
        assert self.claim("night-2") is None

    def request(self, options: RunOptions, **place: Any) -> RunRequest:
        return request(options.place.run_id or "", {"flow": "cycles"}, **place)

    def claim(self, run_id: str) -> QueuedRun | None:
        return self.queued.claim(run_id, "a", "identity of a")

    def news(self) -> list[tuple[str, str]]:
        """ID and status of each goal that is over."""
        return [(name, news.status) for name, news in self.runs.news(0) if isinstance(news, GoalResult)]


def test_new_totals_count_before_a_run_is_enqueued_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that takes it at once compares it with them."""
    watched = Watched(tmp_path)
    second = watched.queued.find("night-2")
    assert second is not None
    assert watched.queued.withdraw(second, "as played", ExitCode.BUDGET_USED_UP)
    fitted: list[bool] = []
    monkeypatch.setattr(QueuedRuns, "enqueue_again", lambda self, run, _why: fitted.append(self.fits(run)))
    resumed = SubmittedRuns(watched.database, Mock(), BatchQueue("night", "goals", {CONCURRENCY: 2}))
    (_, run) = plan_runs(goals({"goal": "g"}, {"goal": "h"}), defaults(tmp_path), "night", tmp_path)
    resumed.start(run)
    list(resumed.news(0))
    assert fitted == [True]


def test_batch_waits_for_a_goal_that_only_waits_for_a_place(tmp_path: Path) -> None:
    """A worker looks at what is held some seconds after the first goal has ended."""
    watched = Watched(tmp_path)
    assert watched.first is not None
    watched.queued.save(watched.first, **ending(0, "succeeded"))
    assert watched.news() == [("1", "succeeded")]
    assert watched.news() == []
    keep_house(watched.database, watched.queued)
    second = watched.claim("night-2")
    assert second is not None
    watched.queued.save(second, **ending(0, "succeeded"))
    assert watched.news() == [("2", "succeeded")]


def test_held_goal_that_is_no_longer_watched_still_waits(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.runs.stop()
    assert watched.news() == [("1", "running"), ("2", "waiting")]


def test_goal_that_is_cancelled_while_it_waits_is_interrupted(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    held = watched.queued.find("night-2")
    assert held is not None
    assert watched.queued.withdraw(held, "cancelled by me")
    assert watched.news() == [("2", "interrupted")]


def test_secret_of_the_environment_is_never_queued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "b7f3a9d1c5e8f2a4")
    team = one_role(tmp_path)
    write_goals(team, {"goal": "use b7f3a9d1c5e8f2a4"})
    refused = batch(team, "--database-url", url_of(team))
    assert refused.returncode == ExitCode.WRONG_USAGE
    assert "secret environment variable" in refused.stderr
    assert QueuedRuns(Database.open(url_of(team))).list() == []


def test_address_may_come_from_a_secret_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the guide, whose first command exports it. It is in no row."""
    url = f"sqlite:///{tmp_path}/queue.sqlite"
    monkeypatch.setenv("CODEX_MULTI_ROLE_DATABASE_URL", url)
    require_portable({"goal": "first", "database_url": url}, OF_THIS_MACHINE)
    with pytest.raises(UsageError, match="secret environment variable"):
        require_portable({"goal": f"use {url}", "database_url": url}, OF_THIS_MACHINE)
