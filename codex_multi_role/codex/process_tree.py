"""Ending what a process leaves behind, tool commands in sessions of their own included."""

from __future__ import annotations

import contextlib

import psutil

END_SECONDS = 2.0


def processes_below(pid: int) -> list[psutil.Process]:
    """All descendants of ``pid`` now; take it before the parent ends, for orphans can no longer be found."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


def end_processes(processes: list[psutil.Process]) -> None:
    """Kill those of ``processes`` that still run; psutil compares start times, so no other process is ever hit."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=END_SECONDS)
