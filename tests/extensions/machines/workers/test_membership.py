"""Who is alive, and what happens to the runs of those who are not."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.database_tables import messages, runs, server_seconds, workers
from codex_multi_role.extensions.machines.workers.housekeeping import keep_house
from codex_multi_role.extensions.machines.workers.membership import Membership, WorkerSettings, list_workers
from codex_multi_role.extensions.machines.workers.overview import queue_records, why_waiting, worker_records
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRuns, RunState
from tests.support.shared_runs import request


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
