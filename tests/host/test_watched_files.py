"""Changes in watched folders are noticed, each once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codex_multi_role.host.watched_files import WatchedFolders


@pytest.fixture
def role(tmp_path: Path) -> Path:
    file = tmp_path / "role.yaml"
    file.write_text("one")
    return file


def test_each_kind_of_change_is_noticed_once(role: Path) -> None:
    def replace() -> None:
        (role.parent / "new").write_text("six")
        (role.parent / "new").replace(role)

    def write_with_the_old_time() -> None:
        before = role.stat()
        role.write_text("ten")
        os.utime(role, ns=(before.st_atime_ns, before.st_mtime_ns))

    watched = WatchedFolders(lambda: [role.parent])
    changes = (
        lambda: role.write_text("two"),
        replace,
        write_with_the_old_time,
        (role.parent / "another.yaml").touch,
        role.unlink,
    )
    for change in changes:
        change()
        assert (watched.have_changed(), watched.have_changed()) == (True, False)


def test_what_changes_while_it_settles_is_the_same_change(role: Path) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) < 3:
            role.write_text("more" * len(pauses))

    watched = WatchedFolders(lambda: [role.parent])
    role.write_text("half")
    assert (watched.have_changed(pause), watched.have_changed(pause)) == (True, False)
    assert len(pauses) == 3


def test_neither_readers_nor_files_below_change_anything(role: Path) -> None:
    (role.parent / "below").mkdir()
    watched = WatchedFolders(lambda: [role.parent])
    assert role.read_text() == "one"
    (role.parent / "below/role.yaml").touch()
    assert not watched.have_changed()


def test_linked_file_is_watched_where_it_is(role: Path, tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "role.yaml").symlink_to(role)
    (folder / "nothing.yaml").symlink_to(tmp_path / "nowhere")
    watched = WatchedFolders(lambda: [folder])
    role.write_text("two")
    assert watched.have_changed()


def test_folders_come_and_go(tmp_path: Path) -> None:
    folder = tmp_path / "flows"
    watched = WatchedFolders(lambda: [folder])
    folder.mkdir()
    assert not watched.have_changed()
    (folder / "own.yaml").touch()
    assert watched.have_changed()
    (folder / "own.yaml").unlink()
    folder.rmdir()
    assert watched.have_changed()
