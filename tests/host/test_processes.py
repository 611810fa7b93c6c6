"""What belongs to a family of processes, where the system plays tricks with their numbers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from codex_multi_role.host import processes
from codex_multi_role.host.processes import Family, lives

pytestmark = pytest.mark.real

ENDS_WHO_HAS_THE_PID_OF_ANOTHER = """
import os
import subprocess
import time
from pathlib import Path
from codex_multi_role.host.processes import Family

family, others = Family(), Family()
first = subprocess.Popen(["sleep", "1000"])
others.end()  # for its look at all processes
first.kill()
first.wait()
time.sleep(2 / os.sysconf("SC_CLK_TCK"))  # in a tick of its own: a start time is no finer
Path("/proc/sys/kernel/ns_last_pid").write_text(str(first.pid - 1))
second = subprocess.Popen(["sleep", "1000"], env=family.marked({}), start_new_session=True)
assert second.pid == first.pid
ended = family.end()
second.kill()
print(ended)
"""
"""To be run in a namespace of process ids of its own, where it may say which comes next."""
IN_NAMESPACE = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"]
MANY_BUSY_THREADS = """
import hashlib
import os
import threading

for _ in range(20):  # where Python does not notice that its process ends
    threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 10**9), daemon=True).start()
os._exit(0)
"""


def has_namespaces() -> bool:
    return bool(shutil.which("unshare")) and subprocess.run([*IN_NAMESPACE, "true"], check=False).returncode == 0


@pytest.mark.skipif("not has_namespaces()", reason="this system lets nobody make namespaces of process ids")
def test_process_with_reused_pid_is_ended() -> None:
    """An unrelated process, which has ended since, had the same PID."""
    command = [*IN_NAMESPACE, sys.executable, "-c", ENDS_WHO_HAS_THE_PID_OF_ANOTHER]
    assert subprocess.run(command, check=True, text=True, capture_output=True).stdout == "1\n"


def test_process_lives_until_its_last_thread_has_ended() -> None:
    """Its first one is a zombie before that, and nobody can wait for the process yet."""
    with subprocess.Popen([sys.executable, "-c", MANY_BUSY_THREADS]) as ends:
        process = psutil.Process(ends.pid)
        while lives(process):
            pass
        assert ends.poll() == 0


def test_process_is_known_by_its_mark_while_its_program_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system shows no variables until `execve` has ended."""
    family = Family()
    with subprocess.Popen(["sleep", "86519"], env=family.marked({}), start_new_session=True) as started:
        environ, cmdline = psutil.Process.environ, psutil.Process.cmdline
        looks: list[int] = []

        def empty_at_first(process: psutil.Process) -> dict[str, str]:
            """Only of this one: to wait for others that have just started would take as long as this one may."""
            looks.append(process.pid)
            return {} if process.pid == started.pid and looks.count(started.pid) <= 2 else environ(process)

        monkeypatch.setattr(psutil.Process, "environ", empty_at_first)
        monkeypatch.setattr(psutil.Process, "cmdline", lambda each: [] if each.pid == started.pid else cmdline(each))
        found = [each.pid for each in family.members()]
        started.kill()
    assert found == [started.pid]


def test_variables_of_an_ending_process_cause_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory is gone, and with it arguments, variables and program, some time before the process is."""
    family = Family()
    with subprocess.Popen(["sleep", "86520"], env=family.marked({}), start_new_session=True) as ending:
        looks: list[int] = []

        def gone(process: psutil.Process) -> dict[str, str]:
            looks.append(process.pid)
            return {}

        monkeypatch.setattr(psutil.Process, "environ", gone)
        monkeypatch.setattr(psutil.Process, "cmdline", lambda _: [])
        monkeypatch.setattr(psutil.Process, "exe", lambda _: "")
        family.members()
        ending.kill()
    assert looks.count(ending.pid) == 1


class CountingLock:
    """A reentrant lock that sets ``enough`` once it was taken ``times``."""

    def __init__(self, times: int) -> None:
        self._lock = threading.RLock()
        self._left = times
        self.enough = threading.Event()

    def __enter__(self) -> None:
        self._lock.acquire()
        self._left -= 1
        if self._left == 0:
            self.enough.set()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_look_is_shared_by_those_who_asked_before_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run ends all its processes at once. Each end finds what was started before it asked."""
    others, pids, looks = 8, psutil.pids, 0
    asked = CountingLock(2 + others)  # the first look takes it twice: to ask and to begin
    monkeypatch.setattr(processes._MARKS, "_asking_lock", asked)
    began = threading.Event()

    def first_waits() -> list[int]:
        nonlocal looks
        looks += 1
        found = pids()
        if looks == 1:
            began.set()
            assert asked.enough.wait(30)
        return found

    monkeypatch.setattr(psutil, "pids", first_waits)
    family = Family()
    with ThreadPoolExecutor(1 + others) as pool:
        first = pool.submit(Family().members)
        assert began.wait(30)
        with subprocess.Popen(["sleep", "86518"], env=family.marked({}), start_new_session=True) as started:
            ends = [pool.submit(family.members) for _ in range(others)]
            found = [[each.pid for each in end.result(30)] for end in ends]
            started.kill()
    assert (first.result(), found, looks) == ([], [[started.pid]] * others, 2)
