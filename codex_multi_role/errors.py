"""The error tree. Only the command line turns errors into a message, a hint and an exit code. Rooms may derive others.

CodexMultiRoleError                 what happened, where, what to do
├── UsageError                      exit 2: the caller can fix it: a flag, a path, a run ID
│   ├── DefinitionError             a catalog, role, flow or playbook file; names file and key
│   ├── ChangeRefused               a changed option does not fit what the run has recorded
│   ├── RunNotFound                 no such run, or an ambiguous prefix
│   └── RunBusy                     another live process owns the run
├── CodexUnavailable                exit 2: nothing was spent
│   ├── CodexNotFound               no binary
│   └── CodexNotLoggedIn            the provider needs a login, and none was found
├── CodexError                      exit 3: a Codex process or its protocol failed
│   ├── CodexStartFailed            the process exited or refused before its first turn
│   ├── CodexCrashed                the process is gone
│   ├── CodexTimeout                a named deadline passed
│   └── CodexRefused                a JSON-RPC error reply
├── RoleFailed                      exit 3: a role's turn failed permanently
├── CheckFailed                     exit 3: a check could not run
├── StepTimedOut                    exit 3: a step took longer than its limit
├── SetupFailed                     exit 3: the setup command of a worktree or copy failed
├── StorageError                    exit 3: the run folder or the workspace could not be written
├── PublishingFailed                exit 1: a program of the user, such as gh, did not publish a result
├── RunParked                       the run waits on disk until it is resumed
│   ├── ReviewWaiting               exit 4: a person must answer first
│   ├── RunPaused                   exit 4: somebody paused it
│   ├── BudgetUsedUp                exit 5: a limit of the run, a role or a batch is reached
│   └── QuotaUsedUp                 exit 5: the provider accepts no turns for now
└── RunInterrupted                  exit 130: the run was stopped
"""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import Any, ClassVar, Self

DISTRIBUTION = "codex-multi-role"
"""The name under which pip knows this package."""
NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
"""The error numbers that mean: this process, or the whole system, has too many files open."""
TOO_MANY_FILES = "too many files are open: raise the limit (`ulimit -n`), or use fewer processes at once"
STORAGE_HINT = "Free some space or fix the permissions, then try again; a run continues when it is resumed."
NO_MEMORY = "the system gives no more memory or processes: free some memory, or raise the limits (`ulimit -u`, `-v`)"
RESOURCE_HINTS = dict.fromkeys(NO_DESCRIPTOR, TOO_MANY_FILES) | dict.fromkeys((errno.EAGAIN, errno.ENOMEM), NO_MEMORY)
"""What to do if the system lacks what any program needs."""
SYSTEM_HINTS = {
    **RESOURCE_HINTS,
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO), STORAGE_HINT),
    errno.EFBIG: "Raise the limit (`ulimit -f`), then try again; a run continues when it is resumed.",
    errno.ENAMETOOLONG: "Use a shorter name or path.",
}
"""What to do about an error of the system that is nobody's mistake in this package."""
WITHOUT_SANDBOX = "--no-test-sandbox"
_SYSTEM_WORDS = {os.strerror(number): number for number in SYSTEM_HINTS} | dict.fromkeys(
    ("can't start new thread", "failed to map segment", "out of memory"), errno.ENOMEM
)
"""How errors without a number, of threads, memory and compiled modules, report it."""


class ExitCode(IntEnum):
    """The exit codes of a run and of every command. ``meaning`` completes "exit code N: …"."""

    meaning: str
    GOAL_REACHED = 0, "goal reached"
    GOAL_NOT_REACHED = 1, "ended without reaching the goal"
    WRONG_USAGE = 2, "wrong usage or configuration"
    FAILED = 3, "a step or Codex failed"
    WAITING = 4, "parked, waiting for a person"
    BUDGET_USED_UP = 5, "parked, a limit or quota is used up"
    INTERRUPTED = 130, "interrupted"

    def __new__(cls, code: int, meaning: str = "") -> Self:
        self = int.__new__(cls, code)
        self._value_, self.meaning = code, meaning
        return self

    @property
    def is_resumable(self) -> bool:
        """Whether `resume` alone continues a run that ended so: its flow has not ended."""
        return self not in (ExitCode.GOAL_REACHED, ExitCode.GOAL_NOT_REACHED)

    @property
    def is_parked(self) -> bool:
        return self in (ExitCode.WAITING, ExitCode.BUDGET_USED_UP)

    @classmethod
    def find(cls, code: object) -> ExitCode | None:
        """The member for ``code``; None for a run without one yet, and for a process ended by a signal."""
        return next((each for each in cls if each == code), None)


