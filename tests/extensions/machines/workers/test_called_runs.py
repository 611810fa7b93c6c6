"""Items of a fan-out as runs on workers: taken, merged, killed, cancelled, parked, and within their parent's budget."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa

from codex_multi_role.extensions.machines.store import read_saved, restore_run
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.database_tables import messages
from codex_multi_role.extensions.machines.workers.deciding import resume_shared
from codex_multi_role.extensions.machines.workers.housekeeping import keep_house
from codex_multi_role.extensions.machines.workers.membership import Membership, WorkerSettings
from codex_multi_role.extensions.machines.workers.messages import send_answer, send_cancellation, send_stop
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRuns, RunState
from codex_multi_role.extensions.machines.workers.shared_runs import SharedRuns as Shared
from codex_multi_role.presentation.progress import Progress
from codex_multi_role.run_folder import Answer, RunFolder, list_turns, read_events
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_folder.items import Cancellation
from codex_multi_role.run_folder.states import read_states
from tests.support.placed_calls import WRITES, calling
from tests.support.shared_runs import SharedRuns, left_of, request
from tests.support.teams import NEVER, Record, TeamFolder

ITEMS = ["a", "b", "c", "d"]
SLOW = [{**WRITES, "delay_seconds": 3}] * 40
STUCK: Record = {"choose": [{"when": "'ITEM b' in prompt", **NEVER}, {**WRITES}]}


@pytest.fixture
def shared(tmp_path: Path, database_url: str) -> Iterator[SharedRuns]:
    shared = SharedRuns(tmp_path, database_url)
    yield shared
    shared.close()
    assert left_of(tmp_path) == []


def submitted(shared: SharedRuns, team: TeamFolder, **options: object) -> None:
    (team.workspace / "base.txt").write_text("base\n")
    shared.submit(team.options(flow="own", **options), "first")


def restored(shared: SharedRuns, run_id: str) -> RunFolder:
    folder = shared.folder / "seen" / run_id
    restore_run(shared.store, shared.run(run_id).manifest or "", folder)
    return RunFolder(folder)


def files_of(shared: SharedRuns, run_id: str) -> list[str]:
    """The files of the run's workspace, as it was saved last."""
    tree = read_saved(shared.store, shared.run(run_id).manifest or "").tree
    git_dir = restored(shared, run_id).snapshots_path
    command = ["git", "--git-dir", str(git_dir), "ls-tree", "-r", "--name-only", tree]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def paid_turns(shared: SharedRuns) -> list[tuple[str, int]]:
    """Run and journal position of every completed turn, of all runs."""
    found = []
    for run in shared.queued.list():
        records = [turn.result() for _, turn in list_turns(restored(shared, run.run_id))]
        found += [(run.run_id, each["journal_step"]) for each in records if each["status"] == "completed"]
    return found


def states_of_items(shared: SharedRuns) -> list[str]:
    return [item["state"] for item in read_states(restored(shared, "first"))["items"]]


def living_worker(database: Database, name: str = "a") -> str:
    """The identity of a worker that has just joined."""
    membership = Membership(database, WorkerSettings(name, ("goals",), (), 1))
    membership.join()
    return membership.identity


def is_running(shared: SharedRuns, run_id: str) -> bool:
    found = shared.queued.find(run_id)
    return found is not None and found.state is RunState.RUNNING


def is_told_to_stop(shared: SharedRuns, run_id: str) -> bool:
    """Whether the run was told, or has already stopped."""
    told = sa.select(messages.c.number).where(messages.c.run_id == run_id, messages.c.kind == "stop")
    with shared.database.transaction() as connection:
        is_told = connection.execute(told).first() is not None
    return is_told or not is_running(shared, run_id)


def has_started(shared: SharedRuns, run_id: str) -> bool:
    found = shared.queued.find(run_id)
    return found is not None and found.state is not RunState.WAITING and bool(found.manifest)


def test_called_run_comes_before_other_runs(queued: QueuedRuns) -> None:
    queued.submit([request(f"other{number}") for number in range(3)])
    queued.submit([request("called", parent="other0", queue="special"), request("urgent", priority=1, queue="urgent")])
    assert list(queued.waiting_by_queue()) == ["urgent", "special", "goals"]
    queued.submit([request("later", queue="later")])
    assert list(queued.waiting_by_queue())[-2:] == ["goals", "later"]


