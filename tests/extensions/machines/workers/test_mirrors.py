"""Copies of run folders on a machine that looks at runs of workers."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.store.restoring import SavedState, restore_run
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.extensions.machines.workers import shared_runs
from codex_multi_role.extensions.machines.workers.shared_runs import Mirrors
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.owner import is_alive
from tests.support.recorded_runs import make_run
from tests.support.runs_without_workers import RunsWithoutWorkers, on_workers

__all__ = ["on_workers"]


@pytest.fixture
def source(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "worker", "first")


def files(folder: RunFolder) -> dict[str, bytes]:
    found = {path.relative_to(folder.path).as_posix(): path for path in folder.path.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name not in ("run.json", "owner.json")}


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
