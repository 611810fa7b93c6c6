"""How a run ends: one value for ``run.json``, the screen and the exit code, and the mapping from errors to it."""

from __future__ import annotations

import errno
import traceback
from dataclasses import dataclass

from codex_multi_role.errors import (
    TOO_MANY_FILES,
    CodexMultiRoleError,
    ExitCode,
    QuotaUsedUp,
    RunInterrupted,
    RunStatus,
    StorageError,
)

MORE_CYCLES = 3
LOOK = "show RUN"
"""The suggestion if no better one is known."""


@dataclass(frozen=True)
class Ending:
    """``outcome``: the name of the end.

    ``details``: the traceback of a bug, for a file and not for the screen. ``resets_at``: when the provider accepts
    turns again, ISO 8601 in UTC, if a usage limit parked the run. ``suggestion``: a command that helps if the run ended
    without its goal, with ``RUN`` for its ID.
    """

    status: RunStatus
    outcome: str
    reason: str
    exit_code: ExitCode
    hint: str = ""
    details: str = ""
    resets_at: str = ""
    suggestion: str = ""


def ending_for(error: BaseException) -> Ending:
    """The ending that an error means. An exception of any other class is a bug, and ends the run as well."""
    if isinstance(error, KeyboardInterrupt):
        error = RunInterrupted()
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        error = StorageError(str(error), TOO_MANY_FILES)
    if isinstance(error, CodexMultiRoleError):
        resets_at = error.resets_at if isinstance(error, QuotaUsedUp) else ""
        return Ending(error.status, error.reason, str(error), error.exit_code, error.hint, resets_at=resets_at)
    return Ending(
        status=RunStatus.FAILED,
        outcome="internal_error",
        reason=f"{type(error).__name__}: {error}",
        exit_code=CodexMultiRoleError.exit_code,
        hint="This is a fault of codex-multi-role; traceback.txt in the run folder says where.",
        details="".join(traceback.format_exception(error)),
    )
