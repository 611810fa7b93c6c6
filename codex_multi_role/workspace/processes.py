"""A command and all its descendants, wherever they hide: other groups, other sessions, orphaned."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import uuid
from collections.abc import Mapping

import psutil

GRACE_SECONDS = 2.0
MARK = "CODEX_MULTI_ROLE_COMMAND"
_KILL_ROUNDS = 3
_POLL_SECONDS = 0.01


class Family:
    """The processes that one command started.

    They are known by their session, by their parents, and by a mark in the environment that every child inherits: an
    orphan in a session of its own has nothing else.
    """

    def __init__(self) -> None:
        self.leader = 0
        self._mark = uuid.uuid4().hex

    def marked(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment to start the command with."""
        return {**environment, MARK: self._mark}

    def end(self) -> None:
        """End whoever still runs: SIGTERM, then SIGKILL. Takes at most a few times GRACE_SECONDS, usually nothing."""
        if self._end_once(signal.SIGTERM):
            return
        # A process may have forked while it was being looked for, hence more than one round.
        for _ in range(_KILL_ROUNDS):
            if self._end_once(signal.SIGKILL):
                return

    def _end_once(self, how: signal.Signals) -> bool:
        """Signal everyone and wait for them; True when nobody had to be signalled."""
        members = self._members()
        for process in members:
            with contextlib.suppress(psutil.Error):
                process.send_signal(how)
        deadline = time.monotonic() + GRACE_SECONDS
        while any(map(_lives, members)) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return not members

    def _members(self) -> list[psutil.Process]:
        found = {process for process in psutil.process_iter() if self._owns(process)}
        with contextlib.suppress(psutil.Error):
            leader = psutil.Process(self.leader)
            found.update([leader, *leader.children(recursive=True)])
        return [process for process in found if _lives(process)]

    def _owns(self, process: psutil.Process) -> bool:
        try:
            return os.getsid(process.pid) == self.leader or process.environ().get(MARK) == self._mark
        except (psutil.Error, OSError):
            return False


def _lives(process: psutil.Process) -> bool:
    """Whether ``process`` still does anything: a zombie only waits for its parent, who may take its time."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