def test_runs_whose_parent_ended_are_stopped(database: Database, queued: QueuedRuns) -> None:
    queued.submit([request("first"), request("waiting", parent="first"), request("running", parent="first")])
    identity = living_worker(database)

    def stopped() -> list[str]:
        return [line.split()[1] for line in keep_house(database, queued) if "is stopped" in line]

    parent = queued.claim("first", "a", identity)
    assert parent is not None
    assert queued.claim("running", "a", identity)
    assert stopped() == []
    queued.save(parent, state=RunState.ENDED)
    assert stopped() == ["waiting", "running"]
    assert stopped() == []


def test_run_is_resumed_when_the_one_it_waits_for_is(database: Database, queued: QueuedRuns) -> None:
    queued.submit([request("first"), request("called", parent="first")])
    for run_id, more in (("called", {}), ("first", {"waits_for": "called"})):
        claimed = queued.claim(run_id, "a", living_worker(database, run_id))
        assert claimed is not None
        queued.save(claimed, state=RunState.PARKED, exit_code=4, **more)
    assert keep_house(database, queued) == []
    called = queued.find("called")
    assert called is not None
    assert queued.enqueue_again(called, "")
    assert keep_house(database, queued) == ["run first is resumed: what it was parked for is over"]
    assert keep_house(database, queued) == []


@pytest.mark.long
def test_items_are_taken_by_several_workers(tmp_path: Path, shared: SharedRuns) -> None:
    """Their files come back, their turns count once, and the result is that of a run on one machine."""
    team = calling(tmp_path / "team", ITEMS)
    submitted(shared, team)
    for name in "ab":
        shared.start(name)
    shared.wait_for(RunState.ENDED, "first")
    runs = {run.run_id: run for run in shared.queued.list()}
    assert sorted(runs) == ["first", *(f"first.each.1.{number}" for number in range(4))]
    assert {run.exit_code for run in runs.values()} == {0}
    assert {run.worker for run in runs.values()} == {"a", "b"}
    assert all(run.attempt == 1 for run in runs.values())
    assert files_of(shared, "first") == ["a.txt", "b.txt", "base.txt", "c.txt", "d.txt"]
    assert files_of(shared, "first.each.1.0") == ["a.txt", "base.txt"]
    record = runs["first"].record or {}
    assert record["totals"]["turns"] == 5
    tokens = sum((run.record or {})["totals"]["input_tokens"] for run in runs.values() if run.run_id != "first")
    assert record["totals"]["input_tokens"] > tokens > 0
    progress = Progress.of(read_events(restored(shared, "first").events_path))
    assert (progress.turns, progress.tokens) == (
        5,
        record["totals"]["input_tokens"] + record["totals"]["output_tokens"],
    )
    reasons = [entry["history"][-2]["reason"] for entry in read_states(restored(shared, "first"))["items"]]
    assert reasons == [f"run first.each.1.{number} on workers" for number in range(4)]
    assert team.run(flow="own").outcome == record["outcome"]
    assert sorted(path.name for path in team.workspace.iterdir()) == files_of(shared, "first")


@pytest.mark.long
def test_only_place_is_not_held_by_a_waiting_run(tmp_path: Path, shared: SharedRuns) -> None:
    submitted(shared, calling(tmp_path / "team", ITEMS[:2]))
    shared.work("--concurrency", "1")
    assert {exit_code for _, _, exit_code in shared.results()} == {0}


@pytest.mark.long
def test_killed_worker_costs_no_finished_turn(tmp_path: Path, shared: SharedRuns) -> None:
    """The one that executes the parent and some of the items is killed, twice at different moments."""
    submitted(shared, calling(tmp_path / "team", ITEMS, SLOW))
    shared.start("a", "--concurrency", "2")
    shared.wait(lambda: has_started(shared, "first.each.1.1"))
    shared.start("b", "--concurrency", "2")
    shared.kill("a")
    shared.wait(lambda: shared.run("first").worker == "b" and shared.run("first.each.1.2").state is RunState.ENDED)
    shared.start("c", "--concurrency", "2")
    shared.kill("b")
    shared.wait_for(RunState.ENDED, "first")
    assert {exit_code for _, _, exit_code in shared.results()} == {0}
    turns = paid_turns(shared)
    assert len(turns) == len(set(turns)) == 5
    assert files_of(shared, "first") == ["a.txt", "b.txt", "base.txt", "c.txt", "d.txt"]
    assert (shared.run("first").record or {})["totals"]["turns"] >= 5


