"""Rows of runs: who may take them, and whose writes count."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.workers.batch_totals import record_batch
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.housekeeping import keep_house
from codex_multi_role.extensions.machines.workers.queued_runs import AttemptOver, QueuedRuns, RunState
from tests.support.shared_runs import claimed, request


def test_run_is_claimed_once(queued: QueuedRuns) -> None:
    queued.submit([request("one")])
    first = claimed(queued)
    assert (first.state, first.attempt, first.worker, first.goal) == (RunState.RUNNING, 1, "a", "goal of one")
    assert queued.claim("one", "b", "identity of b") is None
    assert queued.claim("unknown", "b", "identity of b") is None


def test_run_submitted_twice_stays_as_it_is(queued: QueuedRuns) -> None:
    queued.submit([request("one")])
    claimed(queued)
    queued.submit([request("one", priority=9), request("two")])
    assert [(run.run_id, run.state, run.priority) for run in queued.list()] == [
        ("one", "running", 0),
        ("two", "waiting", 0),
    ]


def test_runs_keep_their_order_if_a_clock_is_set_back(queued: QueuedRuns) -> None:
    """All get the time of the submission; one was seen to be older than the line before it."""
    names = [f"run {number}" for number in range(30, 0, -1)]
    queued.submit([request(name, line=line) for line, name in enumerate(names)])
    found = queued.list()
    assert [run.run_id for run in found] == names
    assert len({run.submitted_at for run in found}) == 1


def test_late_process_writes_nothing(queued: QueuedRuns) -> None:
    queued.submit([request("one")])
    late = claimed(queued)
    queued.save(late, manifest="first")
    assert queued.enqueue_again(late, "its worker died")
    with pytest.raises(AttemptOver, match="taken over"):
        queued.save(late, manifest="late")
    successor = claimed(queued, worker="b")
    assert (successor.attempt, successor.manifest) == (2, "first")
    with pytest.raises(AttemptOver):
        queued.save(late, manifest="late")
    queued.save(successor, manifest="second")
    found = queued.find("one")
    assert found is not None
    assert found.manifest == "second"


def test_run_is_enqueued_again_once(queued: QueuedRuns) -> None:
    """Several workers see the same dead one; the first takes its runs back."""
    queued.submit([request("one")])
    run = claimed(queued)
    assert queued.enqueue_again(run, "its worker died")
    assert not queued.enqueue_again(run, "its worker died")


def test_failing_engine_is_a_storage_error(database: Database, queued: QueuedRuns) -> None:
    """A worker reports those and tries again; others would end it."""
    queued.submit([request("one")])
    run = claimed(queued)
    table = "dbos.workflow_status CASCADE" if database.is_postgres else "workflow_status"
    with database.transaction() as connection:
        connection.execute(sa.text(f"DROP TABLE {table}"))
    with pytest.raises(StorageError, match="cannot be used"):
        queued.enqueue_again(run, "its worker died")
    with pytest.raises(StorageError, match="cannot be used"):
        queued.lost(0, 1)


def test_batches_take_turns(queued: QueuedRuns) -> None:
    """A batch submitted later starts where the earlier one is now, not behind all of it."""
    queued.submit([request(f"early{number}", batch="early") for number in range(5)])
    claimed(queued, "early0")
    claimed(queued, "early1")
    queued.submit([request(f"late{number}", batch="late") for number in range(2)])
    order = sorted(queued.list(), key=lambda run: (run.rank, run.submitted_at, run.run_id))
    waiting = [run.run_id for run in order if run.state is RunState.WAITING]
    assert waiting == ["early2", "late0", "early3", "late1", "early4"]


def test_queue_with_the_most_urgent_run_comes_first(queued: QueuedRuns) -> None:
    queued.submit([request("one", queue="slow"), request("two", queue="slow"), request("three", priority=5)])
    assert list(queued.waiting_by_queue().items()) == [("goals", 1), ("slow", 2)]


def test_goals_that_fit_a_total_in_money_exactly_start(database: Database, queued: QueuedRuns) -> None:
    """The sum of 0.1 three times is a little more than 0.3."""
    with database.transaction() as connection:
        record_batch(connection, "nightly", {"cost": 0.3})
    names = ("one", "two", "three", "four")
    queued.submit([request(name, batch="nightly", options={"max_cost": 0.1}) for name in names])
    for name in names[:3]:
        claimed(queued, name)
    assert queued.claim("four", "a", "identity of a") is None
    held = queued.find("four")
    assert held is not None
    assert held.why == "the batch has used or reserved $0.30 of $0.30"


def test_resumed_run_counts_what_it_spent_once(database: Database, queued: QueuedRuns) -> None:
    """Its limits, which it reserves again, include what it has spent."""
    with database.transaction() as connection:
        record_batch(connection, "nightly", {"turns": 4})
    queued.submit([request("one", batch="nightly", options={"max_turns": 4})])
    parked = claimed(queued, "one")
    queued.save(parked, state=RunState.PARKED, record={"totals": {"turns": 2}})
    again = queued.find("one")
    assert again is not None
    assert queued.enqueue_again(again, "answered")
    claimed(queued, "one")


@pytest.mark.parametrize("manifest", [None, "saved"])
def test_run_resumed_with_another_limit_reserves_that(
    database: Database, queued: QueuedRuns, manifest: str | None
) -> None:
    with database.transaction() as connection:
        record_batch(connection, "nightly", {"turns": 10})
    queued.submit([request(name, batch="nightly", options={"max_turns": 4}) for name in ("one", "two")])
    queued.save(claimed(queued, "one"), state=RunState.PARKED, record={"totals": {"turns": 4}}, manifest=manifest)
    claimed(queued, "two")
    parked = queued.find("one")
    assert parked is not None
    queued.change(parked, {"max_turns": 8})
    assert queued.enqueue_again(parked, "resumed")
    assert queued.claim("one", "a", "identity of a") is None
    held = queued.find("one")
    assert held is not None
    assert (held.state, held.why) == (RunState.HELD, "the batch has used or reserved 4 of 10 turns")


def test_batch_never_exceeds_its_totals(database: Database, queued: QueuedRuns) -> None:
    """Three runs of at most 4 turns share 10: the third waits until the first two have left enough."""
    with database.transaction() as connection:
        record_batch(connection, "nightly", {"turns": 10})
    queued.submit([request(name, batch="nightly", options={"max_turns": 4}) for name in ("one", "two", "three")])
    one = claimed(queued, "one")
    claimed(queued, "two")
    assert queued.claim("three", "a", "identity of a") is None
    held = queued.find("three")
    assert held is not None
    assert (held.state, held.why) == (RunState.HELD, "the batch has used or reserved 8 of 10 turns")
    assert not queued.fits(held)
    queued.save(one, state=RunState.ENDED, record={"totals": {"turns": 2, "input_tokens": 5}})
    assert queued.fits(held)
    keep_house(database, queued)
    claimed(queued, "three")
