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

EXIT_CODES: dict[type[CodexMultiRoleError], int] = {
    errors.UsageError: 2,
    errors.DefinitionError: 2,
    errors.RunNotFound: 2,
    errors.RunBusy: 2,
    errors.CodexUnavailable: 2,
    errors.CodexNotFound: 2,
    errors.CodexNotLoggedIn: 2,
    errors.CodexError: 3,
    errors.CodexStartFailed: 3,
    errors.CodexCrashed: 3,
    errors.CodexTimeout: 3,
    errors.CheckFailed: 3,
    errors.StepTimedOut: 3,
    errors.SetupFailed: 3,
    errors.StorageError: 3,
}


def test_tree_in_the_docstring_has_every_error() -> None:
    assert errors.__doc__ is not None
    told = dict(re.findall(r"── (\w+) +(?:exit (\d+))?", errors.__doc__))
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, CodexMultiRoleError)]
    assert {CodexMultiRoleError.__name__, *told} == {kind.__name__ for kind in kinds}
    assert [kind for kind in kinds if told.get(kind.__name__) not in (None, "", str(int(kind.exit_code)))] == []


@pytest.mark.parametrize("kind", EXIT_CODES, ids=lambda kind: kind.__name__)
def test_error_gives_its_name_its_words_and_its_exit_code(kind: type[CodexMultiRoleError]) -> None:
    expected = Ending(RunStatus.FAILED, kind.reason, "what happened", ExitCode(EXIT_CODES[kind]), "what to do")
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
    "error",
    [
        OSError(errno.EMFILE, "Too many open files", "runs/one"),
        ImportError("/lib/_sqlite3.so: cannot open shared object file: Too many open files"),
    ],
)
def test_too_few_file_descriptors_are_not_an_internal_error(error: Exception) -> None:
    ending = ending_for(error)
    assert (ending.outcome, ending.exit_code) == ("storage_failed", 3)
    assert "ulimit -n" in ending.hint


@pytest.mark.parametrize(
    ("error", "reason", "hint"),
    [
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
