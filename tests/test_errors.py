"""Whatever ends a run becomes one ending: a status, an outcome's name, a reason, an exit code and a way on."""

from __future__ import annotations

import errno
import re

import pytest

from codex_multi_role import errors
from codex_multi_role.errors import (
    CodexMultiRoleError,
    CodexRefused,
    Ending,
    ExitCode,
    RoleFailed,
    RunInterrupted,
    RunStatus,
    ending_for,
    not_started,
)

CODES = dict(re.findall(r"── (\w+) +(?:exit (\d+))?", errors.__doc__ or ""))
"""By name, as the tree in the docstring has them; below an error with a code, others have the same."""
KINDS = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, CodexMultiRoleError)]
OTHERS = (CodexMultiRoleError, CodexRefused, RoleFailed, errors.RunParked, errors.QuotaUsedUp, RunInterrupted)
"""Those without a code, and those that are made of more than a message and a hint."""
PLAIN = [kind for kind in KINDS if kind not in OTHERS]


def code_of(kind: type) -> int | None:
    return next((int(CODES[each.__name__]) for each in kind.__mro__ if CODES.get(each.__name__)), None)


def test_tree_in_the_docstring_has_every_error() -> None:
    assert {CodexMultiRoleError.__name__, *CODES} == {kind.__name__ for kind in KINDS}
    assert [kind for kind in KINDS if code_of(kind) not in (None, kind.exit_code)] == []


@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.__name__)
def test_error_gives_its_name_its_words_and_its_exit_code(kind: type[CodexMultiRoleError]) -> None:
    expected = Ending(kind.status, kind.reason, "what happened", kind.exit_code, "what to do")
    assert ending_for(kind("what happened", "what to do")) == expected


def test_failed_role_gives_the_reason_of_its_turn() -> None:
    ending = ending_for(RoleFailed("role one: no valid reply", "invalid_reply", "look there"))
    assert ending == Ending(
        RunStatus.FAILED, "invalid_reply", "role one: no valid reply", ExitCode.FAILED, "look there"
    )
    assert ending_for(CodexRefused("no", -32600)).outcome == "refused"


@pytest.mark.parametrize("error", [RunInterrupted(), KeyboardInterrupt()])
def test_stopped_run_is_not_a_failure(error: BaseException) -> None:
    assert ending_for(error) == Ending(RunStatus.INTERRUPTED, "cancelled", "the run was stopped", ExitCode.INTERRUPTED)


@pytest.mark.parametrize(
    ("error", "reason", "hint"),
    [
        (OSError(errno.EMFILE, "Too many open files", "runs/one"), "runs/one: Too many open files", "ulimit -n"),
        (
            ImportError("_sqlite3.so: cannot open shared object file: Too many open files"),
            "Too many open files",
            "ulimit -n",
        ),
        (MemoryError(), "out of memory", "ulimit -u"),
        (RuntimeError("can't start new thread"), "can't start new thread", "ulimit -u"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "temporarily unavailable", "ulimit -u"),
        (ImportError("_sqlite3.so: failed to map segment from shared object"), "failed to map segment", "ulimit -u"),
        (OSError(errno.EFBIG, "File too large", "runs/one"), "runs/one: File too large", "ulimit -f"),
        (OSError(errno.ENOSPC, "No space left on device", "runs/one"), "runs/one: No space", "Free some space"),
        (PermissionError(errno.EACCES, "Permission denied", "runs/one"), "runs/one: Permission", "permissions"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 300), "File name too long", "shorter"),
    ],
)
def test_limit_of_the_system_is_not_an_internal_error(error: Exception, reason: str, hint: str) -> None:
    ending = ending_for(error)
    assert (ending.outcome, ending.exit_code, ending.details) == ("storage_failed", 3, "")
    assert reason in ending.reason
    assert hint in ending.hint


@pytest.mark.parametrize("error", [RuntimeError(), NotImplementedError(), FileNotFoundError(2, "No such file", "x")])
def test_bug_without_a_message_is_no_limit_of_the_system(error: Exception) -> None:
    assert ending_for(error).outcome == "internal_error"


def test_program_that_lacks_resources_is_not_wrong_usage() -> None:
    for number, code in ((errno.ENOENT, 2), (errno.EMFILE, 3), (errno.ENOMEM, 3)):
        error = not_started("git cannot be run", OSError(number, "reason"), "install git")
        assert (str(error), error.exit_code) == ("git cannot be run: reason", code)


def test_unexpected_error_is_internal_error_with_traceback() -> None:
    try:
        int("seven")
    except ValueError as error:
        ending = ending_for(error)
    assert (ending.status, ending.outcome, ending.exit_code) == ("failed", "internal_error", 3)
    assert ending.reason == "ValueError: invalid literal for int() with base 10: 'seven'"
    assert "traceback.txt" in ending.hint
    assert "test_errors.py" in ending.details
