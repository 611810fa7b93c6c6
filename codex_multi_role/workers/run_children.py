"""The run processes of one worker: what they report, and how they are stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import Path

from codex_multi_role.host.atomic import make_folder, storage_errors
from codex_multi_role.host.own_python import OwnProcess, own_module
from codex_multi_role.reading.json_files import read_records
from codex_multi_role.reading.json_types import Json

MAX_LOG_BYTES = 1_000_000


class RunChild(OwnProcess):
    """One run process. ``queue``: the queue it takes its run from; ``run_id``: empty until it has one.

    ``result``: how the run ended, in words; empty until then. ``waits``: it only waits for runs on other places.
    ``problem``: what it is waiting out, in words, or empty. They are as of the last `follow`.
    """

    def __init__(self, order: Json, log: Path) -> None:
        self.queue = str(order["queue"])
        self.run_id = self.result = self.problem = ""
        self.waits = False
        _shorten(log)
        super().__init__(own_module("codex_multi_role.workers.attempt_process"), order, log)

    def follow(self, lines: Iterable[bytes]) -> None:
        """Note what it has reported."""
        self.problem = ""
        for news in read_records(lines):
            self.run_id = news.get("run_id", self.run_id)
            self.result = news.get("result", self.result)
            self.waits = bool(news.get("waits", self.waits))
            self.problem = news.get("problem", self.problem)

    def drain(self) -> None:
        """Ask it to finish the turns in progress and give its run back; without a run, to end."""
        self.follow(self.lines())
        self.send(signal.SIGUSR1 if self.run_id else signal.SIGTERM)


def _shorten(log: Path) -> None:
    with storage_errors(log):
        make_folder(log.parent)
        if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
            os.truncate(log, 0)
