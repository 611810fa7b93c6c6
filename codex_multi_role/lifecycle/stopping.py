"""Stop a run from outside, from another process like Ctrl-C in its terminal.

The signals: Ctrl-C, SIGTERM, SIGQUIT, the end of its terminal (SIGHUP), and of its CPU time (SIGXCPU).
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import psutil

from codex_multi_role.errors import Ending, ExitCode, RunBusy, RunStatus, UsageError
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.owner import is_alive, is_held, is_running, read_owner


def stopping_signals() -> list[signal.Signals]:
    """The signals that stop this process in an orderly way: not those that ``nohup`` or a shell's ``&`` ignores."""
    optional = (signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU)
    return [signal.SIGINT, signal.SIGTERM, *(each for each in optional if signal.getsignal(each) != signal.SIG_IGN)]


class Stop:
    """Handles stop signals: the first one stops the run, each further one calls ``hurry``.

    The exceptions are a further SIGHUP, because the system and the shell both send one when a terminal closes, and
    SIGXCPU, which the system repeats every second.

    While the run ``interrupts``, the first signal raises KeyboardInterrupt; later it is only noted. Because the
    exception is raised wherever the main thread happens to be, it could leave the workflow running, and the run would
    wait for its end. A second exception could interrupt the writing of the state.
    """

    def __init__(self, hurry: Callable[[], None]) -> None:
        self._hurry = hurry
        self.asked = False
        self.interrupts = True
        self.in_a_hurry = False
        self._announced = False
        self._by = 0

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            if number in (signal.SIGHUP, signal.SIGXCPU):
                return
            self.in_a_hurry = True
            if self._announced:
                self._hurry()
            return
        self.asked, self._by = True, number
        if self.interrupts:
            self._announced = True  # nothing is running that could mistake its end for a failure
            raise KeyboardInterrupt

    def announce(self) -> None:
        """Note that all parts know of the stop: what ends now was meant to end, and a hurried stop need not wait."""
        self._announced = True
        if self.in_a_hurry:
            self._hurry()

    def explain(self, ending: Ending) -> Ending:
        """The ending of the run, with the reason if it was stopped because its CPU time was used up."""
        if self._by != signal.SIGXCPU or ending.exit_code != ExitCode.INTERRUPTED:
            return ending
        return replace(ending, reason="its CPU time is used up", hint="Raise the limit (`ulimit -t`), then resume it.")


@contextmanager
def stop_signals(hurry: Callable[[], None]) -> Iterator[Stop]:
    """Make all `stopping_signals` stop a run like Ctrl-C. Only the main thread may set handlers."""
    stop = Stop(hurry)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = {number: signal.signal(number, stop) for number in stopping_signals()}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def stop_at_end_of(descriptor: int) -> None:
    """Stop this process once the pipe ``descriptor`` ends: the process at its other end has ended, or wants that.

    What is in the pipe means nothing. The stop is that of SIGTERM; after `STUCK_SECONDS` the process is killed.
    """
    threading.Thread(target=_stop_at_end_of, args=(descriptor,), name="starter", daemon=True).start()


def _stop_at_end_of(descriptor: int) -> None:
    while os.read(descriptor, CHUNK_BYTES):  # waits: for the process that started it, ended with it
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STUCK_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


SIGNALS = ((signal.SIGINT, 15.0), (signal.SIGTERM, 45.0))
"""What is sent, and the seconds it has to work. A shell's ``&`` may have made a process ignore the first one."""
LOOK_SECONDS = 0.1
STUCK_SECONDS = 60.0
CHUNK_BYTES = 4096
LEAVING_SECONDS = 15.0
"""How long a process has to write its report and exit."""


def stop_run(folder: RunFolder, is_ending: Callable[[], bool] = lambda: False) -> None:
    """Signal the run's process until it releases the run, for at most a minute, or until ``is_ending``.

    Raises `UsageError` if no process, or somebody else's, works on it, and `RunBusy` if it does not release the run.
    """
    if not (is_alive(folder) and is_held(folder)):
        raise _not_running(folder)

    owner = read_owner(folder)
    for number, seconds in SIGNALS:
        try:
            process = psutil.Process(owner["pid"])
            if process.create_time() == owner["start_time"]:
                process.send_signal(number)
        except psutil.AccessDenied as error:
            raise UsageError(
                f"process {owner['pid']} belongs to another user", "Ask that user to stop it, or do it as that user."
            ) from error
        except (psutil.Error, KeyError):
            return  # it has ended, or released the run
        if _is_released_within(folder, seconds, is_ending):
            return
        if is_ending():
            raise RunBusy(
                f"the run {folder.run_id} was asked to stop and has not ended yet", "Check again in a moment."
            )
    raise RunBusy(
        f"process {owner['pid']} is still working on run {folder.run_id}", f"`kill -9 {owner['pid']}`, then resume it."
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
    status = RunStatus.KILLED if record.get("status") == RunStatus.RUNNING else record.get("status")
    return UsageError(f"run {folder.run_id} is not running (status: {status}); nothing to cancel")


def _is_released_within(folder: RunFolder, seconds: float, is_ending: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while is_alive(folder):
        if time.monotonic() > end or is_ending():
            return False
        time.sleep(LOOK_SECONDS)
    return True
