"""What a stranger packed to fill the disk, to lead elsewhere or to hang: it is refused with its reason.

Nothing of it runs, and nothing is written outside its folder.
"""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.catalog.skills import read_skill
from codex_multi_role.errors import DefinitionError, StorageError, UsageError
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.cloning import clone
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.trees import write_commit
from tests.support.bombs import bomb, folders_of_other_modes, only_below, tar_of, zip_of
from tests.support.catalogs import files_of_skill

__all__ = ["only_below"]
pytestmark = pytest.mark.usefixtures("only_below")
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
    "bzip2": (lambda: skill(("zeros", b""), method=zipfile.ZIP_BZIP2), "neither stored nor deflated"),
    "lzma": (lambda: skill(("zeros", b""), method=zipfile.ZIP_LZMA), "neither stored nor deflated"),
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
@pytest.mark.extensions
@pytest.mark.parametrize("ref", [None, "main"])
def test_hostile_repository_of_a_batch_is_not_checked_out(
    ref: str | None, hostile_repository: Path, tmp_path: Path
) -> None:
    from codex_multi_role.extensions.machines.batches.repositories import clone as clone_for_batch

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
