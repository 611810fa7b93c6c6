"""What a stranger packed to fill the disk, to lead elsewhere or to hang: it is refused with its reason.

Nothing of it runs, and nothing is written outside its folder.
"""

from __future__ import annotations

import json
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.batches.repositories import clone as clone_for_batch
from codex_multi_role.catalog.skills import read_skill
from codex_multi_role.errors import DefinitionError, StorageError, UsageError
from codex_multi_role.store import Store, WorkspaceSource, make_workspace, restore_run
from codex_multi_role.store.objects import LocalObjects
from codex_multi_role.store.state_manifest import SUFFIX, Piece, SavedFile, StateManifest, read_pieces, write_manifest
from codex_multi_role.workers.submission import unpack_definitions
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.cloning import clone
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.trees import write_commit
from tests.support.bombs import bomb, folders_of_other_modes, tar_of, zip_of
from tests.support.catalogs import files_of_skill


@pytest.fixture(autouse=True)
def _only_below(tmp_path: Path) -> Iterator[None]:
    """Nothing that is called so appears anywhere near."""
    yield
    assert not [path for path in (*tmp_path.parent.glob("*evil*"), *tmp_path.rglob("evil")) if path.is_file()]


SKILL = files_of_skill("draw")


def skill(*members: tuple[str, bytes], **options: Any) -> bytes:
    return zip_of(*SKILL.items(), *members, **options)


def encrypted(data: bytes) -> bytes:
    """Marked so, in both headers of its first file."""
    changed = bytearray(data)
    for start in (data.index(b"PK\x03\x04") + 6, data.index(b"PK\x01\x02") + 8):
        changed[start] |= 1
    return bytes(changed)


def smaller(data: bytes) -> bytes:
    """With ten bytes as the size of its first file."""
    changed = bytearray(data)
    for start in (data.index(b"PK\x03\x04") + 22, data.index(b"PK\x01\x02") + 24):
        changed[start : start + 4] = (10).to_bytes(4, "little")
    return bytes(changed)


SKILLS: dict[str, tuple[Callable[[], bytes], str]] = {
    "zeros": (lambda: skill(("zeros", bytes(20 * 2**20))), "10 MiB"),
    "false_size": (lambda: smaller(zip_of(("zeros", bytes(20 * 2**20)))), "cannot be unpacked"),
    "bzip2": (lambda: skill(("zeros", bytes(20 * 2**20)), method=zipfile.ZIP_BZIP2), "neither stored nor deflated"),
    "lzma": (lambda: skill(("zeros", bytes(20 * 2**20)), method=zipfile.ZIP_LZMA), "neither stored nor deflated"),
    "link": (lambda: skill(("evil", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777), "links"),
    "many": (lambda: skill(*((f"file{number}", b"") for number in range(500))), "500 files"),
    "many_folders": (lambda: skill(*((f"folder{number}/", b"") for number in range(500))), "500 files"),
    "deep": (lambda: skill(("/".join("e" * 30), b"")), "20 nested folders"),
    "above": (lambda: skill(("../evil", b"")), "does not belong there"),
    "folder_above": (lambda: skill(("../../evil/", b"")), "does not belong there"),
    "absolute": (lambda: skill(("/tmp/evil", b"")), "does not belong there"),
    "drive": (lambda: skill(("c:evil", b"")), "does not belong there"),
    "backslash": (lambda: skill(("..\\evil", b"")), "does not belong there"),
    "dot": (lambda: skill(("./evil", b"")), "does not belong there"),
    "empty_name": (lambda: skill(("/", b"")), "does not belong there"),
    "file_below_a_file": (lambda: skill(("SKILL.md/evil", b"")), "a file below a file"),
    "long_name": (lambda: skill(("e" * 256, b"")), "a name that is too long"),
    "encrypted": (lambda: encrypted(skill()), "cannot be unpacked"),
    "tar": (lambda: tar_of(*SKILL.items()), "neither a zip nor a 7z archive"),
    "empty_file": (lambda: b"", "neither a zip nor a 7z archive"),
    "cut_short": (lambda: skill()[:-30], "cannot be unpacked"),
}


@pytest.mark.parametrize("name", SKILLS)
def test_hostile_skill_is_refused(name: str, tmp_path: Path) -> None:
    make, words = SKILLS[name]
    (tmp_path / "draw.skill").write_bytes(make())
    with pytest.raises(DefinitionError) as refused:
        read_skill(tmp_path / "draw.skill")
    assert str(refused.value).startswith(f"{tmp_path}/draw.skill: ")
    assert words in str(refused.value)


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
    with pytest.raises(StorageError) as refused:
        restore_run(store, saved(store, files(store)), tmp_path / "run")
    assert words in str(refused.value)
    assert sum(path.stat().st_size for path in (tmp_path / "run").rglob("*")) == 0


@pytest.mark.parametrize("end", [b"", b"more"])
def test_object_that_inflates_without_end_is_refused(end: bytes, tmp_path: Path) -> None:
    """It is damaged in another way: cut short, or longer than any object."""
    store = Store.open(str(tmp_path / "store"))
    digest = store.put(b"content")
    packed = zlib.compress(bytes(257 * 2**20), 1) if end else zlib.compress(b"content")[:-6]
    LocalObjects(tmp_path / "store").write(f"blobs/{digest[:2]}/{digest}", packed)
    with pytest.raises(StorageError, match="is damaged in the store"):
        list(read_pieces(store, SavedFile(mode=0o600, pieces=(Piece(size=7, digest=digest),))))


def test_bundled_workspace_that_is_no_file_is_refused(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "store"))
    name = store.put_named("bundles/", SUFFIX, json.dumps({"evil": 1}).encode())
    with pytest.raises(StorageError, match="cannot be read"):
        make_workspace(WorkspaceSource(bundle=name), store, tmp_path / "work")


@pytest.fixture
def hostile_repository(tmp_path: Path) -> Path:
    folder = tmp_path / "hostile"
    folder.mkdir()
    git = Git(folder / ".git", folder)
    git.run("init", "--quiet", "--template=", "--initial-branch=main")
    commit = write_commit(git, bomb(git), ())
    git.run("update-ref", "refs/heads/main", commit)
    git.run("update-ref", "refs/tags/v1", commit)
    return folder


@pytest.mark.parametrize("ref", ["", "main", "v1", "commit"])
def test_hostile_repository_is_not_checked_out(ref: str, hostile_repository: Path, tmp_path: Path) -> None:
    if ref == "commit":
        ref = Git(hostile_repository / ".git", tmp_path).run("rev-parse", "main").stdout.decode().strip()
    (tmp_path / "work").mkdir()
    with pytest.raises(UsageError, match="shop cannot be cloned: it has more than 2000000 files"):
        clone(str(hostile_repository), ref, tmp_path / "work", "shop")
    assert [path.name for path in (tmp_path / "work").iterdir()] == [".git"]


@pytest.mark.real
@pytest.mark.parametrize("ref", [None, "main"])
def test_hostile_repository_of_a_batch_is_not_checked_out(
    ref: str | None, hostile_repository: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="was not cloned: it has more than 2000000 files"):
        clone_for_batch(str(hostile_repository), ref, tmp_path / "mirrors", tmp_path / "work")
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("make", [bomb, folders_of_other_modes])
def test_hostile_snapshot_is_not_restored(make: Callable[[Git], str], tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    snapshots = Snapshots(tmp_path / "snapshots", Workspace(tmp_path / "work"))
    with pytest.raises(StorageError, match="cannot be restored: it has more than 2000000 files"):
        snapshots.fill(make(snapshots.repository()))
    assert not list((tmp_path / "work").iterdir())
