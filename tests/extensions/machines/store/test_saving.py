"""A run folder is saved as it is, again and again, while others write to it, and restored exactly so."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import codex_multi_role.extensions.machines.store.pieces as pieces_module
import codex_multi_role.extensions.machines.store.saver as saver_module
from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.store.restoring import read_saved, restore_run
from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.host.atomic import write_json
from codex_multi_role.run_folder import RunFolder
from tests.support.run_folders import contents

NAMES = st.sampled_from(["run.json", "events.jsonl", "one/events.jsonl", "one/turn_001/turn.json", "one/turn_001/new"])
LIMITS = {"MAX_SMALL_BYTES": 100, "MIN_PIECE_BYTES": 1000, "MAX_PIECE_BYTES": 5000, "MAX_VERIFIED_BYTES": 12_000}
"""Small ones, so that small files meet all of them."""
SIZES = st.sampled_from([0, 1, 99, 100, 101, 900, 1000, 5000, 5001, 13_000])
CHANGES = st.one_of(
    st.tuples(st.just("write"), NAMES, SIZES),
    st.tuples(st.just("replace"), NAMES, SIZES),
    st.tuples(st.just("append"), NAMES, SIZES),
    st.tuples(st.just("delete"), NAMES, st.just(0)),
    st.tuples(st.just("mode"), NAMES, st.sampled_from([0o600, 0o644, 0o755])),
    st.tuples(st.just("save"), NAMES, st.just(0)),
    st.tuples(st.just("another process"), NAMES, st.just(0)),
)


def change(folder: Path, kind: str, name: str, number: int) -> None:
    """Do one change of a run folder; ``number``: bytes, or a mode."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "write":
        path.write_bytes(os.urandom(number))
    elif kind == "replace":
        beside = path.with_name("beside")
        beside.write_bytes(os.urandom(number))
        beside.replace(path)
    elif kind == "append":
        with path.open("ab") as file:
            file.write(os.urandom(number))
    elif kind == "delete":
        path.unlink(missing_ok=True)
    elif kind == "mode" and path.exists():
        path.chmod(number)


@settings(max_examples=25)
@given(st.lists(CHANGES, max_size=25))
@example([("write", "run.json", 13_000), ("save", "", 0), ("write", "run.json", 13_000)])
@example([("write", "run.json", 13_000), ("save", "", 0), ("append", "run.json", 99)])
def test_every_saved_state_is_restored_as_it_was(changes: list[tuple[str, str, int]]) -> None:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        for limit, value in LIMITS.items():
            patch.setattr(pieces_module, limit, value)
        store, folder = Store.open(f"{name}/store"), RunFolder(Path(name) / "run")
        folder.path.mkdir()
        saver, saved = RunSaver(store, folder, 1), {}
        for kind, path, number in [*changes, ("save", "", 0)]:
            if kind == "save":
                saved[saver.save()] = contents(folder.path)
            elif kind == "another process":
                saver = RunSaver(store, folder, 2, saver.save())
            else:
                change(folder.path, kind, path, number)
        for manifest, expected in saved.items():
            restore_run(store, manifest, Path(name) / "restored")  # each over the one before
            assert contents(Path(name) / "restored") == expected


def test_long_chain_of_manifests_begins_again_with_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saver_module, "MAX_CHAIN", 3)
    store, run = Store.open(f"{tmp_path}/store"), RunFolder(tmp_path / "run")
    run.path.mkdir()
    saver, saved = RunSaver(store, run, 1), {}
    for number in range(8):
        change(run.path, "write", f"file_{number}", number * 1000)
        saved[saver.save()] = contents(run.path)
    for manifest, expected in saved.items():
        restore_run(store, manifest, tmp_path / "restored")
        assert contents(tmp_path / "restored") == expected


def test_change_within_one_tick_of_the_clock_is_noticed(tmp_path: Path) -> None:
    """A file of the same size whose time did not move, because it was changed again at once."""
    store, run = Store.open(f"{tmp_path}/store"), RunFolder(tmp_path / "run")
    run.path.mkdir()
    file, soon = run.path / "file", time.time_ns() + 10**10
    saver = RunSaver(store, run, 1)
    for text in ("one", "two"):
        file.write_text(text)
        os.utime(file, ns=(soon, soon))
        latest = saver.save()
    restore_run(store, latest, tmp_path / "restored")
    assert (tmp_path / "restored/file").read_text() == "two"


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
