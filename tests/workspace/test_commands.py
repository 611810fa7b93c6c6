from __future__ import annotations

import os
import selectors
import sys
import time
from pathlib import Path
from threading import Event, Timer
from typing import Any

import psutil
import pytest

from codex_multi_role.errors import RunInterrupted, UsageError
from codex_multi_role.workspace import CommandResult, run_command

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little patience for those who do not end, or keep a pipe open."""
    monkeypatch.setattr("codex_multi_role.host.processes.GRACE_SECONDS", 0.3)
    monkeypatch.setattr("codex_multi_role.workspace.commands._DRAIN_SECONDS", 0.2)


def _run(command: str, folder: Path, seconds: float = 20.0, **options: Any) -> CommandResult:
    return run_command(["sh", "-c", command], folder, {"PATH": os.environ["PATH"], "OWN": "yes"}, seconds, **options)


def _lives(pid_file: Path) -> bool:
    try:
        return psutil.Process(int(pid_file.read_text())).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("echo out; echo err >&2; pwd; exit 3", "out\nerr\n{folder}\n", 3),
        ('echo "$OWN $PARENT"; cat', "yes \n", 0),
        (r"printf 'a\377b'", "a\ufffdb", 0),
        ("kill -9 $$", "", -9),
    ],
    ids=["streams", "environment", "no UTF-8", "signal"],
)
def test_output_and_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, output: str, code: int
) -> None:
    """With the given environment alone, and no input."""
    monkeypatch.setenv("PARENT", "secret")
    result = _run(command, tmp_path)
    assert result.output == output.format(folder=tmp_path)
    assert (result.returncode, result.timed_out, result.truncated) == (code, False, False)


@pytest.mark.parametrize(
    ("command", "ended"),
    [
        ("echo out; echo err >&2; echo out; exit 3", ("out\nout\n", "err\n", 3)),
        ("exec 2>&-; sleep 0.3; echo late", ("late\n", "", 0)),
    ],
)
def test_standard_error_can_be_kept_apart(tmp_path: Path, command: str, ended: tuple[str, str, int]) -> None:
    """Also where one of the streams is closed."""
    result = _run(command, tmp_path, separate_errors=True)
    assert (result.output, result.errors, result.returncode) == ended


def test_both_streams_are_read_at_once_and_each_is_bounded(tmp_path: Path) -> None:
    flood = "import sys; [(sys.stderr.write('e' * 50_000), sys.stdout.write('o' * 10)) for _ in range(20)]"
    command = [sys.executable, "-c", flood]
    result = run_command(command, tmp_path, dict(os.environ), 60, output_limit_bytes=1_000, separate_errors=True)
    assert (result.output, result.truncated, result.returncode) == ("o" * 200, False, 0)
    assert "999000 bytes left out" in result.errors


class LateSelector(selectors.DefaultSelector):
    """Sees nothing the first time, and returns only once the command has ended."""

    looked = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.looked:
            return super().select(timeout)
        self.looked = True
        command = max(psutil.Process().children(), key=psutil.Process.create_time)
        deadline = time.monotonic() + 20
        while command.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline, "the command did not end"
            time.sleep(0.01)
        return []


@pytest.mark.parametrize("separate_errors", [False, True])
def test_output_written_just_before_the_end_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, separate_errors: bool
) -> None:
    """The command writes and ends between a look at its pipe, which saw nothing, and the look at its exit code."""
    monkeypatch.setattr("codex_multi_role.workspace.commands.selectors.DefaultSelector", LateSelector)
    result = _run("echo out; echo err >&2", tmp_path, separate_errors=separate_errors)
    assert sorted((result.output + result.errors).split()) == ["err", "out"]


def test_output_written_while_being_ended_is_kept(tmp_path: Path) -> None:
    """Such as what a test runner prints of the tests so far."""
    result = _run("trap 'echo ended; exit' TERM; echo begun; while :; do :; done", tmp_path, 0.3)
    assert (result.timed_out, result.output) == (True, "begun\nended\n")


def test_who_escapes_with_the_pipe_cannot_hold_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that nothing connects with the command: it keeps the pipe open, silent or not."""
    monkeypatch.setattr("codex_multi_role.workspace.commands.Family.end", lambda _: 0)
    result = _run("(setsid sh -c 'echo $$ > pid; exec yes' &); while ! [ -s pid ]; do :; done; exit 4", tmp_path, 60)
    psutil.Process(int((tmp_path / "pid").read_text())).kill()
    assert result.returncode == 4


