"""Changes in watched folders are noticed, each once, whether the system reports them or the folders are polled."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from watchdog.observers import Observer
from watchdog.observers.polling import PollingObserver

from codex_multi_role.host import watched_files
from codex_multi_role.host.watched_files import WatchedFolders

DEADLINE_SECONDS = 10.0
Watch = Callable[..., WatchedFolders]


@pytest.fixture
def role(tmp_path: Path) -> Path:
    file = tmp_path / "role.yaml"
    file.write_text("one")
    return file


@pytest.fixture(params=["ext4", "nfs"])
def watch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Watch these folders, as if they were on a file system of the kind."""
    mounts = [SimpleNamespace(mountpoint="/", fstype=request.param)]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: mounts)
    monkeypatch.setattr(watched_files, "POLL_SECONDS", 0.02)
    started: list[WatchedFolders] = []

    def watch(*folders: Path) -> WatchedFolders:
        started.append(WatchedFolders(lambda: folders))
        assert {type(each) is PollingObserver for each in started[-1]._observers.values()} <= {request.param == "nfs"}
        return started[-1]

    yield watch
    for each in started:
        each.close()


def _noticed(watched: WatchedFolders, pause: Callable[[float], object] = time.sleep) -> bool:
    end = time.monotonic() + DEADLINE_SECONDS
    while not (found := watched.have_changed(pause)) and time.monotonic() < end:
        time.sleep(0.005)
    return found


def test_each_kind_of_change_is_noticed_once(role: Path, watch: Watch) -> None:
    def replace() -> None:
        (role.parent / "new").write_text("six")
        (role.parent / "new").replace(role)

    watched = watch(role.parent)
    changes = (
        lambda: role.write_text("two"),
        replace,
        (role.parent / "another.yaml").touch,
        role.unlink,
    )
    for change in changes:
        change()
        assert (_noticed(watched), watched.have_changed()) == (True, False)


@pytest.mark.parametrize("watch", ["ext4"], indirect=True)
def test_write_with_the_old_time_is_reported(role: Path, watch: Watch) -> None:
    before = role.stat()
    watched = watch(role.parent)
    role.write_text("ten")
    os.utime(role, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert _noticed(watched)


def test_what_changes_while_it_settles_is_the_same_change(role: Path, watch: Watch) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) < 3:
            role.write_text("more" * len(pauses))
        time.sleep(seconds)

    watched = watch(role.parent)
    role.write_text("half")
    assert (_noticed(watched, pause), watched.have_changed(pause)) == (True, False)
    assert len(pauses) >= 3


def test_neither_readers_nor_files_below_change_anything(role: Path, watch: Watch) -> None:
    (role.parent / "below").mkdir()
    watched = watch(role.parent)
    assert role.read_text() == "one"
    (role.parent / "below/role.yaml").touch()
    time.sleep(0.1)  # to be reported, or found; a change that is noticed later is not missed here
    assert not watched.have_changed()


def test_linked_file_is_watched_where_it_is(role: Path, tmp_path: Path, watch: Watch) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "role.yaml").symlink_to(role)
    (folder / "nothing.yaml").symlink_to(tmp_path / "nowhere")
    watched = watch(folder)
    role.write_text("three")
    assert _noticed(watched)


def test_folders_come_and_go(tmp_path: Path, watch: Watch) -> None:
    folder = tmp_path / "flows"
    watched = watch(folder)
    assert not watched.have_changed()
    folder.mkdir()
    assert (_noticed(watched), watched.have_changed()) == (True, False)
    (folder / "own.yaml").touch()
    assert _noticed(watched)
    (folder / "own.yaml").unlink()
    folder.rmdir()
    assert _noticed(watched)


def test_polls_if_the_system_watches_no_more_files(role: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "inotify watch limit reached")

    monkeypatch.setattr(type(Observer()), "schedule", refuse)
    monkeypatch.setattr(watched_files, "POLL_SECONDS", 0.02)
    with WatchedFolders(lambda: [role.parent]) as watched:
        role.write_text("another")
        assert _noticed(watched)


def test_unreadable_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> Iterator[Path]:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(PermissionError):
        WatchedFolders(lambda: [tmp_path])
