"""Processes that belong to a folder: by where they work, or by their environment, such as CODEX_HOME."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil

POLL_SECONDS = 0.05


def processes_of(folder: Path) -> list[psutil.Process]:
    """All live processes that work below ``folder``, or whose environment names something below it."""
    return [process for process in psutil.process_iter() if _is_of(process, f"{folder}/")]


def _is_of(process: psutil.Process, inside: str) -> bool:
    with contextlib.suppress(psutil.Error):
        if process.status() != psutil.STATUS_ZOMBIE:
            return any(inside in f"{each}/" for each in (process.cwd(), *process.environ().values()))
    return False


def wait_until_gone(folder: Path, seconds: float) -> list[psutil.Process]:
    """Wait until no process of ``folder`` is left; returns those that are left after ``seconds`` all the same."""
    deadline = time.monotonic() + seconds
    while (left := processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return left


def end(processes: list[psutil.Process]) -> list[str]:
    """Kill ``processes``; returns what they were."""
    names = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            names.append(" ".join(process.cmdline())[:200] or process.name())
            process.kill()
    return names
