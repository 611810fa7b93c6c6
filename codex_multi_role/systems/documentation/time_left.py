"""A deadline for checks that work long in the run's own process, where nothing else would end them."""

from __future__ import annotations

import time

from codex_multi_role.checks.contract import CheckContext
from codex_multi_role.errors import CheckFailed, RunInterrupted


class TimeLeft:
    """The check's deadline, counted from its creation."""

    def __init__(self, context: CheckContext, check: str) -> None:
        self._context = context
        self._check = check
        self._until = time.monotonic() + context.deadline_seconds

    def require(self) -> None:
        """Raise `CheckFailed` after the deadline, `RunInterrupted` if the run must stop."""
        if self._context.stopping.is_set():
            raise RunInterrupted
        if time.monotonic() > self._until:
            raise CheckFailed(f"check {self._check}: it took longer than {self._context.deadline_seconds:g} s")
