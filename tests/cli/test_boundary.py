from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.errors import CodexMultiRoleError, CodexNotFound, DefinitionError, RoleFailed, UsageError
from tests.support.console import environment


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def guarded(error: BaseException | None = None) -> int:
    @click.command()
    def command() -> None:
        if error is not None:
            raise error

    return run_guarded(command, [])


WRONG = ("it is wrong", "do this")
FREE_SPACE = "Free some space or fix the permissions, then try again; a run continues when it is resumed."
TOGETHER = DefinitionError.together([DefinitionError("a.yaml:1:1: x", "do this"), DefinitionError("b.yaml:2:1: y")])


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (None, 0, ""),
        (click.exceptions.Exit(1), 1, ""),
        (UsageError(*WRONG), 2, "error: it is wrong\nhint: do this\n"),
        (CodexNotFound(*WRONG), 2, "error: it is wrong\nhint: do this\n"),
        (TOGETHER, 2, "error: a.yaml:1:1: x\nhint: do this\nerror: b.yaml:2:1: y\n"),
        (RoleFailed("it is wrong", "timed_out", "do this"), 3, "error: it is wrong\nhint: do this\n"),
        (CodexMultiRoleError(*WRONG), 3, "error: it is wrong\nhint: do this\n"),
        (
            PermissionError(13, "Permission denied", "/etc/x"),
            3,
            f"error: /etc/x: Permission denied\nhint: {FREE_SPACE}\n",
        ),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
        (click.Abort(), 130, "error: interrupted\n"),
    ],
)
def test_error_is_a_line_a_hint_and_its_exit_code(
    error: BaseException | None, code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of the problems found together keeps its own hint."""
    assert guarded(error) == code
    assert capsys.readouterr() == ("", told)


def test_unexpected_error_prints_one_line_and_saves_traceback(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The hint names the file with the traceback."""
    assert guarded(ZeroDivisionError("by zero")) == 3
    error, hint = capsys.readouterr().err.splitlines()
    (file,) = tmp_path.iterdir()
    assert error == "error: unexpected ZeroDivisionError: by zero"
    assert str(file) in hint
    assert "Traceback" in file.read_text()


def test_traceback_is_shown_where_it_is_wanted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_MULTI_ROLE_DEBUG", "1")
    assert guarded(ZeroDivisionError("by zero")) == 3
    assert "Traceback" in capsys.readouterr().err


def test_limit_of_the_system_is_not_reported_as_bug(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert guarded(RuntimeError("can't start new thread")) == 3
    error, hint = capsys.readouterr().err.splitlines()
    assert error == "error: can't start new thread"
    assert "ulimit -u" in hint
    assert not [*tmp_path.iterdir()]  # no traceback to report


def main_into(stdout: int) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "codex_multi_role", "--help"],
        stdout=stdout, stderr=subprocess.PIPE, env=environment(), timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.real
def test_closed_reader_ends_the_command_silently() -> None:
    """The exit code is 141, and nothing is written to standard error."""
    reader, writer = os.pipe()
    os.close(reader)
    done = main_into(writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.real
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_a_failure() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    done = main_into(full)
    os.close(full)
    assert done.returncode == 3
    assert b"error: standard output: No space left on device" in done.stderr
