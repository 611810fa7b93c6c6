"""Runs of workers as another machine finds, lists and follows them, and the copies of their folders there."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from codex_multi_role.errors import ExitCode, RunNotFound, StorageError
from codex_multi_role.extensions.machines.store.restoring import SavedState, restore_run
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.extensions.machines.workers import shared_runs
from codex_multi_role.extensions.machines.workers.finding import find_folder, find_shared
from codex_multi_role.extensions.machines.workers.queued_runs import MAX_CRASHES, RunState
from codex_multi_role.extensions.machines.workers.shared_runs import Mirrors, SharedRuns
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.owner import is_alive
from tests.support.recorded_runs import make_run
from tests.support.runs_without_workers import RunsWithoutWorkers, on_workers
from tests.support.workspaces import files_of

__all__ = ["on_workers"]


def test_run_is_found_by_id_prefix_and_latest(on_workers: RunsWithoutWorkers) -> None:
    for run_id in ("a_1", "a_1_2", "b%"):
        on_workers.submit(run_id)
    found = {
        name: run and run.run_id for name in ("a_1", "b", "latest", "c", "") if [run := on_workers.shared.find(name)]
    }
    assert found == {"a_1": "a_1", "b": "b%", "latest": "b%", "c": None, "": None}
    with pytest.raises(RunNotFound, match=r"several runs of .* begin with 'a_': a_1, a_1_2"):
        on_workers.shared.find("a_")
    assert on_workers.shared.find("%") is None


def test_run_of_the_database_comes_before_one_here(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    here = tmp_path / "runs"
    make_run(here, "both")
    make_run(here, "here")
    shared = on_workers.shared
    on_workers.submit("both")
    assert find_folder("both", here, shared).path.parent != here
    assert find_folder("here", here, shared).path.parent == here
    with pytest.raises(RunNotFound, match=r'no run "none" in .*, and none in the database sqlite'):
        find_folder("none", here, shared)


def test_latest_run_is_the_newest_of_all(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    on_workers.submit("theirs")
    make_run(tmp_path / "runs", "older", started_at="2001-01-31T10:15:00.000+00:00")
    assert find_folder("latest", tmp_path / "runs", on_workers.shared).run_id == "theirs"
    make_run(tmp_path / "runs", "newer", started_at="2999-01-31T10:15:00.000+00:00")
    assert find_shared("latest", tmp_path / "runs", on_workers.shared) is None
    assert find_folder("latest", tmp_path / "runs", on_workers.shared).run_id == "newer"


def test_row_knows_better_how_the_run_is(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    """The process that wrote ``run.json`` was killed, or has not written any."""

    def told() -> tuple[object, ...]:
        (run,) = on_workers.shared.look()
        return tuple(run.record[name] for name in ("status", "outcome", "reason", "exit_code"))

    on_workers.submit("first")
    assert told() == ("queued", "", "", None)
    run = on_workers.claim("first")
    assert told() == ("running", "", "", None)
    source = make_run(tmp_path / "worker", "first", status="running", exit_code=None, outcome="", reason="")
    on_workers.save(run, source)
    on_workers.queued.enqueue_again(run, "its worker died")
    (listed,) = on_workers.shared.look()
    assert (listed.record["status"], listed.record["shared"]["why"]) == (
        "queued",
        "its worker died; there are no workers",
    )
    on_workers.queued.withdraw(on_workers.row("first"), "cancelled by me")
    assert told() == ("interrupted", "cancelled", "cancelled by me", ExitCode.INTERRUPTED)


def test_run_that_was_given_up_has_failed(on_workers: RunsWithoutWorkers) -> None:
    on_workers.submit("first")
    for _ in range(MAX_CRASHES):
        on_workers.queued.enqueue_again(on_workers.claim("first"), "its process crashed", crashed=True)
    (run,) = on_workers.shared.look()
    assert [run.record[name] for name in ("status", "outcome", "reason")] == [
        "failed",
        "failed",
        "given up: its process or worker was lost 5 times, last on worker anna: its process crashed",
    ]


def test_only_changed_rows_are_read_again(on_workers: RunsWithoutWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    for run_id in ("first", "second"):
        on_workers.submit(run_id)
    read: list[int] = []
    rows = on_workers.shared.queued.list

    def counted(*conditions: object, **more: object) -> object:
        found = rows(*conditions, **more)  # type: ignore[arg-type]
        read.append(len(found))
        return found

    monkeypatch.setattr(on_workers.shared.queued, "list", counted)
    on_workers.shared.look()
    on_workers.shared.look()
    on_workers.claim("second")
    assert [run.record["status"] for run in on_workers.shared.look()] == ["queued", "running"]
    assert read == [2, 1]


def test_run_is_followed_over_a_take_over(
    on_workers: RunsWithoutWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While somebody follows, the run is saved, goes to another worker, and ends."""
    monkeypatch.setattr(shared_runs, "LOOK_SECONDS", 0)
    source = make_run(tmp_path / "worker", "first")
    lines = source.events_path.read_text().splitlines(keepends=True)
    source.events_path.write_text("".join(lines[:5]))
    on_workers.submit("first")
    records = on_workers.shared.follow("first")
    run = on_workers.claim("first")
    on_workers.save(run, source)
    seen = [next(records) for _ in range(5)]
    on_workers.queued.enqueue_again(run, "its worker died")
    source.events_path.write_text("".join(lines))
    other = on_workers.claim("first", "berta")
    on_workers.save(other, source)
    on_workers.queued.save(other, state=RunState.ENDED, exit_code=1)
    assert [*seen, *records] == list(map(json.loads, lines))


