"""What a stranger packed to fill the disk, to lead elsewhere or to hang: it is refused with its reason.

Nothing of it runs, and nothing is written outside its folder.
"""

from __future__ import annotations

import hashlib
import json
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from codex_multi_role.batches.repositories import clone as clone_for_batch
from codex_multi_role.catalog.skills import read_skill
from codex_multi_role.errors import CodexMultiRoleError, DefinitionError, StorageError, UsageError
from codex_multi_role.proof import verify_bundle
from codex_multi_role.store import Store, WorkspaceSource, make_workspace, restore_run
from codex_multi_role.store.objects import LocalObjects
from codex_multi_role.store.state_manifest import SUFFIX, Piece, SavedFile, StateManifest, read_pieces, write_manifest
from codex_multi_role.workers.submission import unpack_definitions
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.cloning import clone
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.trees import write_commit
from tests.support.bombs import make_blob, make_tree, nested, tar_of, zip_of
from tests.support.bundles import Parts
from tests.support.catalogs import files_of_skill

Edit = Callable[[Parts], None]
HUGE = 20
"""Megabytes of zeros, which a pack has as 20 kB."""


@pytest.fixture(autouse=True)
def _only_below(tmp_path: Path) -> Iterator[None]:
    """Nothing that is called so appears anywhere near."""
    yield
    assert not [path for path in (*tmp_path.parent.glob("*evil*"), *tmp_path.rglob("evil")) if path.is_file()]


def first_state(make: Callable[[Git], str]) -> Edit:
    return lambda parts: parts.replace_state(parts.observed["first"], make(parts.states))


def many_large(git: Git) -> str:
    blob = make_blob(git, bytes(HUGE * 2**20))
    return make_tree(git, *(f"100644 blob {blob}\tfile{number}" for number in range(180)))


def one_file(git: Git) -> str:
    return make_tree(git, f"100644 blob {make_blob(git, b'x')}\tfile")


def bomb(git: Git) -> str:
    return nested(git, one_file(git), 40)


