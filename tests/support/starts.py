"""What this process starts, as the audit events of `subprocess.Popen` tell it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Started:
    """One program with its arguments. ``environment`` is None if it is inherited."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] | None

    @property
    def options_of_python(self) -> tuple[str, ...] | None:
        """What follows this Python, which may start after a shell; None if the program is another one."""
        return self.argv[self.argv.index(sys.executable) + 1 :] if sys.executable in self.argv else None


_listeners: list[list[Started]] = []


@cache
def _listen() -> None:
    """Once for the whole process: an audit hook cannot be removed."""
    sys.addaudithook(_note)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and _listeners:
        _, argv, _, environment = arguments
        for found in _listeners:
            found.append(Started(tuple(map(os.fsdecode, argv)), environment))


@contextmanager
def recorded_starts() -> Iterator[list[Started]]:
    """All programs that any thread of this process starts meanwhile."""
    found: list[Started] = []
    _listen()
    _listeners.append(found)
    try:
        yield found
    finally:
        _listeners.remove(found)
