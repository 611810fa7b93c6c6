"""A store that is full, read-only, unmounted or damaged: nothing is lost or paid twice, and who looks sees why."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.machines.store.restoring import restore_run
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.deciding import resume_shared
from codex_multi_role.extensions.machines.workers.housekeeping import keep_house
from codex_multi_role.extensions.machines.workers.membership import list_workers
from codex_multi_role.extensions.machines.workers.messages import STOP, send
from codex_multi_role.extensions.machines.workers.queued_runs import MAX_CRASHES, QueuedRuns, RunState
from codex_multi_role.extensions.machines.workers.shared_runs import SharedRuns as OtherMachine
from codex_multi_role.run_folder import RunFolder, list_turns
from tests.support.batches import one_role
from tests.support.disks import Disk, small_disk
from tests.support.shared_runs import SharedRuns, left_of, request
from tests.support.teams import WRITER, TeamFolder, say

TURNS = 3
FAULTS: dict[str, tuple[Callable[[Disk], None], Callable[[Disk], None], str]] = {
    "full": (Disk.fill, Disk.free, "No space left on device. Free some space there."),
    "read-only": (Disk.make_read_only, Disk.make_writable, "Read-only file system. Make it writable, or use another"),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    (tmp_path / "disk").mkdir()
    with ExitStack() as stack:
        try:
            found = stack.enter_context(small_disk(tmp_path / "disk", 16))
        except OSError as error:
            pytest.skip(f"the system gives no disk: {error}")
        yield found


@pytest.fixture
def shared(tmp_path: Path, database_url: str, disk: Disk) -> Iterator[SharedRuns]:
    shared = SharedRuns(tmp_path, database_url, str(disk.folder))
    yield shared
    shared.close()
    assert left_of(tmp_path / "machines") == []


def submitted(shared: SharedRuns, *run_ids: str) -> None:
    plays = [
        {**say(f"step {number}", files=[{"path": f"{number}.txt", "content": f"{number}\n"}]), "delay_seconds": 2}
        for number in range(TURNS)
    ]
    team = TeamFolder(shared.folder / "team", {"one": WRITER}, {"one": plays})
    shared.submit(team.options(cycles=TURNS), *run_ids)


def turns_of(shared: SharedRuns, run_id: str) -> list[str]:
    folder = RunFolder(shared.folder / "seen" / run_id)
    restore_run(shared.store, shared.run(run_id).manifest or "", folder.path)
    return [turn.result()["status"] for _, turn in list_turns(folder)]


def test_held_run_continues_when_its_time_has_come(database: Database, queued: QueuedRuns) -> None:
    queued.submit([request("due"), request("later")])
    for run_id, seconds in (("due", -1), ("later", 60)):
        run = queued.claim(run_id, "a", "identity")
        assert run is not None
        queued.hold(run, "the store is full", seconds)
    keep_house(database, queued)
    states = {run.run_id: (run.state, run.why) for run in queued.list()}
    assert states == {"due": (RunState.WAITING, ""), "later": (RunState.HELD, "the store is full")}


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_finished_turn_waits_for_the_store(fault: str, shared: SharedRuns, disk: Disk) -> None:
    """Only here the store fails during a run: its process keeps the turn, and continues as if nothing had happened."""
    strike, repair, problem = FAULTS[fault]
    submitted(shared, "first")
    shared.start("a")
    shared.wait(lambda: shared.run("first").manifest)

    def is_noticed() -> bool:
        with suppress(subprocess.CalledProcessError):  # something is being written
            strike(disk)
        return problem in shared.run("first").why

    shared.wait(is_noticed)
    assert shared.run("first").state is RunState.RUNNING
    repair(disk)
    shared.wait_for(RunState.ENDED, "first")
    run = shared.run("first")
    assert (run.exit_code, run.attempt) == (ExitCode.GOAL_NOT_REACHED, 1)
    assert turns_of(shared, "first") == ["completed"] * TURNS
    assert (run.record or {})["totals"]["turns"] == TURNS
    assert f"run first: the store {shared.store.address} cannot be written: {problem}" in shared.drain("a")


@pytest.mark.long
def test_run_that_waits_for_its_store_can_be_cancelled(shared: SharedRuns, disk: Disk) -> None:
    """Only here a run is stopped while it waits for its store."""
    submitted(shared, "first")
    shared.start("a")
    shared.wait(lambda: shared.run("first").manifest)
    disk.fill()
    shared.wait(lambda: "No space left" in shared.run("first").why)
    send(shared.database, "first", STOP)
    shared.wait_for(RunState.ENDED, "first")
    assert shared.run("first").exit_code == ExitCode.INTERRUPTED
    disk.free()
    assert resume_shared(OtherMachine(shared.database), shared.run("first"), {})
    shared.wait_for(RunState.ENDED, "first")
    assert shared.run("first").exit_code == ExitCode.GOAL_NOT_REACHED


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_run_does_not_start_before_it_can_be_saved(fault: str, shared: SharedRuns, disk: Disk) -> None:
    """Only here the store fails before a run: not even its first turn is paid for."""
    strike, repair, problem = FAULTS[fault]
    submitted(shared, "first", "second")
    strike(disk)
    shared.start("a", "--concurrency", "2")
    seen: set[str] = set()

    def have_been_held() -> bool:
        held = [run for run in shared.queued.list() if run.state is RunState.HELD]
        seen.update(run.run_id for run in held if problem in run.why)
        return len(seen) == 2

    shared.wait(have_been_held)
    assert not list((shared.folder / "machines").rglob("turn_*"))
    repair(disk)
    shared.wait_for(RunState.ENDED, "first", "second")
    for name in ("first", "second"):
        assert shared.run(name).exit_code == ExitCode.GOAL_NOT_REACHED
        assert turns_of(shared, name) == ["completed"] * TURNS


@pytest.mark.long
def test_unmounted_store_is_noticed_by_run_processes(tmp_path: Path, on_postgres: SharedRuns) -> None:
    """Only here an empty folder is at the store's place, and what is saved there is found by nobody."""
    shared = on_postgres
    team = one_role(tmp_path / "team")
    request = shared.request(team.options(run_id="first"))
    shared.start("a")
    shared.wait(lambda: list_workers(shared.database))
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    shared.queued.submit([request])
    log = tmp_path / "machines/a/workers/a/worker.log"
    shared.wait(lambda: log.exists() and "is not the store of the database" in log.read_text())
    assert shared.run("first").state is RunState.WAITING
    shutil.rmtree(tmp_path / "store")
    (tmp_path / "elsewhere").rename(tmp_path / "store")
    shared.wait_for(RunState.ENDED, "first")
    assert shared.run("first").exit_code == ExitCode.GOAL_REACHED


@pytest.mark.long
def test_damaged_store_is_named_and_a_copy_of_it_works(tmp_path: Path, on_postgres: SharedRuns) -> None:
    """Only here what was saved is missing when another worker needs it."""
    shared = on_postgres
    team = TeamFolder(
        tmp_path / "team", {"one": {}, "two": {}}, {"one": [say()], "two": [{**say(), "delay_seconds": 5}]}
    )
    shared.submit(team.options(), "first")
    shared.start("a")
    shared.wait(lambda: shared.run("first").manifest)
    shared.kill_all("a")
    (tmp_path / "store/runs").rename(tmp_path / "copy")
    shared.start("b")
    shared.wait_for(RunState.ENDED, "first")
    run = shared.run("first")
    assert (run.exit_code, run.attempt) == (ExitCode.FAILED, MAX_CRASHES)
    assert f"is missing from the store {shared.store.address}. Restore the store from a copy." in run.why
    (tmp_path / "copy").rename(tmp_path / "store/runs")
    assert resume_shared(OtherMachine(shared.database), run, {})
    shared.wait_for(RunState.ENDED, "first")
    assert shared.run("first").exit_code == ExitCode.GOAL_NOT_REACHED
