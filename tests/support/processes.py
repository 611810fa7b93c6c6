"""Processes of a test: watched, killed, limited or left behind.

A whole process is killed in `watched`. `killed_before_step` ends work in this process between any two of its steps, to
see what it leaves on disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from codex_multi_role import RunReport, run
from codex_multi_role.lifecycle.session import OnEvent
from tests.support.teams import Record, TeamFolder

FREE = {"sandbox": "danger-full-access"}
"""The keys of a role whose commands run without a sandbox."""
DAY = 86_400 + os.getpid() * 10  # others may be testing on this machine
WAIT_SECONDS = 60.0
LOOK_SECONDS = 0.02
NAME_CHANGES = ("mkdir", "replace", "symlink", "unlink", "rmdir")
MOST_STEPS = 400


def running(
    team: TeamFolder, *more: str, until: tuple[str, str | None]
) -> AbstractContextManager[subprocess.Popen[str]]:
    """``run`` in a process of its own, as `watched`."""
    return watched(team.start("--json", *more), until)


def interrupted(
    team: TeamFolder, until: tuple[str, str | None], number: int = signal.SIGINT, **options: object
) -> RunReport:
    """A run in this process that gets the signal ``number`` at the event ``until`` (type, role), once."""
    return run(team.options(**options), interrupting(until, number))


def interrupting(until: tuple[str, str | None], number: int = signal.SIGINT) -> OnEvent:
    """Send this process the signal ``number`` at the event ``until`` (type, role), once."""
    told: list[Record] = []

    def on_event(event: Record) -> None:
        if not told and (event["type"], event.get("role")) == until:
            told.append(event)
            os.kill(os.getpid(), number)

    return on_event


@contextmanager
def watched(process: subprocess.Popen[str], until: tuple[str, str | None]) -> Iterator[subprocess.Popen[str]]:
    """A command with ``--json``, once it has told the event ``until`` (type, role); gone afterwards."""
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if (event["type"], event.get("role")) == until:
            break
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        watchdog.cancel()


def hiding(seconds: int) -> str:
    """A command that leaves a process behind: in a session of its own, with nobody above it."""
    return f"setsid -f sleep {seconds}"


def sleeping(seconds: int) -> list[psutil.Process]:
    """The processes that a command of `hiding` left running."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cmdline() == ["sleep", str(seconds)] and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def wait_until(is_so: Callable[[], object], expected: str, seconds: float = WAIT_SECONDS) -> None:
    """Wait until ``is_so``, at most ``seconds``; ``expected`` completes "… never came"."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"{expected} never came"
        time.sleep(LOOK_SECONDS)


def wait_until_asleep(seconds: int) -> None:
    """Wait until a process that `hiding` left is there: the command ends before it has become ``sleep``."""
    wait_until(lambda: sleeping(seconds), f"sleep {seconds}")


def wait_for(path: Path, pattern: str = "") -> None:
    """Wait until ``path`` exists, or something below it that ``pattern`` matches; at most `WAIT_SECONDS`."""
    wait_until(lambda: any(path.glob(pattern)) if pattern else path.exists(), str(path / pattern))


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def killed_before_step(number: int) -> Iterator[None]:
    """End the work with `Killed` before its ``number``-th call of git, or change of a name on disk."""
    steps = 0

    def dies(*_: Any) -> bool:
        nonlocal steps
        steps += 1
        return steps == number

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", _mortal(subprocess.Popen, dies))
        for name in NAME_CHANGES:
            patch.setattr(os, name, _mortal(getattr(os, name), dies))
        yield


@contextmanager
def killed_at(target: Path) -> Iterator[None]:
    """End the work before a file gets the name of ``target``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", _mortal(os.replace, lambda _, name, *__: str(name) == target.name))
        yield


def _mortal(function: Callable[..., Any], dies: Callable[..., bool]) -> Callable[..., Any]:
    def step(*arguments: Any, **keywords: Any) -> Any:
        if dies(*arguments):
            raise Killed
        return function(*arguments, **keywords)

    return step


def killed_until_it_is_done(work: Callable[[], object]) -> int:
    """Do ``work``, killed at an ever later step, until it comes through; returns the number of kills."""
    return until_it_is_done(lambda number: _killed(work, number))


def until_it_is_done(work: Callable[[int], object]) -> int:
    """Call ``work`` with 1, 2, 3 … until it is not killed any more; returns the number of kills."""
    for number in range(1, MOST_STEPS):
        try:
            work(number)
        except Killed:
            continue
        return number - 1
    raise AssertionError("it never comes to an end")


def _killed(work: Callable[[], object], number: int) -> None:
    with killed_before_step(number):
        work()


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Within the block this process cannot make a file larger than ``size`` bytes: writing on fails with EFBIG."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