@pytest.mark.long
def test_killed_processes_continue_what_they_did(tmp_path: Path, shared: SharedRuns) -> None:
    submitted(shared, calling(tmp_path / "team", ITEMS, SLOW))
    worker = shared.start("a", "--concurrency", "4")
    shared.wait(lambda: has_started(shared, "first.each.1.1"))
    for process in psutil.Process(worker.pid).children():
        process.kill()
    shared.wait_for(RunState.ENDED, "first")
    assert {exit_code for _, _, exit_code in shared.results()} == {0}
    turns = paid_turns(shared)
    assert len(turns) == len(set(turns)) == 5


def divided(shared: SharedRuns, *options: str) -> list[str]:
    """Let ``a`` work on the parent and one item, and ``b`` on three; returns these."""
    shared.start("a", "--concurrency", "1", *options)
    shared.wait(lambda: working_on(shared, "a") > {"first"})
    shared.start("b", "--concurrency", "3")
    shared.wait(lambda: len(working_on(shared, "b")) == 3)
    return sorted(working_on(shared, "b"))


def working_on(shared: SharedRuns, worker: str) -> set[str]:
    return {run.run_id for run in shared.queued.list() if run.state is RunState.RUNNING and run.worker == worker}


@pytest.mark.long
def test_items_may_end_while_nobody_works_on_their_parent(tmp_path: Path, shared: SharedRuns) -> None:
    submitted(shared, calling(tmp_path / "team", ITEMS, [{**WRITES, "delay_seconds": 6}] * 40))
    items = divided(shared, "--dead-after", "30")
    shared.kill_all("a")
    shared.wait_for(RunState.ENDED, *items)
    assert (shared.run("first").state, shared.run("first").attempt) == (RunState.RUNNING, 1)
    shared.wait_for(RunState.ENDED, "first")
    assert (shared.run("first").exit_code, shared.run("first").attempt) == (0, 2)
    assert [shared.run(item).attempt for item in items] == [1, 1, 1]
    turns = paid_turns(shared)
    assert len(turns) == len(set(turns)) == 5
    assert files_of(shared, "first") == ["a.txt", "b.txt", "base.txt", "c.txt", "d.txt"]
    spent = [(run.record or {})["totals"]["turns"] for run in shared.queued.list()]
    assert spent[0] == sum(spent[1:]) + 1


@pytest.mark.long
def test_drained_parent_leaves_its_items_alone(tmp_path: Path, shared: SharedRuns) -> None:
    submitted(shared, calling(tmp_path / "team", ITEMS, [{**WRITES, "delay_seconds": 6}] * 40))
    items = divided(shared)
    assert "run first: given back" in shared.drain("a")
    shared.wait_for(RunState.ENDED, "first")
    assert (shared.run("first").exit_code, shared.run("first").attempt) == (0, 2)
    assert [shared.run(item).attempt for item in items] == [1, 1, 1]
    turns = paid_turns(shared)
    assert len(turns) == len(set(turns)) == (shared.run("first").record or {})["totals"]["turns"] == 5


@pytest.mark.long
def test_run_resumed_at_once_skips_no_item(tmp_path: Path, shared: SharedRuns) -> None:
    """Its items are still being stopped then, because it was cancelled."""
    submitted(shared, calling(tmp_path / "team", ITEMS[:2], [{**WRITES, "delay_seconds": 8}] * 9))
    shared.start("a", "--concurrency", "2")
    shared.wait(lambda: is_running(shared, "first.each.1.1"))
    send_stop(shared.database, "first")
    shared.wait(lambda: is_told_to_stop(shared, "first.each.1.1"))
    assert resume_shared(Shared(shared.database), shared.run("first"), {})
    shared.wait_for(RunState.ENDED, "first")
    assert shared.run("first").exit_code == 0
    assert states_of_items(shared) == ["COMPLETED", "COMPLETED"]
    assert files_of(shared, "first") == ["a.txt", "b.txt", "base.txt"]


