"""The commands for runs that workers execute, given on a machine that has only the address of the database.

Costs: each command works with a database and a store of its own.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa

from codex_multi_role.extensions.machines.workers.database_tables import settings
from tests.support.console import console
from tests.support.databases import execute
from tests.support.histories import History
from tests.support.processes import wait_until
from tests.support.recorded_runs import make_asking, make_run
from tests.support.runs_without_workers import RunsWithoutWorkers, on_workers

__all__ = ["on_workers"]
OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def changed(folder: Path) -> History:
    """A run that worked in a clone which is not on this machine any more."""
    history = History(folder, {"a.txt": "one\n"}, committed={"a.txt": "one\n"})
    history.turn("writer", {"a.txt": "two\n"})
    history.ended()
    ended = {"status": "succeeded", "outcome": "done", "reason": "", "exit_code": 0, "totals": {}, "goal": "two"}
    history.run.write_record({**history.run.record(), **ended})
    return history


def test_all_runs_are_listed_with_their_workers(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    on_workers.share(make_run(tmp_path / "worker", "done"))
    make_run(tmp_path / "elsewhere/runs", "here")
    on_workers.submit("working")
    on_workers.claim("working")
    on_workers.submit("waiting")
    heading, *rows = on_workers.command("runs").stdout.splitlines()
    assert heading.split()[:3] == ["run", "state", "worker"]
    cells = [re.split(" {2,}", row) for row in rows]
    told = {run: [state.partition(":")[0], worker] for run, state, worker, *_ in cells}
    assert told == {
        "done": ["ended", "-"],
        "here": ["ended", "-"],
        "working": ["running", "anna"],
        "waiting": ["queued", "-"],
    }
    assert "there are no workers" in rows[-1]
    records = {each["run_id"]: each for each in json.loads(on_workers.command("runs", "--json").stdout)}
    assert (records["working"]["shared"]["attempt"], "shared" in records["here"]) == (1, False)


def test_show_tells_who_works_on_a_run_or_why_nobody_does(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    on_workers.submit("first")
    waiting = on_workers.command("show", "first").stdout
    assert "status     queued: Waiting for a worker\n" in waiting
    assert "queue      goals, for " in waiting
    assert "there are no workers\n" in waiting
    assert "next:" not in waiting
    on_workers.save(on_workers.claim("first"), make_run(tmp_path / "worker", "first", status="running", exit_code=None))
    shown = on_workers.command("show", "first").stdout
    assert "worker     anna (attempt 1)\n" in shown
    assert "workspace  /project, on the worker\n" in shown
    assert "repairs turn 1" in shown


def test_question_is_shown_and_answered_from_anywhere(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    on_workers.share(make_asking(tmp_path / "worker"))
    shown = on_workers.command("show")
    assert "question   ok.1: Ship it?" in shown.stdout
    which = f"asking --database-url {on_workers.url}"
    assert shown.stdout.endswith(f"next: codex-multi-role approve {which}\n")
    assert on_workers.command("reject", "asking").returncode == 2
    done = on_workers.command("approve", "--comment", "good")
    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        ["asking: ok.1 is approved.", "asking waits in the queue goals: ok.1 waits; there are no workers"],
    )
    assert "ok.1 was approved by" in on_workers.command("approve").stderr


def test_waiting_run_is_cancelled_and_resumed_from_anywhere(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    on_workers.submit("first")
    done = on_workers.command("cancel")
    assert done.returncode == 0
    assert done.stderr.startswith("first: Cancelled: cancelled by ")
    watched = on_workers.command("watch", "--plain")
    assert watched.returncode == 130
    assert f"next     codex-multi-role resume first --database-url {on_workers.url}\n" in watched.stderr
    again = on_workers.command("cancel")
    assert (again.returncode, again.stderr) == (0, done.stderr)
    refused = on_workers.command("resume", "--workspace", str(tmp_path))
    assert (refused.returncode, "--workspace cannot be used" in refused.stderr) == (2, True)
    assert "--wait cannot be used" in on_workers.command("resume", "--wait").stderr


def test_ended_run_is_watched_and_resumed_without_work(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    """There is nothing left to do: `resume` reports the run as it ended."""
    on_workers.share(make_run(tmp_path / "worker", "done", status="succeeded", outcome="done", exit_code=0))
    for command in ("watch", "resume"):
        done = on_workers.command(command, "--json")
        assert done.returncode == 0
        assert json.loads(done.stdout.splitlines()[-1])["type"] == "run_ended"


@pytest.mark.extensions
def test_diff_and_apply_need_no_workspace(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    on_workers.share(changed(tmp_path).run)
    (tmp_path / "workspace").rename(tmp_path / "gone")
    assert "-one\n+two\n" in on_workers.command("diff").stdout
    (checkout := tmp_path / "checkout").mkdir()
    (checkout / "a.txt").write_text("one\n")
    assert on_workers.command("apply", "--to", str(checkout)).stdout == "changed a.txt\n"
    assert (checkout / "a.txt").read_text() == "two\n"
    assert "writer" in on_workers.command("blame", "a.txt").stdout


@pytest.mark.extensions
def test_export_works_in_any_clone(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    on_workers.share(changed(tmp_path).run)
    subprocess.run(["git", "clone", "-q", "workspace", "clone"], cwd=tmp_path, check=True)
    (tmp_path / "workspace").rename(tmp_path / "gone")
    outside = on_workers.command("export", "--branch", "agents/x")
    assert "is not in a git repository, and that of the run was on another machine" in outside.stderr
    done = on_workers.command("export", "--branch", "agents/x", folder=tmp_path / "clone")
    assert done.stdout.startswith("branch agents/x: 1 commit on ")
    log = subprocess.check_output(["git", "log", "--format=%an", "agents/x"], cwd=tmp_path / "clone", text=True)
    assert log.split() == ["writer", "somebody"]
    described = on_workers.command("pr", folder=tmp_path / "clone").stdout
    assert described.startswith("Run first of the flow own\n")


@pytest.mark.extensions
def test_commit_that_a_clone_lacks_is_named(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    on_workers.share(changed(tmp_path).run)
    subprocess.run(["git", "init", "-q", "other"], cwd=tmp_path, check=True)
    done = on_workers.command("export", "--branch", "x", folder=tmp_path / "other")
    assert "lacks the commit" in done.stderr
    assert "`apply` needs no commit" in done.stderr


def test_report_is_written_from_anywhere(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    on_workers.share(make_run(tmp_path / "worker", "done"))
    assert on_workers.command("report", "-o", "page.html").returncode == 0
    assert "Convert roman numerals" in (tmp_path / "elsewhere/page.html").read_text()


def test_unknown_run_names_both_places(on_workers: RunsWithoutWorkers) -> None:
    on_workers.submit("first")
    done = on_workers.command("show", "frist")
    assert done.returncode == 2
    assert "there are no runs in" in done.stderr
    assert f"and none in the database {on_workers.url}" in done.stderr


def test_store_that_is_not_on_this_machine_is_named(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    on_workers.share(make_run(tmp_path / "worker", "done"))
    (tmp_path / "store").rename(tmp_path / "of-another-machine")
    done = on_workers.command("show")
    assert done.returncode == 3
    assert "is not the store of the database" in done.stderr
    assert on_workers.command("runs").returncode == 0


def test_database_of_journals_changes_nothing(tmp_path: Path, on_workers: RunsWithoutWorkers) -> None:
    """`run` may keep journals in a database that no worker uses."""
    make_run(tmp_path / "runs", "here")
    url = f"sqlite:///{tmp_path}/journals.sqlite"
    done = on_workers.command("runs", "--database-url", url, folder=tmp_path)
    assert "worker" not in done.stdout.splitlines()[0]
    assert on_workers.command("show", "--database-url", url, folder=tmp_path).returncode == 0


def test_unreachable_database_is_named(on_workers: RunsWithoutWorkers) -> None:
    done = on_workers.command("runs", "--database-url", "postgresql://nobody@127.0.0.1:1/none")
    assert done.returncode == 3
    assert "cannot be reached" in done.stderr


@pytest.mark.extensions
def test_run_without_saved_state_says_what_is_missing(on_workers: RunsWithoutWorkers) -> None:
    on_workers.submit("first")
    done = on_workers.command("diff", "first")
    assert done.returncode == 2
    assert "run first" in done.stderr


def test_limits_of_an_earlier_version_are_named(on_workers: RunsWithoutWorkers) -> None:
    with on_workers.database.transaction() as connection:
        connection.execute(sa.insert(settings).values(name="limit:model:gpt-5", value="4"))
    assert "the limits of model:gpt-5 do not count" in on_workers.command("queues").stderr


@pytest.mark.sample("queues")
@pytest.mark.parametrize("command", [("queues",), ("runs",), ("watch", "--all")])
def test_command_closes_its_connections(command: tuple[str, ...], database_url: str, tmp_path: Path) -> None:
    assert console("queues", "--database-url", database_url, folder=tmp_path).returncode == 0
    done = console(*command, "--database-url", database_url, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: execute(database_url, OTHERS) == [(0,)], "the end of its connections")
