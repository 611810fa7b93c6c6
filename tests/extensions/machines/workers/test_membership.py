"""Who is alive, by the server's clock alone, and what happens to the runs of those who are not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.database_tables import messages, runs, server_seconds, workers
from codex_multi_role.extensions.machines.workers.housekeeping import keep_house
from codex_multi_role.extensions.machines.workers.membership import Membership, WorkerSettings, list_workers
from codex_multi_role.extensions.machines.workers.overview import queue_records, why_waiting, worker_records
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRuns, RunState
from tests.support.shared_runs import SharedRuns, request
from tests.support.teams import TeamFolder, say


def member(database: Database, name: str = "a", **more: object) -> Membership:
    settings = {"queues": ("goals",), "labels": (), "concurrency": 1, **more}
    membership = Membership(database, WorkerSettings(name, **settings))  # type: ignore[arg-type]
    membership.join()
    return membership


def silence(database: Database, name: str) -> None:
    """Let the worker's last heartbeat be a minute ago."""
    own = sa.update(workers).where(workers.c.name == name).values(heartbeat_at=server_seconds() - 60)
    with database.transaction() as connection:
        connection.execute(own)


def test_second_worker_with_a_living_name_is_refused(database: Database) -> None:
    first = member(database)
    with pytest.raises(UsageError, match='a worker named "a" is alive'):
        member(database)
    silence(database, "a")
    second = member(database)
    assert not first.beat(is_draining=False)
    assert second.beat(is_draining=False)


def test_runs_of_a_dead_worker_are_taken_over(database: Database, queued: QueuedRuns) -> None:
    queued.submit([request("one"), request("two")])
    dead, living = member(database, "a"), member(database, "b")
    queued.claim("one", "a", dead.identity)
    queued.claim("two", "b", living.identity)
    assert keep_house(database, queued) == []
    silence(database, "a")
    assert len(keep_house(database, queued)) == 2
    assert [(run.run_id, run.state, run.why) for run in queued.list()] == [
        ("one", "waiting", "its worker a died"),
        ("two", "running", ""),
    ]
    assert not dead.beat(is_draining=False)


def test_runs_of_a_restarted_worker_are_taken_over(database: Database, queued: QueuedRuns) -> None:
    """The successor has the name, but does not work on what its predecessor left."""
    queued.submit([request("one")])
    queued.claim("one", "a", member(database).identity)
    silence(database, "a")
    member(database)
    keep_house(database, queued)
    assert [run.state for run in queued.list()] == [RunState.WAITING]


@pytest.mark.parametrize(("seconds", "state"), [(-1, RunState.WAITING), (60, RunState.PARKED)])
def test_parked_run_resumes_when_its_quota_resets(
    database: Database, queued: QueuedRuns, seconds: float, state: RunState
) -> None:
    _park(database, queued, resumes_at=server_seconds() + seconds)
    keep_house(database, queued)
    assert [run.state for run in queued.list()] == [state]


def test_parked_run_resumes_when_an_answer_arrives(database: Database, queued: QueuedRuns) -> None:
    _park(database, queued)
    keep_house(database, queued)
    assert [run.state for run in queued.list()] == [RunState.PARKED]
    answer = {"run_id": "one", "kind": "answer", "body": {}, "sent_at": server_seconds()}
    with database.transaction() as connection:
        connection.execute(sa.insert(messages).values(answer))
    keep_house(database, queued)
    assert [run.state for run in queued.list()] == [RunState.WAITING]


def _park(database: Database, queued: QueuedRuns, **more: object) -> None:
    queued.submit([request("one")])
    run = queued.claim("one", "a", member(database).identity)
    assert run is not None
    queued.save(run, state=RunState.PARKED, why="quota", exit_code=5, **more)


def test_enqueuing_cut_short_by_a_kill_is_completed(database: Database, queued: QueuedRuns) -> None:
    queued.submit([request("one")])
    row = sa.update(runs).values(enqueued=False, changed_at=server_seconds() - 60)
    with database.transaction() as connection:
        connection.execute(row)
    assert queued.waiting_by_queue() == {}
    assert len(keep_house(database, queued)) == 1
    assert queued.waiting_by_queue() == {"goals": 1}