def test_database_of_journals_only_has_no_shared_runs(tmp_path: Path) -> None:
    assert SharedRuns.open(f"sqlite:///{tmp_path}/journal.sqlite") is None


@pytest.fixture
def source(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "worker", "first")


def files(folder: RunFolder) -> dict[str, bytes]:
    return files_of(folder.path, without=("run.json", "owner.json"))


def test_copy_has_what_was_saved_last(on_workers: RunsWithoutWorkers, source: RunFolder) -> None:
    on_workers.submit("first")
    run = on_workers.claim("first")
    on_workers.save(run, source)
    copy = on_workers.shared.mirror(on_workers.row("first"))
    assert files(copy) == files(source)
    assert (copy.record()["status"], is_alive(copy)) == ("running", True)

    with source.events_path.open("a") as log:
        log.write('{"type": "note", "at": "2026-01-31T10:16:00.000+00:00", "message": "more"}\n')
    assert files(on_workers.shared.mirror(on_workers.row("first"))) != files(source)
    on_workers.save(run, source)
    assert files(on_workers.shared.mirror(on_workers.row("first"))) == files(source)


def test_equal_state_is_not_read_again(
    on_workers: RunsWithoutWorkers, source: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = on_workers.share(source)
    read: list[str] = []

    def restore(store: Store, name: str, path: Path) -> SavedState:
        read.append(name)
        return restore_run(store, name, path)

    monkeypatch.setattr(shared_runs, "restore_run", restore)
    for _ in range(3):
        on_workers.shared.mirror(run)
    assert read == [run.manifest]
    on_workers.shared.mirrors.forget("first")
    on_workers.shared.mirror(run)
    assert read == [run.manifest] * 2


def test_copies_are_private(on_workers: RunsWithoutWorkers, source: RunFolder, tmp_path: Path) -> None:
    copy = on_workers.shared.mirror(on_workers.share(source))
    assert copy.path.is_relative_to(tmp_path / "cache")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (copy.path, copy.path.parent)] == [0o700, 0o700]


def test_run_that_was_never_saved_has_its_goal(on_workers: RunsWithoutWorkers) -> None:
    record = on_workers.shared.mirror(on_workers.submit("first", cycles=7)).record()
    assert (record["goal"], record["status"], record["options"]["cycles"]) == ("goal of first", "queued", 7)
    assert (record["shared"]["queue"], record["shared"]["why"]) == ("goals", "there are no workers")


def test_damaged_state_is_an_error(on_workers: RunsWithoutWorkers, source: RunFolder) -> None:
    run = on_workers.share(source)
    for path in (on_workers.folder / "store/runs").rglob("*.zlib"):
        path.write_bytes(b"damaged")
    with pytest.raises(StorageError, match="is damaged in the store"):
        on_workers.shared.mirror(run)


def test_locked_copy_is_not_awaited_forever(
    on_workers: RunsWithoutWorkers, source: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_runs, "LOCK_SECONDS", 0)
    shared = on_workers.shared
    folder = shared.mirror(on_workers.share(source)).path.parent
    with (
        Mirrors(folder, lambda: on_workers.store)._locked(RunFolder(folder / "first")),
        pytest.raises(StorageError, match="is locked by another process"),
    ):
        shared.mirror(on_workers.row("first"))


def test_owner_of_a_copy_is_its_worker(on_workers: RunsWithoutWorkers, source: RunFolder) -> None:
    on_workers.submit("first")
    run = on_workers.claim("first")
    on_workers.save(run, source)
    copy = on_workers.shared.mirror(on_workers.row("first"))
    assert json.loads(copy.owner_path.read_text()) == {"worker": "anna"}
    assert on_workers.queued.enqueue_again(run, "its worker died")
    on_workers.shared.mirror(on_workers.row("first"))
    assert (is_alive(copy), copy.record()["status"]) == (False, "queued")
