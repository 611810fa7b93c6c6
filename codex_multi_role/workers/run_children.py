"""The run processes of one worker: started with a pipe that ends them with it, watched, stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import IO

from codex_multi_role.host.atomic import make_folder, storage_errors
from codex_multi_role.reading.json_types import Json

MODULE = "codex_multi_role.workers.attempt_process"
MAX_LOG_BYTES = 1_000_000
STOP_SECONDS = 90.0
"""How long a run process has to interrupt its turns, save its state and exit."""


class RunChild:
    """One run process. ``queue``: the queue it takes its run from; ``run_id``: empty until it has one.

    ``result``: how the run ended, in words; empty until then. ``waits``: it only waits for runs on other places.
    Standard input is a pipe that only the worker holds open. If the worker dies, however it dies, the process stops.
    """

    def __init__(self, instructions: Json, log: Path) -> None:
        self.queue = str(instructions["queue"])
        self.run_id = ""
        self.result = ""
        self.waits = False
        self._problem = ""
        self._process = _start(log)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin
        self._reader = Thread(target=self._follow, args=(self._process.stdout,), daemon=True)
        self._reader.start()
        with suppress(BrokenPipeError):  # it has ended already; its exit code says so
            self._input.write(json.dumps(instructions).encode() + b"\n")
            self._input.flush()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _follow(self, output: IO[bytes]) -> None:
        for line in output:
            with suppress(ValueError, AttributeError):
                news = json.loads(line)
                self.run_id = news.get("run_id", self.run_id)
                self.result = news.get("result", self.result)
                self.waits = bool(news.get("waits", self.waits))
                self._problem = news.get("problem", self._problem)

    def take_problem(self) -> str:
        """What the process is waiting out, in words; empty if it has not said so since the last call."""
        problem, self._problem = self._problem, ""
        return problem

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def drain(self) -> None:
        """Ask it to finish the turns in progress and give its run back; without a run, to end."""
        if self.exit_code is None:
            self._process.send_signal(signal.SIGUSR1 if self.run_id else signal.SIGTERM)

    def stop(self) -> None:
        """Ask it to interrupt its turns and give its run back."""
        if self.exit_code is None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once; its guard ends what it started."""
        if self.exit_code is None:
            self._process.kill()

    def close(self) -> None:
        """Wait for its end. It is killed if it does not end in time."""
        with suppress(OSError):
            self._input.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
        self._reader.join(STOP_SECONDS)  # the last news


def _start(log: Path) -> subprocess.Popen[bytes]:
    with storage_errors(log):
        make_folder(log.parent)
        too_long = log.exists() and log.stat().st_size > MAX_LOG_BYTES
        with log.open("wb" if too_long else "ab") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # a Ctrl-C in the worker's terminal is for the worker
            )