def test_queues_say_why_a_run_waits(database: Database, queued: QueuedRuns) -> None:
    queued.submit([request("one", labels=("gpu",))])

    def why() -> str:
        (record,) = queue_records(database)
        assert (record["queue"], record["waiting"]) == ("goals+gpu", 1)
        return str(record["why"])

    assert why() == "there are no workers"
    member(database, "plain")
    assert why() == "no worker takes runs of this queue with these labels"
    able = member(database, "able", labels=("gpu", "linux"))
    assert why() == "the workers for it are busy, or about to start them"
    able.beat(is_draining=True)
    assert why() == "the workers for it are draining"


def test_workers_list_what_they_work_on(database: Database, queued: QueuedRuns) -> None:
    queued.submit([request("one")])
    at_work = member(database, "a")
    member(database, "b", labels=("gpu",))
    queued.claim("one", "a", at_work.identity)
    silence(database, "b")
    records = [(each["name"], each["state"], each["runs"], each["labels"]) for each in worker_records(database)]
    assert records == [("a", "alive", ["one"], []), ("b", "dead", [], ["gpu"])]
    assert why_waiting("goals", list_workers(database)) == "the workers for it are busy, or about to start them"


AHEAD, BEHIND = 300, -300
TURNS = 6
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*original)(clockid_t, struct timespec *);
    if (!original)
        original = dlsym(RTLD_NEXT, "clock_gettime");
    int result = original(clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += SECONDS;
    return result;
}
"""
"""A library in front of the C library's, which changes the time of day."""


@pytest.mark.long
def test_workers_with_wrong_clocks_leave_each_other_alone(tmp_path: Path, on_postgres: SharedRuns) -> None:
    """Only here clocks differ. Until one is killed: then the other takes its run, and no finished turn is repeated."""
    try:
        variables = {name: wrong_clock(tmp_path, seconds) for name, seconds in (("a", AHEAD), ("b", BEHIND))}
    except FileNotFoundError:
        pytest.skip("no C compiler")
    assert clock_of(variables["a"]) - clock_of(variables["b"]) > AHEAD - BEHIND - 60
    shared = on_postgres
    plays = [{**say(f"step {number}"), "delay_seconds": 2} for number in range(TURNS)]
    team = TeamFolder(tmp_path / "team", {"one": {}}, {"one": plays})
    shared.submit(team.options(cycles=TURNS), "first", "second", "third", "fourth")
    for name, environment in variables.items():
        shared.start(name, env=environment)
    shared.wait(lambda: sum(run.state is RunState.ENDED for run in shared.queued.list()) == 2)
    assert {(run.attempt, run.worker) for run in shared.queued.list() if run.state is RunState.ENDED} == {
        (1, "a"),
        (1, "b"),
    }
    shared.wait(lambda: any(run.worker == "a" and run.state is RunState.RUNNING for run in shared.queued.list()))
    shared.kill("a")
    shared.wait_for(RunState.ENDED, "first", "second", "third", "fourth")
    assert sorted(run.attempt for run in shared.queued.list()) == [1, 1, 1, 2]
    assert {(run.record or {})["totals"]["turns"] for run in shared.queued.list()} <= {TURNS, TURNS + 1}


def clock_of(environment: dict[str, str]) -> float:
    """What a process with these variables takes for the time."""
    program = [sys.executable, "-c", "import time; print(time.time())"]
    printed = subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout
    assert abs(float(printed) - time.time()) > 60
    return float(printed)


def wrong_clock(folder: Path, seconds: int) -> dict[str, str]:
    """Variables for a process whose clock is wrong by that. Raises ``FileNotFoundError`` without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("cc")
    library = folder / f"clock{seconds:+}.so"
    source = library.with_suffix(".c")
    source.write_text(CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", f"-DSECONDS=({seconds})", "-o", library, source, "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}