def test_flood_is_cut_in_the_middle(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.write('first' + 'x' * 100_000_000 + 'last')"
    before = psutil.Process().memory_info().rss
    result = run_command([sys.executable, "-c", code], tmp_path, dict(os.environ), 60, output_limit_bytes=1_000)
    assert result.truncated
    assert result.output.startswith("first")
    assert result.output.endswith("last")
    assert "99999009 bytes left out" in result.output
    assert len(result.output) < 1_100
    assert psutil.Process().memory_info().rss - before < 50_000_000


@pytest.mark.parametrize(("before", "output"), [("echo begun", "begun\n"), ("exec >&- 2>&-", "")])
def test_deadline_ends_the_command(tmp_path: Path, before: str, output: str) -> None:
    result = _run(f"{before}; sleep 600", tmp_path, 0.3)
    assert (result.returncode, result.timed_out) == (None, True)
    assert result.output.startswith(output)  # the shell may add how its program ended


@pytest.mark.parametrize("how", ["", "setsid"])
def test_descendants_end_at_the_deadline(tmp_path: Path, how: str) -> None:
    assert _run(f"{how} sh -c 'echo $$ > pid; sleep 600' & sleep 600", tmp_path, 0.5).timed_out
    assert not _lives(tmp_path / "pid")


def test_who_ignores_the_request_to_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codex_multi_role.host.processes.GRACE_SECONDS", 0.3)
    assert _run("trap '' TERM; echo $$ > pid; sleep 600; sleep 600", tmp_path, 0.3).timed_out
    assert not _lives(tmp_path / "pid")


def test_command_has_a_session_of_its_own(tmp_path: Path) -> None:
    """So that no signal of the terminal reaches it before the run has its say."""
    told = _run(f"exec {sys.executable} -c 'import os; print(os.getsid(0) == os.getpid())'", tmp_path)
    assert told.output == "True\n"


@pytest.mark.parametrize(
    ("started", "code"),
    [
        ("(setsid sh -c 'echo $$ > pid; sleep 600' >/dev/null 2>&1 &); {wait}", 0),
        ("sh -c 'echo $$ > pid; sleep 600' & {wait}; exit 4", 4),
    ],
    ids=["an orphan in its own session", "one who holds the pipe"],
)
def test_what_the_command_leaves_behind_cannot_hold_us(tmp_path: Path, started: str, code: int) -> None:
    result = _run(f"echo done; {started.format(wait='while ! [ -s pid ]; do :; done')}", tmp_path, 60)
    assert (result.returncode, result.timed_out) == (code, False)
    assert result.output.startswith("done\n")  # the inner shell may add how its program ended
    assert not _lives(tmp_path / "pid")


def test_who_floods_the_pipe_cannot_hold_us(tmp_path: Path) -> None:
    assert _run("yes & exit 4", tmp_path, 60).returncode == 4


def test_interrupt_leaves_nothing_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> bool:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            pass
        raise KeyboardInterrupt

    monkeypatch.setattr("codex_multi_role.workspace.commands._collect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _run("echo $$ > pid; sleep 600", tmp_path)
    assert not _lives(tmp_path / "pid")


@pytest.mark.parametrize("program", ["no-such-program", "/etc/hostname", "nul\x00byte"])
def test_program_that_cannot_be_started(tmp_path: Path, program: str) -> None:
    with pytest.raises(UsageError, match="cannot run"):
        run_command([program], tmp_path, {"PATH": os.environ["PATH"]}, 5)


@pytest.mark.parametrize("outputs", ["", " >/dev/null 2>&1"])
def test_run_that_stops_ends_its_command(tmp_path: Path, outputs: str) -> None:
    stopping = Event()
    Timer(0.3, stopping.set).start()
    with pytest.raises(RunInterrupted):
        _run(f"echo $$ > pid; exec sleep 600{outputs}", tmp_path, stopping=stopping)
    assert not _lives(tmp_path / "pid")


STARTS = 'echo >> starts; [ $(wc -l < starts) -gt {most} ] || {{ echo "{said}" >&2; exit 1; }}'


LOST = "bwrap: Can't mount tmpfs on /newroot/w/.git: No such file or directory"
WARNED = "WARNING: proceeding, even though we could not create PATH aliases: No such file or directory (os error 2)\n"


@pytest.mark.parametrize(
    ("most", "said", "ended"),
    [
        (2, LOST, (0, False, 3)),
        (2, WARNED + LOST, (0, False, 3)),
        (99, LOST, (1, True, 10)),
        (99, LOST + "\nmore", (1, False, 1)),
    ],
    ids=["lost a mount point", "and warned", "never starts", "started"],
)
def test_sandbox_that_lost_a_mount_point_is_started_again(
    tmp_path: Path, most: int, said: str, ended: tuple[int, bool, int]
) -> None:
    """Up to ten times; a command that started runs once."""
    argv = ["sh", "-c", STARTS.format(most=most, said=said)]
    result = run_command(argv, tmp_path, {"PATH": os.defpath}, 60.0, separate_errors=True)
    starts = len((tmp_path / "starts").read_text().splitlines())
    assert (result.returncode, result.not_sandboxed, starts) == ended
