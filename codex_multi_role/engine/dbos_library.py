"""DBOS, imported without running a program.

On import, croniter (a dependency of DBOS) asks ``platform.architecture`` for the pointer width. That would run ``file``
on the interpreter, without a deadline and for a known result.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager


def _pointer_width(*_: object, **__: object) -> tuple[str, str]:
    return f"{8 * struct.calcsize('P')}bit", ""


@contextmanager
def _without_program() -> Iterator[None]:
    original = platform.architecture
    platform.architecture = _pointer_width
    try:
        yield
    finally:
        platform.architecture = original


with _without_program():
    from dbos import DBOS, DBOSClient, SetWorkflowID, StepOptions, error

DBOSBaseException = error.DBOSBaseException
"""What DBOS raises past `except Exception`: the workflow was cancelled from outside, or another process works on it."""

__all__ = ["DBOS", "DBOSBaseException", "DBOSClient", "SetWorkflowID", "StepOptions"]
