"""The console command as a user starts it, with pipes or on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import IO, Any

import click
import pytest

from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.cli.main import group
from tests.support.preloaded import can_be_preloaded, started

WITHOUT_PLUGINS = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
OWN_VARIABLES = "CODEX_MULTI_ROLE_"
DEADLINE_SECONDS = 120
COMMANDS = (
    *("runs", "show", "watch", "report", "diff", "blame a.txt", "gc --dry-run", "gc", "serve --host 192.0.2.1", "pr"),
    *("apply --to checkout", "export --branch made", "approve", "reject --comment no", "answer option=yes", "cancel"),
    *("pause", "doctor", "config show", "codex --version", "schema flow", "completion bash", "queues"),
    *("roles list", "roles show", "roles validate", "flows list", "flows show", "flows validate", "flows graph"),
    *("run it --dry-run", "batch goals.jsonl", "worker --until-empty", "init own"),
    *(
        "resume --cycles 2",
        "fork --from team",
        "fork --task T1",
        "rerun",
        "rerun --dry-run",
        "run --replay recording.ndjson",
    ),
)
"""All but ``trust`` and the long ``demo``, as tried in a folder from elsewhere. ``192.0.2.1`` is no machine's."""

Completed = subprocess.CompletedProcess[str]


def console(*arguments: str, folder: Path, variables: dict[str, str] | None = None, text: str = "") -> Completed:
    """Run ``codex-multi-role`` with ``arguments`` in ``folder``, in this process; ``text`` is its standard input.

    Importing it takes most of what a process of its own takes: see `console_process`.
    """
    streams = {name: TextIOWrapper(BytesIO(), "utf-8", write_through=True) for name in ("stdout", "stderr")}
    with pytest.MonkeyPatch.context() as patch, chdir(folder):
        for name in [name for name in os.environ if name.startswith(OWN_VARIABLES)]:
            patch.delenv(name)
        for name, value in (variables or {}).items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text.encode()), "utf-8"))
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        code = run_guarded(group, arguments)
    said = {name: stream.buffer.getvalue().decode() for name, stream in streams.items()}
    return subprocess.CompletedProcess(arguments, code, **said)


def tried(words: str, folder: Path) -> Completed:
    """One of `COMMANDS`; ``codex`` replaces the process that calls it."""
    return (console_process if words.startswith("codex") else console)(*words.split(), folder=folder)


def never_tried() -> set[str]:
    """The installed commands that are not among `COMMANDS`."""
    return offered_commands() - {words.split()[0] for words in COMMANDS} - {"trust", "demo"}


def offered_commands() -> set[str]:
    """All commands, without those that have ended."""
    context = click.Context(group)
    return {name for name in group.list_commands(context) if not _command(context, name).hidden}


def _command(context: click.Context, name: str) -> click.Command:
    command = group.get_command(context, name)
    assert command is not None
    return command


def console_process(
    *arguments: str, folder: Path, variables: dict[str, str] | None = None, text: str = ""
) -> Completed:
    """The same in a process of its own, as a user starts it."""
    command = [sys.executable, "-m", "codex_multi_role", *arguments]
    return completed(command, folder, environment(**(variables or {})), text=text)


def completed(
    argv: Sequence[str], folder: Path, env: Mapping[str, str], *, seconds: float = DEADLINE_SECONDS, text: str = ""
) -> Completed:
    """Any program that has ended; its variables are ``env`` alone, and ``text`` is its standard input."""
    given: Any = {"cwd": folder, "env": env, "input": text, "timeout": seconds}
    return subprocess.run(argv, **given, capture_output=True, text=True, check=False)


@contextmanager
def reading(child: subprocess.Popen[str]) -> Iterator[None]:
    """While what ``child`` says is read: one that says nothing for long is killed, and so is one that is left over."""
    watchdog = threading.Timer(DEADLINE_SECONDS, child.kill)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()
        child.kill()


def line(stream: IO[str] | None) -> str:
    """The next line of a child's output; there has to be one."""
    assert stream is not None
    read = stream.readline()
    assert read, "the output has ended"
    return read


def environment(**variables: str) -> dict[str, str]:
    """This process's variables without the command's own, plus ``variables``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OWN_VARIABLES)}
    return {**inherited, **variables}


TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def on_terminal(argv: Sequence[str], folder: Path, **variables: str) -> tuple[str, str, int]:
    """Run ``argv`` on a terminal of 100 columns; what it drew, its stdout, its exit code."""
    ours, theirs = pty.openpty()
    settings = {"TERM": "xterm", "COLUMNS": "100", "LINES": "30", **variables}
    child = started(argv, stdout=subprocess.PIPE, stderr=theirs, cwd=folder, env=environment(**settings))
    os.close(theirs)
    with reading(child):
        drawn = _read_all(ours)
        output, _ = child.communicate(timeout=DEADLINE_SECONDS)
    return drawn, output, child.returncode


def _read_all(descriptor: int) -> str:
    parts: list[bytes] = []
    while part := _read(descriptor):
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts).decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # so Linux says that the other end is closed
        return b""


class Session:
    """A command with stdin and stderr on a terminal that is typed on while it runs."""

    def __init__(self, child: subprocess.Popen[str], descriptor: int) -> None:
        self.child = child
        self.drawn = ""
        self.descriptor = descriptor
        self._seen = 0

    def wait_for(self, text: str) -> None:
        """Until ``text`` was drawn, after the text before it."""
        while (at := self.drawn.find(text, self._seen)) < 0:
            part = _read(self.descriptor)
            assert part, f"'{text}' was not drawn:\n{self.drawn}"
            self.drawn += part.decode()
        self._seen = at + len(text)

    def type(self, text: str) -> None:
        """Press these keys."""
        os.write(self.descriptor, text.encode())

    def end(self) -> int:
        """Read on to the end; the exit code."""
        while part := _read(self.descriptor):
            self.drawn += part.decode("utf-8", "replace")
        return self.child.wait(DEADLINE_SECONDS)


@contextmanager
def at_terminal(argv: Sequence[str], folder: Path, *, columns: int = 100, **variables: str) -> Iterator[Session]:
    """Start ``argv`` on a terminal of its own, as ``script`` does: it controls the command, Ctrl-C included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    settings = {"TERM": "xterm", "COLUMNS": "", "LINES": "", **variables}
    child = started(
        argv if can_be_preloaded(argv) else [sys.executable, "-c", TAKE_TERMINAL, *argv],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment(**settings), start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        with reading(child):
            yield Session(child, ours)
    finally:
        child.wait(DEADLINE_SECONDS)
        os.close(ours)