class RunStatus(StrEnum):
    """``status`` in ``run.json``, except for the last two, which are found out by looking."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    ENDED = "ended"
    FAILED = "failed"
    PARKED = "parked"
    INTERRUPTED = "interrupted"
    KILLED = "killed"
    """Recorded as running, but its process has ended."""
    UNREADABLE = "unreadable"


class CodexMultiRoleError(Exception):
    """Base class of all errors that this package raises on purpose.

    ``str(error)`` states what happened and where; ``hint`` states what to do next, or is empty. ``status`` and
    ``reason`` are the ``status`` and the ``outcome`` in ``run.json``; ``suggestion`` and ``resets_at``: `Ending`.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    status: ClassVar[RunStatus] = RunStatus.FAILED
    reason = "failed"
    suggestion = resets_at = ""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(CodexMultiRoleError):
    """Wrong usage or configuration; nothing was started."""

    exit_code = ExitCode.WRONG_USAGE
    reason = "wrong_usage"


class DefinitionError(UsageError):
    """A definition is wrong. The message starts with ``file:line:column:``, or ``Role():``, and a name of the place.

    If several problems were found together, the message has one line for each. ``file`` and ``position`` (line and
    column), as far as known, decide their order. ``problem``: the message without the place, if that is known.
    """

    problem = ""

    def __init__(self, message: str, hint: str = "", file: str = "", position: Sequence[int] = ()) -> None:
        super().__init__(message, hint)
        self.file = file
        self.position = position

    _together: tuple[DefinitionError, ...] = ()

    @property
    def problems(self) -> tuple[DefinitionError, ...]:
        """Each of the problems that were found together; otherwise this one."""
        return self._together or (self,)

    @classmethod
    def together(cls, errors: Iterable[DefinitionError]) -> DefinitionError:
        """One error for all problems of these."""
        found = [problem for error in errors for problem in error.problems]
        files = list(dict.fromkeys(problem.file for problem in found))
        problems = tuple(sorted(found, key=lambda each: (files.index(each.file), *each.position)))
        hints = dict.fromkeys(problem.hint for problem in problems if problem.hint)
        whole = cls("\n".join(map(str, problems)), " ".join(hints))
        whole._together = problems
        return whole


class ChangeRefused(UsageError):
    """A changed option does not fit what the run has recorded."""

    reason = "change_refused"


class RunNotFound(UsageError):
    """No run, or more than one, matches the reference."""


class RunBusy(UsageError):
    """Another live process owns the run."""


class CodexUnavailable(CodexMultiRoleError):
    """Codex cannot be used here; detected before anything was spent."""

    exit_code = ExitCode.WRONG_USAGE
    reason = "codex_unavailable"


class CodexNotFound(CodexUnavailable):
    """No Codex binary was found."""


class CodexNotLoggedIn(CodexUnavailable):
    """The model provider needs a login, and the Codex home has none."""

    reason = "not_logged_in"


class CodexError(CodexMultiRoleError):
    """A Codex process or its protocol failed."""

    reason = "codex_failed"


class CodexStartFailed(CodexError):
    """The process exited, or refused its thread, before the first turn. ``transient``: another start may succeed."""

    reason = "start_failed"

    def __init__(self, message: str, hint: str = "", *, transient: bool = False) -> None:
        super().__init__(message, hint)
        self.transient = transient


