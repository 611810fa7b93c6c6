"""Real workers: whole runs in processes of their own, killed, drained, cut off and continued elsewhere.

Costs: workers are processes with a database, killed and started again.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa

from codex_multi_role.extensions.machines.store.restoring import restore_run
from codex_multi_role.extensions.machines.workers.database_tables import runs
from codex_multi_role.extensions.machines.workers.membership import list_workers
from codex_multi_role.extensions.machines.workers.queued_runs import RunState
from codex_multi_role.run_folder import RunFolder, list_turns
from tests.support.shared_runs import SharedRuns
from tests.support.teams import NEVER, WRITER, TeamFolder, say
from tests.support.tools import EDITOR, shell

pytestmark = pytest.mark.real


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[SharedRuns]:
    """In a file, which is enough for workers of one machine."""
    shared = SharedRuns(tmp_path, f"sqlite:///{tmp_path}/queue.sqlite")
    yield shared
    shared.close()


def writer(folder: Path, cycles: int = 1, seconds: float = 0) -> TeamFolder:
    """A team of one role, which writes another file in each cycle, so many seconds after it was asked."""
    plays = [
        {**say(f"step {number}", files=[{"path": f"{number}.txt", "content": f"{number}\n"}]), "delay_seconds": seconds}
        for number in range(1, cycles + 1)
    ]
    return TeamFolder(folder / "team", {"one": WRITER}, {"one": plays})


def restored(shared: SharedRuns, run_id: str) -> RunFolder:
    """The run folder as any machine sees it."""
    folder = shared.folder / "seen" / run_id
    restore_run(shared.store, shared.run(run_id).manifest or "", folder)
    return RunFolder(folder)


def completed_turns(folder: RunFolder) -> list[int]:
    """The journal positions of all turns that were completed: a duplicate was paid for twice."""
    records = [turn.result() for _, turn in list_turns(folder)]
    return [record["journal_step"] for record in records if record["status"] == "completed"]


@pytest.mark.sample("worker")
def test_worker_executes_a_run(tmp_path: Path, shared: SharedRuns) -> None:
    team = writer(tmp_path)
    shared.submit(team.options(), "first")
    assert "run first: cycles_used_up" in shared.work()
    assert shared.results() == [("first", "ended", 1)]
    folder = restored(shared, "first")
    assert folder.record()["status"] == "ended"
    assert list(folder.path.glob("one/turn_001/changes.patch"))
    assert not list((shared.folder / "machines/only/workers/only").glob("*/first"))


@pytest.mark.long
def test_role_cannot_change_what_workers_share(tmp_path: Path, shared: SharedRuns) -> None:
    """Only here a role attacks the workers. All of it is in a temporary folder, where roles may write otherwise."""
    database, machine = tmp_path / "queue.sqlite", tmp_path / "machines/only/workers/only"
    tries = [f"echo evil >> {database}{suffix}" for suffix in ("", "-wal", "-shm")]
    tries += [f"mv {tmp_path}/store {tmp_path}/gone", f"touch {tmp_path}/store/evil", f"touch {machine}/evil"]
    team = TeamFolder(
        tmp_path / "team", {"one": EDITOR}, {"one": [shell("; ".join([*tries, f"touch {tmp_path}/may"]))]}
    )
    shared.submit(team.options(), "first")
    assert "run first: cycles_used_up" in shared.work()
    assert (tmp_path / "may").exists()
    assert not [path for path in (tmp_path / "gone", tmp_path / "store/evil", machine / "evil") if path.exists()]
    assert b"evil\n" not in database.read_bytes()


@pytest.mark.long
def test_process_that_comes_back_late_changes_nothing(tmp_path: Path, on_postgres: SharedRuns) -> None:
    """Only here a process is frozen while another worker took its run and ended it."""
    shared = on_postgres
    shared.submit(writer(tmp_path, cycles=4, seconds=2).options(cycles=4), "first")
    worker = psutil.Process(shared.start("a").pid)
    shared.wait(lambda: shared.run("first").manifest)
    [late] = worker.children()
    frozen = [worker, *worker.children(recursive=True)]
    for process in frozen:
        process.suspend()
    shared.start("b")
    shared.wait_for(RunState.ENDED, "first")
    ended = shared.run("first")
    for process in frozen[1:]:
        process.resume()
    shared.wait(lambda: late.status() == psutil.STATUS_ZOMBIE)
    worker.resume()
    assert shared.run("first") == ended
    assert (ended.worker, ended.attempt, ended.exit_code) == ("b", 2, 1)
    positions = completed_turns(restored(shared, "first"))
    assert len(positions) == len(set(positions)) == 4


@pytest.mark.long
def test_drained_worker_hands_its_run_back(tmp_path: Path, on_postgres: SharedRuns) -> None:
    """Only here real processes are drained."""
    shared = on_postgres
    shared.submit(writer(tmp_path, cycles=3, seconds=2).options(cycles=3), "first")
    shared.start("a")
    shared.wait(lambda: shared.run("first").manifest)
    assert "run first: given back" in shared.drain("a")
    assert shared.run("first").state is RunState.WAITING
    shared.start("b")
    shared.wait_for(RunState.ENDED, "first")
    statuses = [turn.result()["status"] for _, turn in list_turns(restored(shared, "first"))]
    assert statuses == ["completed"] * 3, "the turn in progress was finished, not interrupted"


@pytest.mark.long
def test_second_signal_interrupts_the_turns_of_a_worker(tmp_path: Path, on_postgres: SharedRuns) -> None:
    """Only here a turn that never ends is interrupted by a signal to its worker."""
    shared = on_postgres
    team = TeamFolder(tmp_path / "team", {"one": {}, "two": {}}, {"one": [say()], "two": [NEVER]})
    shared.submit(team.options(), "first")
    worker = shared.start("a")
    shared.wait(lambda: shared.run("first").manifest)
    worker.send_signal(signal.SIGTERM)
    shared.wait(lambda: any(each.is_draining for each in list_workers(shared.database)))
    assert "run first: given back" in shared.drain("a")
    assert shared.run("first").state is RunState.WAITING


@pytest.mark.long
def test_run_of_another_journal_version_is_left_alone(tmp_path: Path, on_postgres: SharedRuns) -> None:
    """Only here some workers were upgraded: those of the other version continue the run."""
    shared = on_postgres
    shared.submit(writer(tmp_path).options(), "old", "new")
    with shared.database.transaction() as connection:
        connection.execute(sa.update(runs).where(runs.c.run_id == "old").values(journal_version="0"))
        connection.execute(sa.text("UPDATE dbos.workflow_status SET application_version='0' WHERE workflow_uuid='old'"))
    shared.start("a", "--concurrency", "2")
    shared.wait_for(RunState.ENDED, "new")
    assert shared.run("old").state is RunState.WAITING
