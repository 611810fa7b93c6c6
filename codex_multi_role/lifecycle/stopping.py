"""Stop a run that another process works on, like Ctrl-C in its terminal."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

from codex_multi_role.errors import RunBusy, RunStatus, UsageError
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.owner import is_alive, is_running, read_owner

SIGNALS = ((signal.SIGINT, 15.0), (signal.SIGTERM, 45.0))
"""What is sent, and the seconds it has to work. A shell's ``&`` may have made a process ignore the first one."""
LOOK_SECONDS = 0.1
LEAVING_SECONDS = 15.0
"""How long a process has to write its report and exit."""


def stop_run(folder: RunFolder, is_ending: Callable[[], bool] = lambda: False) -> None:
    """Signal the run's process until it releases the run, for at most a minute, or until ``is_ending``.

    Raises `UsageError` if no process, or somebody else's, works on it, and `RunBusy` if it does not release the run.
    """
    if not is_alive(folder):
        raise _not_running(folder)
    import psutil  # lazy: only this needs it

    owner = read_owner(folder)
    for number, seconds in SIGNALS:
        try:
            process = psutil.Process(owner["pid"])
            if process.create_time() == owner["start_time"]:
                process.send_signal(number)
        except psutil.AccessDenied as error:
            raise UsageError(f"process {owner['pid']} belongs to somebody else", "Ask them, or be them.") from error
        except (psutil.Error, KeyError):
            return  # it has ended, or released the run
        if _is_released_within(folder, seconds, is_ending):
            return
        if is_ending():
            raise RunBusy(f"the run {folder.run_id} is asked to stop, and has not ended yet", "Look again in a moment.")
    raise RunBusy(
        f"process {owner['pid']} still works on the run {folder.run_id}", f"`kill -9 {owner['pid']}`, then resume it."
    )


def outlives(owner: Mapping[str, Any]) -> bool:
    """Whether the process that `read_owner` named still runs `LEAVING_SECONDS` after it released its run."""
    end = time.monotonic() + LEAVING_SECONDS
    while is_running(owner):
        if time.monotonic() > end:
            return True
        time.sleep(LOOK_SECONDS)
    return False


def _not_running(folder: RunFolder) -> UsageError:
    record = folder.record()
    status = "was killed" if record.get("status") == RunStatus.RUNNING else f"is {record.get('status')}"
    return UsageError(f"no process works on the run {folder.run_id}: it {status}")


def _is_released_within(folder: RunFolder, seconds: float, is_ending: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while is_alive(folder):
        if time.monotonic() > end or is_ending():
            return False
        time.sleep(LOOK_SECONDS)
    return True
