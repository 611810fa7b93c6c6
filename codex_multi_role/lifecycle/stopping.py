"""Stop a run from outside: by a request in its folder, or like Ctrl-C in its terminal.

The signals: Ctrl-C, SIGTERM, SIGQUIT, the end of its terminal (SIGHUP), and of its CPU time (SIGXCPU).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

from codex_multi_role.errors import Ending, ExitCode, RunBusy, RunInterrupted, RunPaused, RunStatus, UsageError
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.owner import StopRequest, StopRequests, is_alive, is_held, is_running, read_owner


def stopping_signals() -> list[signal.Signals]:
    """The signals that stop this process in an orderly way: not those that ``nohup`` or a shell's ``&`` ignores."""
    optional = (signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU)
    return [signal.SIGINT, signal.SIGTERM, *(each for each in optional if signal.getsignal(each) != signal.SIG_IGN)]


class Stop:
    """The stop of a run, by a signal or by a `StopRequest`: the first one stops it, each further one calls ``hurry``.

    The exceptions are a further SIGHUP, because the system and the shell both send one when a terminal closes, and
    SIGXCPU, which the system repeats every second.

    While the run ``interrupts``, the first signal raises KeyboardInterrupt; later it is only noted. Because the
    exception is raised wherever the main thread happens to be, it could leave the workflow running, and the run would
    wait for its end. A second exception could interrupt the writing of the state.

    ``requested`` is set by a request where no signal can be raised: it ends what the run waits for before its walk.
    ``pausing`` is set by a request to pause.
    """

    def __init__(self, hurry: Callable[[], None]) -> None:
        self._hurry = hurry
        self.asked = False
        self.requested = threading.Event()
        self.pausing = threading.Event()
        self.interrupts = True
        self.in_a_hurry = False
        self.handles_signals = False
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

    def request(self) -> None:
        """As a signal does, from another thread; where the main thread works on the run, by one, which wakes it."""
        if self.handles_signals:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        elif self.asked:
            self(signal.SIGINT, None)
        else:
            self.asked = True
            self.requested.set()

    def require_going_on(self) -> None:
        """Raise `RunInterrupted`, or `RunPaused`, if the run must stop before its walk has started."""
        if self.asked:
            raise RunInterrupted
        if self.pausing.is_set():
            raise RunPaused("the run was paused")

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
def stoppable(hurry: Callable[[], None], look: Callable[[], StopRequest | None]) -> Iterator[Stop]:
    """Stop a run at a `StopRequest` that ``look`` finds, and, in the main thread, at all `stopping_signals`."""
    with stop_signals(hurry) as stop:
        ended = threading.Event()
        watcher = threading.Thread(target=_watch, args=(stop, look, ended), name="stop requests", daemon=True)
        watcher.start()
        try:
            yield stop
        finally:
            ended.set()
            watcher.join()  # waits: for one look at a file


def _watch(stop: Stop, look: Callable[[], StopRequest | None], ended: threading.Event) -> None:
    """Act on requests: on the first one of a kind, and once on one that hurries."""
    acted: set[tuple[bool, bool]] = set()
    while not ended.wait(LOOK_SECONDS):  # waits: for a request, ended by the end of the run
        request = look()
        if request is None or (kind := (request.pauses, request.hurries)) in acted:
            continue
        acted.add(kind)
        if request.pauses:
            stop.pausing.set()
        else:
            stop.request()


@contextmanager
def stop_signals(hurry: Callable[[], None]) -> Iterator[Stop]:
    """Make all `stopping_signals` stop a run like Ctrl-C. Only the main thread may set handlers."""
    stop = Stop(hurry)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = {number: signal.signal(number, stop) for number in stopping_signals()}
    stop.handles_signals = True
    try:
        yield stop
    finally:
        stop.handles_signals = False
        for number, handler in previous.items():
            signal.signal(number, handler)


LOOK_SECONDS = 0.1
STUCK_SECONDS = 60.0
HURRY_SECONDS = 15.0
"""After how long a stop that was requested is in a hurry."""


def stop_run(folder: RunFolder, is_ending: Callable[[], bool] = lambda: False) -> None:
    """Request that the run stops, and wait until it has, for at most a minute, or until ``is_ending``.

    Nothing is left to do if it has ended or is parked. Raises `UsageError` if its process is gone, `StorageError`, and
    `RunBusy` if it does not stop.
    """
    try:
        requests, request = request_stop(folder)
    except UsageError:
        if folder.record().get("status") == RunStatus.RUNNING:
            raise
        return
    if _is_released_within(folder, HURRY_SECONDS, is_ending):
        return
    if not is_ending():
        requests.hurry(request)
    if _is_released_within(folder, STUCK_SECONDS - HURRY_SECONDS, is_ending):
        return
    if is_ending():
        raise RunBusy(f"the run {folder.run_id} was asked to stop and has not ended yet", "Check again in a moment.")
    pid = read_owner(folder).get("pid")
    raise RunBusy(f"process {pid} is still working on run {folder.run_id}", f"`kill -9 {pid}`, then resume it.")


def pause_run(folder: RunFolder) -> bool:
    """Request that the run parks once the turns at work have ended; False if it is parked already.

    Raises `UsageError` and `StorageError`.
    """
    try:
        request_stop(folder, pauses=True)
    except UsageError:
        if folder.record().get("status") != RunStatus.PARKED:
            raise
        return False
    return True


def request_stop(folder: RunFolder, *, pauses: bool = False) -> tuple[StopRequests, StopRequest]:
    """Request it of the session that works on the run. Raises `UsageError` if none does, `StorageError`."""
    owner = read_owner(folder)
    if not (is_running(owner) and is_held(folder)):
        recorded, wanted = folder.record().get("status"), "pause" if pauses else "cancel"
        status = RunStatus.KILLED if recorded == RunStatus.RUNNING else recorded
        raise UsageError(f"run {folder.run_id} is not running (status: {status}); nothing to {wanted}")
    requests = StopRequests(folder.path)
    return requests, requests.request(str(owner.get("session", "")), pauses=pauses)


def _is_released_within(folder: RunFolder, seconds: float, is_ending: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while is_alive(folder):
        if time.monotonic() > end or is_ending():
            return False
        time.sleep(LOOK_SECONDS)
    return True
