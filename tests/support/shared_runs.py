"""Runs in a database that real worker processes execute, each worker in folders of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRun, QueuedRuns, RunState
from codex_multi_role.extensions.machines.workers.run_requests import RunRequest
from codex_multi_role.extensions.machines.workers.submission import Submitter, open_store
from codex_multi_role.run_options import RunOptions

WAIT_SECONDS = 240.0
LOOK_SECONDS = 0.1


@dataclass
class SharedRuns:
    """The database at ``url``, a store, by default below ``folder``, and the workers that this test has started."""

    folder: Path
    url: str
    store_at: str = ""
    workers: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.database = Database.open(self.url)
        self.queued = QueuedRuns(self.database)
        self.store = open_store(self.database, None, self.store_at or str(self.folder / "store"))
        self.submitter = Submitter(self.store)

    def submit(self, options: RunOptions, *run_ids: str, **place: Any) -> None:
        """Enqueue a run with these options for each ID. ``place``: fields of `RunRequest`."""
        self.queued.submit([self.request(options.changed(run_id=run_id), **place) for run_id in run_ids])

    def request(self, options: RunOptions, **place: Any) -> RunRequest:
        return self.submitter.request(options, **place)

    def worker_command(self, name: str, *options: str, url: str = "") -> list[str]:
        runs_dir = str(self.folder / "machines" / name)
        own = ["--database-url", url or self.url, "--name", name, "--runs-dir", runs_dir]
        return [sys.executable, "-m", "codex_multi_role", "worker", *own, *options]

    def start(self, name: str, *options: str, **more: Any) -> subprocess.Popen[str]:
        """Start a worker that others declare dead after three seconds; ``more``: of `subprocess.Popen`."""
        pipe = subprocess.PIPE
        command = self.worker_command(name, "--dead-after", "3", *options)
        self.workers[name] = subprocess.Popen(command, text=True, stderr=pipe, **more)
        return self.workers[name]

    def work(self, *options: str) -> str:
        """Let one worker execute all that waits; returns what it reported."""
        process = self.start("only", "--until-empty", *options)
        return process.communicate(timeout=WAIT_SECONDS)[1]

    def kill(self, name: str) -> None:
        """End the worker; its run processes notice by themselves, and give their runs back."""
        process = self.workers.pop(name)
        process.kill()
        process.communicate()

    def kill_all(self, name: str) -> None:
        """End the worker and its run processes, none of which can give its run back."""
        import psutil

        worker = psutil.Process(self.workers[name].pid)
        worker.suspend()
        for process in worker.children():
            process.kill()
        self.kill(name)

    def drain(self, name: str) -> str:
        """Tell the worker to leave, and wait until it has; returns what it reported."""
        process = self.workers.pop(name)
        process.send_signal(signal.SIGTERM)
        return process.communicate(timeout=WAIT_SECONDS)[1]

    def close(self) -> None:
        for name in list(self.workers):
            self.drain(name)
        self.queued.close()
        self.database.close()

    def run(self, run_id: str) -> QueuedRun:
        return found(self.queued, run_id)

    def wait(self, condition: Callable[[], object], seconds: float = WAIT_SECONDS) -> None:
        """Wait until the condition holds; fail if it does not in time."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, [(run.run_id, run.state, run.why) for run in self.queued.list()]
            time.sleep(LOOK_SECONDS)

    def wait_for(self, state: RunState, *run_ids: str, seconds: float = WAIT_SECONDS) -> None:
        self.wait(lambda: all(self.run(run_id).state is state for run_id in run_ids), seconds)

    def results(self) -> list[tuple[str, str, int | None]]:
        """ID, state and exit code of every run."""
        return [(run.run_id, str(run.state), run.exit_code) for run in self.queued.list()]


def found(queued: QueuedRuns, run_id: str) -> QueuedRun:
    run = queued.find(run_id)
    assert run is not None
    return run


def claimed(queued: QueuedRuns, run_id: str = "one", worker: str = "a") -> QueuedRun:
    run = queued.claim(run_id, worker, f"identity of {worker}")
    assert run is not None
    return run


def left_of(folder: Path) -> Sequence[str]:
    """The command lines of the processes that still work below ``folder``."""
    import psutil

    lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    return [line for line in lines if str(folder) in line]


def request(run_id: str, options: Mapping[str, object] | None = None, **more: Any) -> RunRequest:
    """A request of which only the row matters."""
    options = {"goal": f"goal of {run_id}", **(options or {})}
    return RunRequest(run_id=run_id, options=options, definitions={}, workspace={}, **more)
