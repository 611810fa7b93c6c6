"""The whole error tree. One boundary, the command line, turns it into a line, a hint and an exit code.

CodexMultiRoleError                 what happened, where, what to do
├── UsageError                      exit 2: the caller can mend it: a flag, a path, a run id
│   ├── DefinitionError             a catalog, role, flow or playbook file; names file and key
│   ├── RunNotFound                 no such run, or more than one that begins so
│   └── RunBusy                     the run has a live owner
├── CodexUnavailable                exit 2: nothing was spent
│   ├── CodexNotFound               no binary
│   └── CodexNotLoggedIn            the provider needs a login and there is none
├── CodexError                      exit 3: a Codex process or its protocol failed
│   ├── CodexStartFailed            the process ended or refused before its first turn
│   ├── CodexCrashed                the process is gone
│   ├── CodexTimeout                a named deadline passed
│   └── CodexRefused                a JSON-RPC error reply
├── RoleFailed                      exit 3: a role's turn failed for good
├── CheckFailed                     exit 3: a check could not be carried out
└── StorageError                    exit 3: the run folder or the workspace could not be written
"""

from __future__ import annotations

from typing import ClassVar

TOO_MANY_FILES = "too many files are open: raise the limit (`ulimit -n`), or use fewer processes at once"


class CodexMultiRoleError(Exception):
    """Base of every error this package raises on purpose.

    ``str(error)`` says what happened and where; ``hint`` says what to do next, or is empty; ``status`` and ``reason``
    are the ``status`` and the ``outcome`` in ``run.json``.
    """

    exit_code: ClassVar[int] = 3
    status: ClassVar[str] = "failed"
    reason = "failed"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(CodexMultiRoleError):
    """Wrong usage or configuration; nothing was started."""

    exit_code = 2
    reason = "wrong_usage"


class DefinitionError(UsageError):
    """A YAML definition is wrong. The message starts with ``file: key.path:``."""


class RunNotFound(UsageError):
    """No run, or more than one, goes by that name."""


class RunBusy(UsageError):
    """Another live process owns the run."""


class CodexUnavailable(CodexMultiRoleError):
    """Codex cannot be used here; found out before anything was spent."""

    exit_code = 2
    reason = "codex_unavailable"


class CodexNotFound(CodexUnavailable):
    """There is no Codex binary to run."""


class CodexNotLoggedIn(CodexUnavailable):
    """The model provider needs a login and the Codex home holds none."""

    reason = "not_logged_in"


class CodexError(CodexMultiRoleError):
    """A Codex process or its protocol failed."""

    reason = "codex_failed"


class CodexStartFailed(CodexError):
    """The process ended, or refused its thread, before the first turn. ``transient``: another start may succeed."""

    reason = "start_failed"

    def __init__(self, message: str, hint: str = "", *, transient: bool = False) -> None:
        super().__init__(message, hint)
        self.transient = transient


class CodexCrashed(CodexError):
    """The process is gone: its pipe closed or its exit was seen. ``error_line``: what it said about it, or empty."""

    reason = "crashed"

    def __init__(self, message: str, hint: str = "", *, error_line: str = "") -> None:
        super().__init__(f"{message}: {error_line}" if error_line else message, hint)
        self.error_line = error_line


class CodexTimeout(CodexError):
    """A named deadline passed without an answer."""

    reason = "stalled"


class CodexRefused(CodexError):
    """Codex answered a request with a JSON-RPC error. ``code`` is that error's code."""

    reason = "refused"

    def __init__(self, message: str, code: int, hint: str = "") -> None:
        super().__init__(message, hint)
        self.code = code


class RoleFailed(CodexMultiRoleError):
    """A role's turn failed for good. ``reason`` is the ``outcome`` that its ``turn.json`` has, too."""

    def __init__(self, message: str, reason: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.reason = reason


class CheckFailed(CodexMultiRoleError):
    """A check could not be carried out at all (its verdict is something else: a result)."""

    reason = "check_failed"


class StorageError(CodexMultiRoleError):
    """A file of the run folder or the workspace could not be written."""

    reason = "storage_failed"


class RunParked(CodexMultiRoleError):
    """The run waits on disk; ``resume`` goes on with it."""

    status = "parked"


class ReviewWaiting(RunParked):
    """A person is to answer first."""

    exit_code = 4
    reason = "waiting_for_review"


class BudgetUsedUp(RunParked):
    """A limit of turns, tokens or seconds is reached; the message says which, and where it went."""

    exit_code = 5
    reason = "budget_used_up"


class QuotaUsedUp(RunParked):
    """The provider takes no more turns for now. ``resets_at``: until when, ISO 8601 in UTC, or empty where unknown."""

    exit_code = 5
    reason = "quota"

    def __init__(self, message: str, hint: str, resets_at: str) -> None:
        super().__init__(message, hint)
        self.resets_at = resets_at


class RunInterrupted(CodexMultiRoleError):
    """The run was asked to stop while this work was under way."""

    exit_code = 130
    status = "interrupted"
    reason = "cancelled"

    def __init__(self) -> None:
        super().__init__("the run was stopped")
