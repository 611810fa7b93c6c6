"""What any worker does for all: with a long past, with goals that kill their workers, with many held goals."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.machines.workers.batch_totals import record_batch
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.database_tables import runs, workflows
from codex_multi_role.extensions.machines.workers.housekeeping import AT_ONCE, keep_house
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRuns, RunState
from tests.support.shared_runs import claimed, found, request

ENDED = 70_000
"""More than a statement of Postgres may have parameters."""


def add_ended_runs(database: Database) -> None:
    """Their workflows are pending for ever, as those of all runs that have ended."""
    ours, engine = runs.name, workflows.name
    if database.is_postgres:
        ours, engine = f"codex_multi_role.{ours}", f"dbos.{engine}"
    numbers = f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {ENDED})"
    row = (
        "run_id, goal, request, queue, priority, rank, state, why, enqueued, attempt, crashes, submitted_at, changed_at"
    )
    values = "'old-' || n, '', '{}', 'goals', 0, n, 'ended', '', true, 1, 0, 1, 1"
    workflow = "workflow_uuid, status, name, queue_name, created_at, updated_at, started_at_epoch_ms, priority"
    with database.transaction() as connection:
        connection.execute(sa.text(f"INSERT INTO {ours} ({row}) {numbers} SELECT {values} FROM numbers"))
        values = "'old-' || n, 'PENDING', 'flow', 'goals', 1, 1, 1, n"
        connection.execute(sa.text(f"INSERT INTO {engine} ({workflow}) {numbers} SELECT {values} FROM numbers"))


def take(database: Database, run_id: str) -> None:
    """Let a process take the run from its queue a long time ago."""
    own = sa.update(workflows).where(workflows.c.workflow_uuid == run_id)
    with database.transaction() as connection:
        connection.execute(own.values(status="PENDING", started_at_epoch_ms=1))


def test_long_past_does_not_stop_a_worker(database: Database, queued: QueuedRuns) -> None:
    add_ended_runs(database)
    queued.submit([request("one"), request("two")])
    assert keep_house(database, queued) == []
    take(database, "two")
    assert keep_house(database, queued) == ["run two is enqueued again: the process that took it was killed"]
    assert queued.waiting_by_queue() == {"goals": 2}


def test_run_that_loses_every_worker_is_given_up(database: Database) -> None:
    """Such as a goal that uses up the memory of its machine."""
    queued = QueuedRuns(database, max_crashes=3)
    queued.submit([request("one")])
    for number in range(3):
        claimed(queued, "one", f"worker-{number}")
        assert len(keep_house(database, queued)) == 1
    given_up = found(queued, "one")
    assert (given_up.state, given_up.exit_code, given_up.attempt) == (RunState.ENDED, ExitCode.FAILED, 3)
    assert given_up.why == (
        "given up: its process or worker was lost 3 times, last on worker worker-2: its worker worker-2 died"
    )
    assert queued.claim("one", "b", "identity of b") is None
    queued.close()


def test_losses_of_processes_and_workers_are_one_number(database: Database) -> None:
    queued = QueuedRuns(database, max_crashes=2)
    queued.submit([request("one")])
    assert queued.enqueue_again(claimed(queued, "one"), "its process crashed", crashed=True)
    claimed(queued, "one")
    keep_house(database, queued)
    assert found(queued, "one").exit_code == ExitCode.FAILED
    queued.close()


@pytest.mark.parametrize("state", [RunState.ENDED, RunState.PARKED])
def test_run_that_is_continued_counts_its_losses_from_zero(database: Database, state: RunState) -> None:
    queued = QueuedRuns(database, max_crashes=2)
    queued.submit([request("one")])
    assert queued.enqueue_again(claimed(queued, "one"), "its process crashed", crashed=True)
    queued.save(claimed(queued, "one"), state=state)
    assert queued.enqueue_again(found(queued, "one"), "its batch is resumed")
    claimed(queued, "one")
    keep_house(database, queued)
    assert found(queued, "one").state is RunState.WAITING
    queued.close()


def test_held_goals_do_not_block_later_batches(database: Database, queued: QueuedRuns) -> None:
    """The first batch has used up its total; the second one's goal was only held until another one ended."""
    submit_held(database, queued, "early", AT_ONCE + 10, {"turns": 0})
    submit_held(database, queued, "late", 2, {"turns": 5})
    keep_house(database, queued)
    assert [run.run_id for run in queued.list(runs.c.state == RunState.WAITING)] == ["late0"]


def test_held_goals_of_many_batches_have_their_turn(database: Database, queued: QueuedRuns) -> None:
    for number in range(AT_ONCE + 10):
        submit_held(database, queued, f"early{number}-", 1, {"turns": 0})
    submit_held(database, queued, "late", 1, {"turns": 5})
    looks = (keep_house(database, queued) for _ in range(100))
    assert any(looks), "the part that is looked at is random"
    assert found(queued, "late0").state is RunState.WAITING


def test_smaller_goal_of_a_batch_is_not_held_by_a_larger_one(database: Database, queued: QueuedRuns) -> None:
    submit_held(database, queued, "large", 3, {"turns": 4}, batch="nightly")
    submit_held(database, queued, "small", 2, {"turns": 4}, batch="nightly", max_turns=4)
    keep_house(database, queued)
    assert [run.run_id for run in queued.list(runs.c.state == RunState.WAITING)] == ["small0"]


def test_run_that_the_engine_does_not_know_stops_no_worker(database: Database, queued: QueuedRuns) -> None:
    """Its problem is reported, and the rest is done."""
    queued.submit([request("unknown"), request("two")])
    with database.transaction() as connection:
        connection.execute(sa.update(runs).where(runs.c.run_id == "unknown").values(enqueued=False, changed_at=1))
        connection.execute(sa.delete(workflows).where(workflows.c.workflow_uuid == "unknown"))
    take(database, "two")
    problem, done = keep_house(database, queued)
    assert "unknown" in problem
    assert done == "run two is enqueued again: the process that took it was killed"


def submit_held(
    database: Database,
    queued: QueuedRuns,
    name: str,
    count: int,
    totals: dict[str, float],
    batch: str = "",
    max_turns: int = 5,
) -> None:
    batch = batch or name
    with database.transaction() as connection:
        record_batch(connection, batch, totals)
    options = {"max_turns": max_turns}
    queued.submit([request(f"{name}{number}", options, batch=batch, line=number) for number in range(count)])
    held = sa.update(runs).where(runs.c.run_id.startswith(name)).values(state=RunState.HELD)
    with database.transaction() as connection:
        connection.execute(held)