class CodexCrashed(CodexError):
    """The process is gone: its pipe closed or it exited. ``error_line``: its own error message, or empty."""

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
    """A role's turn failed permanently. ``reason`` is also the ``outcome`` in its ``turn.json``."""

    def __init__(self, message: str, reason: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.reason = reason


class CheckFailed(CodexMultiRoleError):
    """A check could not run at all. A bad verdict, in contrast, is a result."""

    reason = "check_failed"


class StepTimedOut(CodexMultiRoleError):
    """A step took longer than its ``limits.seconds``."""

    reason = "step_timed_out"


class SetupFailed(CodexMultiRoleError):
    """The setup command of a worktree or of a copy of the workspace failed."""

    reason = "setup_failed"


class StorageError(CodexMultiRoleError):
    """A file of the run folder or the workspace could not be written."""

    reason = "storage_failed"


class PublishingFailed(CodexMultiRoleError):
    """A program of the user did not publish a result. The message says what it had done until then."""

    exit_code = ExitCode.GOAL_NOT_REACHED
    reason = "publishing_failed"


class RunParked(CodexMultiRoleError):
    """The run waits on disk until it is resumed."""

    status = RunStatus.PARKED


class ReviewWaiting(RunParked):
    """A person must answer first."""

    exit_code = ExitCode.WAITING
    reason = "waiting_for_review"


class RunPaused(RunParked):
    """Somebody paused the run: the work in progress was finished and recorded."""

    exit_code = ExitCode.WAITING
    reason = "paused"


class BudgetUsedUp(RunParked):
    """A limit on turns, tokens, money or time is reached; the message shows which one, and what used it up."""

    exit_code = ExitCode.BUDGET_USED_UP
    reason = "budget_used_up"

    def __init__(self, message: str, hint: str = "", suggestion: str = "") -> None:
        super().__init__(message, hint)
        self.suggestion = suggestion


class QuotaUsedUp(RunParked):
    """The provider accepts no turns for now. ``resets_at``: until when, ISO 8601 in UTC; empty if unknown."""

    exit_code = ExitCode.BUDGET_USED_UP
    reason = "quota"

    def __init__(self, message: str, hint: str, resets_at: str) -> None:
        super().__init__(message, hint)
        self.resets_at = resets_at


class RunInterrupted(CodexMultiRoleError):
    """The run was stopped while this work was in progress."""

    exit_code = ExitCode.INTERRUPTED
    status = RunStatus.INTERRUPTED
    reason = "cancelled"

    def __init__(self) -> None:
        super().__init__("the run was stopped")


MORE_CYCLES = 3
LOOK = "show RUN"
"""The suggestion if no better one is known."""


@dataclass(frozen=True)
class Ending:
    """``outcome``: the name of the end.

    ``details``: the traceback of a bug, for a file and not for the screen. ``resets_at``: when the provider accepts
    turns again, ISO 8601 in UTC, if a usage limit parked the run. ``suggestion``: a command that helps, with ``RUN``
    for the run's ID, if `resume` alone does not.
    """

    status: RunStatus
    outcome: str
    reason: str
    exit_code: ExitCode
    hint: str = ""
    details: str = ""
    resets_at: str = ""
    suggestion: str = ""

    @property
    def is_of_step(self) -> bool:
        """Whether a step failed, and not the machine, its journal or this program: its caller may tolerate that."""
        return self.status == RunStatus.FAILED and self.outcome not in _NOT_OF_STEP

    @property
    def after_results(self) -> Ending:
        """Exit code 2 means that nothing was spent; later, what is wrong is a failure of the step that got it."""
        if self.outcome != UsageError.reason:
            return self
        return replace(self, outcome="wrong_value", exit_code=ExitCode.FAILED)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Ending:
        """The inverse of `dataclasses.asdict`, also from JSON."""
        return cls(**{**record, "status": RunStatus(record["status"]), "exit_code": ExitCode(record["exit_code"])})


INTERNAL_ERROR = "internal_error"
_NOT_OF_STEP = (
    *(each.reason for each in (StorageError, CodexUnavailable, CodexNotLoggedIn, ChangeRefused)),
    INTERNAL_ERROR,
)


def ending_for(error: BaseException) -> Ending:
    """The ending that an error means. An exception of any other class is a bug, and ends the run as well."""
    if isinstance(error, KeyboardInterrupt):
        error = RunInterrupted()
    error = system_error(error) or error
    if isinstance(error, CodexMultiRoleError):
        later = (error.resets_at, error.suggestion)
        return Ending(error.status, error.reason, str(error), error.exit_code, error.hint, "", *later)
    return Ending(
        status=RunStatus.FAILED,
        outcome=INTERNAL_ERROR,
        reason=f"{type(error).__name__}: {error}",
        exit_code=CodexMultiRoleError.exit_code,
        hint="This is a bug in codex-multi-role; see traceback.txt in the run folder.",
        details="".join(traceback.format_exception(error)),
    )


def system_error(error: BaseException) -> StorageError | None:
    """What an error of the system means: files, memory, processes, space or rights are missing. None for any other."""
    if not isinstance(error, OSError | MemoryError | ImportError | RuntimeError):
        return None
    file, message = getattr(error, "filename", None), "out of memory" if isinstance(error, MemoryError) else str(error)
    in_words = (number for words, number in _SYSTEM_WORDS.items() if words in message)
    number = getattr(error, "errno", None) or next(in_words, 0)
    if number not in SYSTEM_HINTS:
        return None
    return StorageError(f"{file}: {os.strerror(number)}" if file else message, SYSTEM_HINTS[number])


INSTALL = "Install it: "
"""How the hint begins for what an extra of this package brings."""


def how_to_add(extra: str) -> str:
    """The command that installs what only a part of this package needs."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def denied_in_words(forbidden: Mapping[str, int]) -> str:
    """``9 tests need sockets, which the test sandbox forbids``, and what to do; empty if it has forbidden nothing."""
    needs = [f"{number} {'tests need' if number > 1 else 'test needs'} {what}" for what, number in forbidden.items()]
    what_to_do = f"which the test sandbox forbids ({WITHOUT_SANDBOX} runs them without it)"
    return f"{' and '.join(needs)}, {what_to_do}" if needs else ""


def not_started(problem: str, error: OSError | ValueError, hint: str) -> CodexMultiRoleError:
    """The error for a program that did not start: wrong usage, unless the system lacks resources for it."""
    message = f"{problem}: {getattr(error, 'strerror', None) or error}"
    lacking = RESOURCE_HINTS.get(getattr(error, "errno", 0))
    return StorageError(message, lacking) if lacking else UsageError(message, hint)
