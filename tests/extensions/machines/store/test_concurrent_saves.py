"""A run folder is saved while others write to it: each saved state is one that the folder was in."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.store.restoring import read_saved, restore_run
from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.host.atomic import write_json
from codex_multi_role.run_folder import RunFolder

WRITES = 150


@contextmanager
def at_work(work: Callable[[], None], threads: int = 1) -> Iterator[None]:
    """Other threads that do ``work`` during the block."""
    started = [threading.Thread(target=work) for _ in range(threads)]
    for each in started:
        each.start()
    yield
    for each in started:
        each.join(60)


def test_no_saved_file_refers_to_one_that_is_missing(tmp_path: Path) -> None:
    store, run = Store.open(f"{tmp_path}/store"), RunFolder(tmp_path / "run")
    run.path.mkdir()
    ended = threading.Event()

    def write() -> None:
        for number in range(WRITES):
            write_json(run.path / f"{number}.json", number)
            write_json(run.path / "a_latest.json", number)  # a name that is read first
        ended.set()

    saver, saved = RunSaver(store, run, 1), list[str]()
    with at_work(write):
        while not ended.is_set():
            saved.append(saver.save())
    for manifest in [*saved, saver.save()]:
        files = restore_run(store, manifest, tmp_path / "restored").files
        if "a_latest.json" in files:
            latest = json.loads((tmp_path / "restored/a_latest.json").read_text())
            assert {f"{number}.json" for number in range(latest + 1)} <= set(files)


def test_growing_log_is_saved_as_a_prefix(tmp_path: Path) -> None:
    store, run = Store.open(f"{tmp_path}/store"), RunFolder(tmp_path / "run")
    run.path.mkdir()
    ended = threading.Event()

    def write() -> None:
        with (run.path / "events.jsonl").open("ab", buffering=0) as log:
            for number in range(WRITES):
                log.write(f"{number:0999}\n".encode())
        ended.set()

    saver, saved = RunSaver(store, run, 1), list[str]()
    with at_work(write):
        while not ended.is_set():
            saved.append(saver.save())
    whole = (run.path / "events.jsonl").read_bytes()
    for manifest in saved:
        if restore_run(store, manifest, tmp_path / "restored").files:
            assert whole.startswith((tmp_path / "restored/events.jsonl").read_bytes())
    restore_run(store, saver.save(), tmp_path / "restored")
    assert (tmp_path / "restored/events.jsonl").read_bytes() == whole


def test_one_save_serves_all_that_wait(tmp_path: Path) -> None:
    """Each gets a state that has what it wrote before it asked."""
    store, run = Store.open(f"{tmp_path}/store"), RunFolder(tmp_path / "run")
    run.path.mkdir()
    published: list[str] = []
    saver, together = RunSaver(store, run, 1, publish=published.append), threading.Barrier(12)
    got: dict[str, str] = {}

    def write_and_save() -> None:
        name = threading.current_thread().name
        together.wait(10)
        (run.path / name).write_text(name)
        got[name] = saver.save()
        assert got[name] in published

    with at_work(write_and_save, threads=12):
        pass
    assert len(got) == 12
    assert published == sorted(set(got.values()))
    assert len(published) < 12
    for name, manifest in got.items():
        assert name in restore_run(store, manifest, tmp_path / "restored").files


def test_workspace_is_snapshotted_after_the_folder_was_read(tmp_path: Path) -> None:
    """A turn that counts as finished then has its files in the snapshot, not the other way round."""
    store, run = Store.open(f"{tmp_path}/store"), RunFolder(tmp_path / "run")
    run.path.mkdir()

    def take_trees() -> dict[str, str]:
        (run.path / "turn.json").write_text("finished meanwhile")
        return {}

    assert read_saved(store, RunSaver(store, run, 1).save(take_trees)).files == ()


def test_save_that_cannot_be_published_fails_and_is_repeated(tmp_path: Path) -> None:
    store, run = Store.open(f"{tmp_path}/store"), RunFolder(tmp_path / "run")
    run.path.mkdir()
    (run.path / "run.json").write_text("{}")
    answers: list[Exception | None] = [StorageError("another attempt works on the run"), None]
    published: list[str] = []

    def publish(name: str) -> None:
        if problem := answers.pop(0):
            raise problem
        published.append(name)

    saver = RunSaver(store, run, 1, publish=publish)
    with pytest.raises(StorageError, match="another attempt"):
        saver.save()
    assert [saver.save()] == published
    assert read_saved(store, published[0]).files == ("run.json",)
