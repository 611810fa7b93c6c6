"""A store keeps what it is given, names what is wrong with it, and repeats no secret."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.extensions.machines.store.objects import LocalObjects
from codex_multi_role.extensions.machines.store.remote_objects import RemoteObjects
from codex_multi_role.extensions.machines.store.restoring import restore_run
from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.state_manifest import SavedFile, StateManifest, write_manifest
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.run_folder import RunFolder
from tests.support.run_folders import contents
from tests.support.workspaces import write_files

MEGABYTE = 1024 * 1024


def a_run(folder: Path) -> RunFolder:
    """A run folder with a small and a large file."""
    run = RunFolder(folder / "run")
    write_files(run.path, {"run.json": "{}\n", "one/events.jsonl": os.urandom(100_000)})
    return run


def test_local_store_is_private_and_keeps_its_identity(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "new/store"))
    RunSaver(store, a_run(tmp_path), 1).save()
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert Store.open(f"file://{tmp_path}/new/store").identity == store.identity
    assert Store.open(f"{tmp_path}/other").identity != store.identity


def test_first_users_at_once_agree_on_identity(tmp_path: Path) -> None:
    found: list[str] = []
    together = threading.Barrier(8)

    def open_store() -> None:
        together.wait(10)
        found.append(Store.open(str(tmp_path / "store")).identity)

    threads = [threading.Thread(target=open_store) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(found) == 8
    assert len(set(found)) == 1


def test_known_content_is_not_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, written = Store.open(str(tmp_path / "store")), list[str]()
    write = LocalObjects.write

    def noted(self: LocalObjects, name: str, content: bytes) -> None:
        written.append(name)
        write(self, name, content)

    monkeypatch.setattr(LocalObjects, "write", noted)
    run = a_run(tmp_path)
    RunSaver(store, run, 1).save()
    sent = [name for name in written if name.startswith("blobs/")]
    assert len(sent) == 2 - 1
    RunSaver(store, run, 2).save()
    assert [name for name in written if name.startswith("blobs/")] == sent


def test_only_end_of_growing_log_is_sent(tmp_path: Path) -> None:
    store, run = Store.open(str(tmp_path / "store")), a_run(tmp_path)
    log = run.path / "one/events.jsonl"
    log.write_bytes(os.urandom(2 * MEGABYTE))
    saver = RunSaver(store, run, 1)
    saver.save()
    before = stored_bytes(tmp_path / "store")
    for _ in range(5):
        with log.open("ab") as file:
            file.write(os.urandom(10_000))
        latest = saver.save()
    assert stored_bytes(tmp_path / "store") - before < 5 * 10_000 + 5 * 100_000
    restore_run(store, latest, tmp_path / "restored")
    assert (tmp_path / "restored/one/events.jsonl").read_bytes() == log.read_bytes()


def stored_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "damage",
    [Path.unlink, lambda path: path.write_bytes(b"other"), lambda path: path.write_bytes(path.read_bytes()[:-9])],
)
@pytest.mark.parametrize("kind", ["blobs", "runs"])
def test_missing_or_damaged_object_is_named(damage: Callable[[Path], object], kind: str, tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "store"))
    saved = RunSaver(store, a_run(tmp_path), 1).save()
    target = next(path for path in (tmp_path / "store" / kind).rglob("*") if path.is_file())
    damage(target)
    with pytest.raises(StorageError, match=f"{target.name} is (missing from|damaged in) the store file://{tmp_path}"):
        restore_run(store, saved, tmp_path / "restored")


@pytest.mark.parametrize("path", ["../out", "/out", "a/../../out", "a//b", "", ".", "./a", "a/."])
def test_manifest_cannot_lead_out_of_run_folder(path: str, tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "store"))
    for manifest in (
        StateManifest(run_id="r", attempt=1, files={path: SavedFile.small(0o644, b"x")}),
        StateManifest(run_id="r", attempt=1, files={}, empty=(path,)),
    ):
        name = write_manifest(store, 1, manifest)
        with pytest.raises(StorageError, match="outside of the run folder"):
            restore_run(store, name, tmp_path / "deep/restored")
    assert not (tmp_path / "out").exists()


def test_restore_removes_symlinks_and_follows_none(tmp_path: Path) -> None:
    store, run = Store.open(str(tmp_path / "store")), a_run(tmp_path)
    saved = RunSaver(store, run, 1).save()
    outside = tmp_path / "outside"
    write_files(outside, {"events.jsonl": "not ours"})
    restored = tmp_path / "restored"
    restored.mkdir()
    (restored / "one").symlink_to(outside)
    (restored / "run.json").symlink_to(outside / "events.jsonl")
    write_files(restored, {"left.txt": "of an earlier attempt", "owner.json": "of this machine"})
    restore_run(store, saved, restored)
    assert (outside / "events.jsonl").read_text() == "not ours"
    assert sorted(path.name for path in restored.rglob("*")) == ["events.jsonl", "one", "owner.json", "run.json"]
    assert not any(path.is_symlink() for path in restored.rglob("*"))


def test_logins_locks_and_journals_are_not_saved(tmp_path: Path) -> None:
    store, run = Store.open(str(tmp_path / "store")), a_run(tmp_path)
    home = run.codex_home("one")
    write_files(home, {"sessions/2026/thread.jsonl": "{}"})
    for name in ("auth.json", "state_5.sqlite", "config.toml"):
        (home / name).write_text("secret")
    for name in ("owner.json", "journal.sqlite", "journal.sqlite-wal", "report.html", ".run.json.ab12cd34"):
        (run.path / name).write_text("of this machine")
    saved = RunSaver(store, run, 1).save()
    state = restore_run(store, saved, tmp_path / "restored")
    assert state.files == (".codex/one/sessions/2026/thread.jsonl", "one/events.jsonl", "run.json")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nosuch://place", "unknown scheme: nosuch"),
        ("s3://key:hunter22@bucket/x", "contains credentials"),
        ("simplecache::s3://bucket/x", "contains credentials, or leads"),
        ("file://host/folder", "is not an absolute path"),
        ("", "is empty"),
    ],
)
def test_unusable_address_is_a_usage_error(address: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        Store.open(address)
    assert caught.value.hint
    assert "hunter22" not in f"{caught.value} {caught.value.hint}"


def test_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    with pytest.raises(UsageError, match="needs a package that is not installed") as caught:
        Store.open("s3://bucket/prefix")
    assert "codex-multi-role[s3]" in caught.value.hint


def test_unreachable_store_is_named() -> None:
    with pytest.raises(StorageError, match=r"the store ftp://127\.0\.0\.1:1/x cannot be") as caught:
        Store.open("ftp://127.0.0.1:1/x")
    assert caught.value.hint


def test_store_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=f"the store file://{tmp_path}/file cannot be read: Not a directory"):
        Store.open(str(tmp_path / "file"))


@dataclass
class Broken:
    """Objects that cannot be used."""

    error: Exception

    def read(self, name: str) -> bytes:
        raise self.error

    def exists(self, name: str) -> bool:
        raise self.error

    def write(self, name: str, content: bytes) -> None:
        raise self.error

    create = write


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (PermissionError("Forbidden"), "cannot be read: Forbidden", "Check the rights"),
        (TimeoutError(), "cannot be read: no answer in time", "the network"),
        (RuntimeError("signature of hunter22hunter22"), r"cannot be read: signature of \[redacted\]", "credentials"),
        (FileNotFoundError("no such bucket"), "cannot be written: no such bucket", "Check the address"),
    ],
)
def test_failures_of_any_library_are_in_words(
    error: Exception, message: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter22hunter22")
    with pytest.raises(StorageError, match=f"the store s3://bucket {message}") as caught:
        Store("s3://bucket", Broken(error))
    assert hint in caught.value.hint


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_runs_are_saved_through_fsspec(scheme: str, tmp_path: Path) -> None:
    """In one step where the protocol does that, otherwise under another name that is then changed."""
    address = f"{scheme}://{tmp_path}/store"
    store = Store(address, RemoteObjects(address, scheme))
    assert Store(address, RemoteObjects(address, scheme)).identity == store.identity
    run = a_run(tmp_path)
    state = restore_run(store, RunSaver(store, run, 1).save(), tmp_path / "restored")
    assert state.files == ("one/events.jsonl", "run.json")
    assert contents(tmp_path / "restored") == contents(run.path)
    with pytest.raises(StorageError, match="is missing from the store"):
        store.get("0" * 64)