def raw_tree(git: Git, *entries: tuple[str, str]) -> str:
    """A tree of modes and objects as they are, each with a letter as its name."""
    content = b"".join(
        f"{mode} {name}\0".encode() + bytes.fromhex(oid)
        for name, (mode, oid) in zip("abcdefghij", entries, strict=False)
    )
    made = git.run("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=content)
    return made.stdout.decode().strip()


def under_modes(git: Git, *modes: str) -> str:
    inner = one_file(git)
    for level in range(40):
        inner = raw_tree(git, *[(modes[level % len(modes)], inner)] * 10)
    return inner


def folders_of_other_modes(git: Git) -> str:
    """Git takes many modes for folders, also one that is too large for its number."""
    return under_modes(git, "40755", "040000", "41777", "20000040000")


def later_state(parts: Parts) -> None:
    parts.replace_state(parts.observed["changes"][1]["after"], bomb(parts.states))


def state_of_a_copy(parts: Parts) -> None:
    change = {**parts.observed["changes"][0], "after": bomb(parts.states)}
    parts.observed["in_copies"] = [change]


def state_without_its_blob(git: Git) -> str:
    return make_tree(git, f"100644 blob {'e' * 40}\tfile")


def commit_as_state(git: Git) -> str:
    return write_commit(git, one_file(git), ())


def pack_of_a_large_delta() -> bytes:
    """Sixteen megabytes of zeros, and two hundred times the same: a few bytes of copy instructions."""
    base = bytes(0xFFFFFF)
    oid = hashlib.sha1(b"blob %d\0" % len(base) + base).digest()
    delta = varint(len(base)) + varint(200 * len(base)) + b"\xf0\xff\xff\xff" * 200
    packed = entry(3, base) + entry(7, delta, oid)
    content = b"PACK" + struct.pack(">II", 2, 2) + packed
    return content + hashlib.sha1(content).digest()


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def entry(kind: int, content: bytes, base: bytes = b"") -> bytes:
    size = len(content)
    head = bytearray([kind << 4 | size & 0xF])
    size >>= 4
    while size:
        head[-1] |= 0x80
        head.append(size & 0x7F)
        size >>= 7
    return bytes(head) + base + zlib.compress(content)


def claim(**fields: Any) -> Edit:
    return lambda parts: parts.claims.update(fields)


def header(**fields: Any) -> Edit:
    return lambda parts: parts.recording[0].update(fields)


def more(**files: bytes) -> Edit:
    return lambda parts: parts.more.update({f"team/{name}": content for name, content in files.items()})


def deep_json(parts: Parts) -> None:
    value: list[Any] = []
    for _ in range(900):
        value = [value]
    parts.recording.insert(1, {"type": "exchange", "items": value})


def team_file(text: str) -> Edit:
    return lambda parts: parts.team.update({"team/catalog.yaml": text})


ALIASES = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
BUNDLES: dict[str, tuple[Edit, str]] = {
    "nested_trees": (first_state(bomb), "more than 100000 files"),
    "nested_trees_without_files": (first_state(lambda git: nested(git, make_tree(git), 40)), "more than 100000 files"),
    "folders_of_other_modes": (first_state(folders_of_other_modes), "its states are damaged"),
    "folders_named_as_files": (first_state(lambda git: under_modes(git, "100644")), "its states are damaged"),
    "deep_tree": (first_state(lambda git: nested(git, one_file(git), 150, "a")), "100 nested folders"),
    "one_large_blob_many_times": (first_state(many_large), "1024 MiB"),
    "later_state": (later_state, "more than 100000 files"),
    "state_of_a_copy": (state_of_a_copy, "more than 100000 files"),
    "state_without_its_blob": (first_state(state_without_its_blob), "its states are damaged"),
    "endless_seconds": (claim(test_seconds=1e308), "claims.json: test_seconds: Input should be less than or equal"),
    "no_seconds": (claim(test_seconds=0.0), "claims.json: test_seconds: Input should be greater than"),
    "infinite_seconds": (claim(test_seconds=float("inf")), "claims.json: test_seconds: "),
    "absolute_catalog": (claim(catalog_file="/etc/passwd"), "it has no team//etc/passwd"),
    "catalog_above": (claim(catalog_file="../../evil"), "it has no team/../../evil"),
    "file_below_a_file": (lambda parts: parts.more.update({"team/catalog.yaml/evil": b""}), "a file below a file"),
    "long_name": (more(**{"e" * 300: b""}), "a name that is too long"),
    "long_path": (more(**{"/".join(["e" * 200] * 6): b""}), "a name that is too long"),
    "deep_path": (more(**{"/".join("e" * 120): b""}), "100 nested folders"),
    "many_cycles_as_text": (header(cycles="9" * 9), "cycles: Input should be a valid integer"),
    "number_of_many_digits": (lambda parts: parts.recording.insert(1, {"n": "DIGITS"}), "is not a bundle"),
    "nested_answer": (deep_json, ""),
    "catalog_of_aliases": (team_file(ALIASES), "catalog.yaml"),
    "flow_elsewhere": (header(flow="../../../etc/passwd"), ""),
    "lines_of_no_kind": (
        lambda parts: parts.recording.insert(1, {"type": "evil"}),
        "lines that no run writes: lines 2",
    ),
    "line_that_is_a_list": (
        lambda parts: parts.recording.insert(1, cast(Any, ["evil"])),
        "lines that no run writes: lines 2",
    ),
    "second_header": (lambda p: p.recording.insert(2, p.recording[0]), "lines that no run writes: lines 3"),
    "end_before_the_end": (lambda p: p.recording.insert(1, p.ended), "lines that no run writes: lines 2"),
    "commit_as_state": (first_state(commit_as_state), "is claimed, but not in the bundle"),
    "blob_as_state": (first_state(lambda git: make_blob(git, b"x")), "is claimed, but not in the bundle"),
}


def reasons(path: Path) -> str:
    """Why the bundle is refused, before anything of it runs."""
    ran: list[str] = []
    try:
        result = verify_bundle(path, {}, on_command=ran.append)
    except CodexMultiRoleError as error:
        assert not ran
        return str(error)
    assert not ran
    assert result.exit_code == 1
    return "\n".join(line.text for line in result.lines if line.status == "differs")


@pytest.mark.real
@pytest.mark.usefixtures("scripted_codex")
@pytest.mark.parametrize("name", BUNDLES)
def test_hostile_bundle_is_refused_before_it_runs(name: str, shop_bundle: Path, tmp_path: Path) -> None:
    edit, words = BUNDLES[name]
    parts = Parts.of(shop_bundle, tmp_path / "parts")
    edit(parts)
    found = reasons(parts.write(tmp_path / "hostile.bundle", {'"DIGITS"': "1" * 5000}))
    assert words in found
    assert found


@pytest.mark.real
@pytest.mark.usefixtures("scripted_codex")
def test_delta_of_gigabytes_is_refused(shop_bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(shop_bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    path = tmp_path / "hostile.bundle"
    path.write_bytes(zip_of(*{**files, "states.pack": pack_of_a_large_delta()}.items()))
    assert "over limit" in reasons(path)


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
