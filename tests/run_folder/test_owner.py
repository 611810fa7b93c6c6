"""One live owner a run: the kernel holds the lock, so that it ends with its process, however that ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from codex_multi_role.errors import RunBusy, StorageError, UsageError
from codex_multi_role.lifecycle.stopping import stop_run
from codex_multi_role.run_folder import Owner, RunFolder
from codex_multi_role.run_folder.owner import is_alive
from tests.support.processes import largest_file

HOLD = """
import subprocess, sys
from pathlib import Path
from codex_multi_role.run_folder import Owner
owner = Owner(Path(sys.argv[1]))
owner.acquire()
child = subprocess.Popen(["sleep", "60"])
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "20260131_101500_00000000"
    folder.mkdir()
    return folder / "owner.json"


@contextmanager
def held(path: Path) -> Iterator[tuple[subprocess.Popen[str], psutil.Process]]:
    """A process that has the lock, and a child of it that outlives it."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    child = psutil.Process(int(holder.stdout.readline()))
    try:
        yield holder, child
    finally:
        child.kill()
        holder.kill()
        holder.communicate()


@pytest.mark.real
def test_second_process_is_refused_and_the_owner_is_named(path: Path) -> None:
    with held(path) as (holder, _), pytest.raises(RunBusy) as caught:
        Owner(path).acquire()
    assert str(caught.value) == f"run {path.parent.name} is being worked on by process {holder.pid}"
    assert "Ctrl-C" in caught.value.hint


@pytest.mark.real
def test_lock_is_free_after_kill_nine_even_while_children_live(path: Path) -> None:
    owner = Owner(path)
    with held(path) as (holder, child):
        holder.send_signal(signal.SIGKILL)
        holder.wait(30)
        assert child.is_running()
        owner.acquire()
    owner.release()


def test_file_says_whose_it_is_for_as_long_as_it_is(path: Path) -> None:
    owner = Owner(path)
    owner.acquire()
    own = {"pid": os.getpid(), "start_time": psutil.Process().create_time(), "session": owner.session}
    assert json.loads(path.read_text()) == own
    owner.release()
    assert path.read_text() == ""


def test_what_an_owner_that_was_killed_left_is_written_over(path: Path) -> None:
    path.write_text('{"pid": 1, "start_time": 1.5}\n' * 100)
    owner = Owner(path)
    owner.acquire()
    assert json.loads(path.read_text())["pid"] == os.getpid()
    owner.release()


def test_owner_may_come_back(path: Path) -> None:
    first, second = Owner(path), Owner(path)
    first.acquire()
    with pytest.raises(RunBusy, match=str(os.getpid())):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()


def test_owner_without_a_name_yet_is_one_that_is_just_starting(path: Path) -> None:
    owner = Owner(path)
    owner.acquire()
    path.write_text("")
    with pytest.raises(RunBusy, match="process that is just starting"):
        Owner(path).acquire()
    owner.release()


def test_full_disk_is_named_and_the_lock_is_given_back(path: Path) -> None:
    with largest_file(1), pytest.raises(StorageError, match=r"cannot write .*owner\.json: File too large"):
        Owner(path).acquire()
    owner = Owner(path)
    owner.acquire()
    owner.release()


def test_folder_that_is_gone_is_named(path: Path) -> None:
    path.parent.rmdir()
    with pytest.raises(StorageError, match=r"cannot write .*owner\.json: No such file or directory"):
        Owner(path).acquire()


@pytest.mark.real
def test_process_that_only_a_folder_names_is_left_alone(path: Path) -> None:
    """A folder from elsewhere can name any process of this machine, but has no lock."""
    path.with_name("run.json").write_text(json.dumps({"status": "running"}))
    with subprocess.Popen(["sleep", "60"]) as named:
        path.write_text(json.dumps({"pid": named.pid, "start_time": psutil.Process(named.pid).create_time()}))
        with pytest.raises(UsageError, match="is not running"):
            stop_run(RunFolder(path.parent))
        assert named.poll() is None
        named.kill()


@pytest.mark.parametrize("owner", [{"pid": -1, "start_time": 1}, {"pid": "x", "start_time": 1}, {"pid": os.getpid()}])
def test_impossible_owner_is_not_alive(path: Path, owner: dict[str, object]) -> None:
    path.write_text(json.dumps(owner))
    assert not is_alive(RunFolder(path.parent))