@pytest.mark.long
def test_cancelled_run_stops_the_runs_it_called(tmp_path: Path, shared: SharedRuns) -> None:
    submitted(shared, calling(tmp_path / "team", ITEMS[:2], [STUCK] * 9))
    shared.start("a", "--concurrency", "2")
    shared.wait(lambda: is_running(shared, "first.each.1.1"))
    send_stop(shared.database, "first")
    shared.wait_for(RunState.ENDED, "first", "first.each.1.1")
    assert shared.run("first").exit_code == shared.run("first.each.1.1").exit_code == 130


@pytest.mark.long
def test_cancelled_item_stops_its_run(tmp_path: Path, shared: SharedRuns) -> None:
    submitted(shared, calling(tmp_path / "team", ITEMS[:3], [STUCK] * 9))
    shared.start("a", "--concurrency", "3")
    shared.wait(lambda: is_running(shared, "first.each.1.1"))
    send_cancellation(shared.database, "first", "each.1.1", Cancellation("somebody", "", now()))
    shared.wait_for(RunState.ENDED, "first")
    assert (shared.run("first").exit_code, shared.run("first.each.1.1").exit_code) == (0, 130)
    assert states_of_items(shared) == ["COMPLETED", "SKIPPED", "COMPLETED"]
    assert files_of(shared, "first") == ["a.txt", "base.txt", "c.txt"]


@pytest.mark.long
def test_parked_item_parks_its_parent_until_the_answer(tmp_path: Path, shared: SharedRuns) -> None:
    inner: list[Record] = [
        {"id": "write", "ask": "writer", "prompt": "ITEM {{ inputs.name }}."},
        {"id": "gate", "review": "Keep it?"},
    ]
    submitted(shared, calling(tmp_path / "team", ITEMS[:2], inner=inner))
    shared.start("a", "--concurrency", "2")
    shared.wait_for(RunState.PARKED, "first", "first.each.1.0", "first.each.1.1")
    assert shared.run("first").exit_code == 4
    assert shared.run("first").why.startswith("run first.each.1.")
    for number in range(2):
        send_answer(shared.database, f"first.each.1.{number}", "gate.1", Answer(True, "", "somebody", now()))
    shared.wait_for(RunState.ENDED, "first")
    assert {exit_code for _, _, exit_code in shared.results()} == {0}
    turns = paid_turns(shared)
    assert len(turns) == len(set(turns)) == 3


@pytest.mark.long
def test_items_share_the_budget_of_their_parent(tmp_path: Path, shared: SharedRuns) -> None:
    submitted(shared, calling(tmp_path / "team", ITEMS), max_turns=3)
    shared.start("a", "--concurrency", "4")
    shared.wait_for(RunState.PARKED, "first")
    run = shared.run("first")
    assert run.exit_code == 5
    assert "3 of 3 turns are used" in run.why
    assert len(paid_turns(shared)) == 3
    assert (run.record or {})["totals"]["turns"] == 3


@pytest.mark.long
def test_failed_item_is_skipped_if_the_step_says_so(tmp_path: Path, shared: SharedRuns) -> None:
    fails: Record = {"choose": [{"when": "'ITEM b' in prompt", "fault": {"status": 400}}, {**WRITES}]}
    submitted(shared, calling(tmp_path / "team", ITEMS[:2], [fails] * 9, on_error="skip"))
    shared.start("a", "--concurrency", "2")
    shared.wait_for(RunState.ENDED, "first")
    assert shared.run("first").exit_code == 0
    assert states_of_items(shared) == ["COMPLETED", "FAILED"]
    assert files_of(shared, "first") == ["a.txt", "base.txt"]


@pytest.mark.long
def test_failed_item_fails_its_parent(tmp_path: Path, shared: SharedRuns) -> None:
    fails: Record = {"choose": [{"when": "'ITEM b' in prompt", "fault": {"status": 400}}, {**WRITES}]}
    submitted(shared, calling(tmp_path / "team", ITEMS[:2], [fails] * 9))
    shared.start("a", "--concurrency", "2")
    shared.wait_for(RunState.ENDED, "first")
    assert shared.run("first").exit_code == shared.run("first.each.1.1").exit_code == 3
    assert shared.run("first").why.startswith("run first.each.1.1: ")
