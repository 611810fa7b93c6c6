"""DBOS, imported without a program being run.

On import croniter, which DBOS brings along, asks ``platform.architecture`` how wide a pointer is; that runs ``file`` on
the interpreter, without a deadline, and what it would say is known.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager


def _pointer_width(*_: object, **__: object) -> tuple[str, str]:
    return f"{8 * struct.calcsize('P')}bit", ""


@contextmanager
def _asking_no_program() -> Iterator[None]:
    asking = platform.architecture
    platform.architecture = _pointer_width
    try:
        yield
    finally:
        platform.architecture = asking


with _asking_no_program():
    from dbos import DBOS, DBOSClient, SetWorkflowID, StepOptions, error

DBOSBaseException = error.DBOSBaseException
"""What DBOS raises past `except Exception`: somebody else has cancelled the workflow, or works on it."""

__all__ = ["DBOS", "DBOSBaseException", "DBOSClient", "SetWorkflowID", "StepOptions"]
