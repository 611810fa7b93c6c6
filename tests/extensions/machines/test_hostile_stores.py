"""Definitions and saved runs that a stranger packed to fill the disk, to lead elsewhere or to hang are refused."""

from __future__ import annotations

import json
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import codex_multi_role.extensions.machines.store.store as store_module
from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.store.objects import LocalObjects
from codex_multi_role.extensions.machines.store.restoring import restore_run
from codex_multi_role.extensions.machines.store.state_manifest import (
    SUFFIX,
    Piece,
    SavedFile,
    StateManifest,
    read_pieces,
    write_manifest,
)
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.extensions.machines.store.workspace_sources import WorkspaceSource, make_workspace
from codex_multi_role.extensions.machines.workers.submission import unpack_definitions
from tests.support.bombs import only_below, tar_of
from tests.support.catalogs import raised

__all__ = ["only_below"]
pytestmark = pytest.mark.usefixtures("only_below")

DEFINITIONS: dict[str, tuple[Callable[[], bytes], str]] = {
    "symbolic_link": (lambda: tar_of(("evil", b""), kind=tarfile.SYMTYPE), "links"),
    "hard_link": (lambda: tar_of(("evil", b""), kind=tarfile.LNKTYPE), "links"),
    "device": (lambda: tar_of(("evil", b""), kind=tarfile.CHRTYPE), "links"),
    "pipe": (lambda: tar_of(("evil", b""), kind=tarfile.FIFOTYPE), "links"),
    "above": (lambda: tar_of(("../evil", b"")), "does not belong there"),
    "absolute": (lambda: tar_of(("/tmp/evil", b"")), "does not belong there"),
    "twice": (lambda: tar_of(("a", b"1"), ("a", b"2")), "two files a"),
    "file_below_a_file": (lambda: tar_of(("a", b""), ("a/evil", b"")), "a file below a file"),
    "deep": (lambda: tar_of(("/".join("e" * 60), b"")), "50 nested folders"),
    "compressed": (lambda: tar_of(("a", bytes(1000)), mode="w:gz"), "damaged"),
    "compressed_by_xz": (lambda: tar_of(("a", bytes(1000)), mode="w:xz"), "damaged"),
    "noise": (lambda: bytes(range(256)) * 4, "damaged"),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_hostile_definitions_are_refused(name: str, tmp_path: Path) -> None:
    make, words = DEFINITIONS[name]
    store = Store.open(str(tmp_path / "store"))
    with pytest.raises(StorageError, match="the definitions") as refused:
        unpack_definitions({"archive": store.put(make()), "catalog": "c", "playbook": None}, store, tmp_path / "out")
    assert words in str(refused.value)
    assert not (tmp_path / "out").exists()


def saved(store: Store, files: dict[str, SavedFile]) -> str:
    return write_manifest(store, 1, StateManifest(run_id="20260131_101500_0a1b2c3d", attempt=0, files={**files}))


def piece(store: Store, content: bytes, size: int) -> Piece:
    return Piece(size=size, digest=store.put(content))


STORES: dict[str, tuple[Callable[[Store], dict[str, SavedFile]], str]] = {
    "one_piece_many_times": (
        lambda store: {"evil": SavedFile(mode=0o600, pieces=(piece(store, bytes(2**20), 2**26),) * 1100)},
        "65536 MiB",
    ),
    "piece_longer_than_declared": (
        lambda store: {"big": SavedFile(mode=0o600, pieces=(piece(store, bytes(2**20), 1),))},
        "is not 1 bytes long",
    ),
    "deep_path": (lambda store: {"/".join("e" * 200): SavedFile.small(0o600, b"")}, "100 nested folders"),
}


@pytest.mark.parametrize("name", STORES)
def test_hostile_saved_run_is_refused(name: str, tmp_path: Path) -> None:
    files, words = STORES[name]
    store = Store.open(str(tmp_path / "store"))
    assert words in str(raised(StorageError, restore_run, store, saved(store, files(store)), tmp_path / "run"))
    assert sum(path.stat().st_size for path in (tmp_path / "run").rglob("*")) == 0


def test_object_that_inflates_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is longer than any object may be, or cut short."""
    monkeypatch.setattr(store_module, "OBJECT", replace(store_module.OBJECT, max_bytes=1000))
    store = Store.open(str(tmp_path / "store"))
    short, long = store.put(b"content"), store.put(bytes(2000))
    LocalObjects(tmp_path / "store").write(f"blobs/{short[:2]}/{short}", zlib.compress(b"content")[:-6])
    for digest, size in ((short, 7), (long, 2000)):
        with pytest.raises(StorageError, match="is damaged in the store"):
            list(read_pieces(store, SavedFile(mode=0o600, pieces=(Piece(size=size, digest=digest),))))


def test_bundled_workspace_that_is_not_a_file_is_refused(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "store"))
    name = store.put_named("bundles/", SUFFIX, json.dumps({"evil": 1}).encode())
    with pytest.raises(StorageError, match="cannot be read"):
        make_workspace(WorkspaceSource(bundle=name), store, tmp_path / "work")
