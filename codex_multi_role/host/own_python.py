"""Start Python processes of ours: with modules of ours, never with one that a role may have written."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, cast

from codex_multi_role.errors import SYSTEM_HINTS, CodexMultiRoleError, StorageError, UsageError
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.host.programs import steering_variables

OWN_PYTHON = sys.executable
NOTHING = Path(os.devnull)
STOP_SECONDS = 90.0
"""How long a process has to stop before it is killed: a run interrupts its turns and saves its state."""
CHUNK_BYTES = 1 << 16
MAX_LINE_BYTES = 4 << 20
MAX_CHUNKS = 64
"""How much of one process's output is read before it is another's turn."""
LOG_BYTES = 8000
"""How much of the end of a log is shown."""
UNWANTED = ("PYTHONEXECUTABLE", "PYTHONINSPECT")
"""Variables that replace `OWN_PYTHON` in the process, or its exit code."""
AFTER_US = ("/bin/sh", "-c", 'read -r _; exec "$@"', "/bin/sh")


class Lifetime(Enum):
    """When a process lives.

    The first and the last have a pipe as standard input that only this process holds open: it ends however this one
    does. The last is a shell until then, because a Python would take 10 ms to start and 8 MB meanwhile (measured).
    """

    ENDS_WITH_US = auto()
    OUTLIVES_US = auto()
    STARTS_AFTER_US = auto()


def own_module(module: str, *arguments: str) -> list[str]:
    """The command line for a module of ours, not one of that name in the current folder or a home that models write."""
    home = steering_variables({"PYTHONUSERBASE": os.environ.get("HOME", "/")})
    return [OWN_PYTHON, "-P", *(["-s"] if home else []), "-m", module, *arguments]


def own_script(script: str, *arguments: str) -> list[str]:
    """The command line for a text that finds its modules by itself, because it starts without `site`."""
    return [OWN_PYTHON, "-I", "-S", "-c", script, *arguments]


def own_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` without what would load files that a model may have written, and without `UNWANTED`."""
    kept = {name: value for name, value in environment.items() if name not in UNWANTED}
    for name, entries in steering_variables(kept).items():
        places = kept.pop(name).split(os.pathsep)
        rest = [each for each in places if each not in entries]
        if 0 < len(rest) < len(places):
            kept[name] = os.pathsep.join(rest)
    return kept


def start(
    command: list[str],
    lifetime: Lifetime,
    order: str = "",
    log: Path = NOTHING,
    environment: Mapping[str, str] = os.environ,
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start ``command`` in a session of its own; its standard error is appended to ``log``.

    A process that ends with us gets the option ``--order`` with the descriptor from which `read_order` takes ``order``,
    and its standard output is a pipe. Otherwise ``order`` is its standard input, which nobody has to wait for.
    Raises `StorageError`, and `UsageError` for values that cannot be passed to a process.
    """
    reports = lifetime is Lifetime.ENDS_WITH_US
    with storage_errors(log), log.open("ab") as errors, TemporaryFile() if order else NOTHING.open("r+b") as file:
        file.write(order.encode("utf-8", "replace"))
        file.seek(0)
        program = [*AFTER_US, *command] if lifetime is Lifetime.STARTS_AFTER_US else command
        try:
            return subprocess.Popen(
                [*program, "--order", str(file.fileno())] if reports else program,
                stdin=file if lifetime is Lifetime.OUTLIVES_US else subprocess.PIPE,
                stdout=subprocess.PIPE if reports else subprocess.DEVNULL,
                stderr=errors,
                pass_fds=[file.fileno()] if reports else (),
                cwd=folder,
                env=own_environment(environment),
                start_new_session=True,  # not reached by a Ctrl-C in our terminal
            )
        except (OSError, ValueError) as error:
            raise _not_started(program[0], error) from error


def _not_started(program: str, error: OSError | ValueError) -> CodexMultiRoleError:
    if not isinstance(error, OSError) or error.errno == errno.E2BIG:  # a NUL, or longer than a command line may be
        return UsageError(f"the values cannot be passed to a process: {error}")
    return StorageError(f"cannot start {program}: {error.strerror or error}", SYSTEM_HINTS.get(error.errno or 0, ""))


def read_order(descriptor: int) -> dict[str, Any]:
    """In a process that ends with its starter: what it does."""
    with open(descriptor, encoding="utf-8") as file:
        return cast(dict[str, Any], json.load(file))


def last_output(log: Path) -> str:
    """The end of what a process wrote to ``log``; empty if that cannot be read."""
    try:
        return log.read_bytes()[-LOG_BYTES:].decode("utf-8", "replace")
    except OSError:
        return ""


class OwnProcess:
    """A process of ours that ends with this one, and reports in lines. Only one thread may read them."""

    def __init__(self, command: list[str], order: Mapping[str, Any], log: Path) -> None:
        self._process = start(command, Lifetime.ENDS_WITH_US, json.dumps(order), log)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._leash, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self.fileno(), False)
        self._rest = b""
        self.is_silent = False  # once all that it can report was read

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def fileno(self) -> int:
        """What is readable when `lines` has more."""
        return self._output.fileno()

    def lines(self) -> Iterator[bytes]:
        """What it has reported since the last call, without waiting."""
        for _ in range(MAX_CHUNKS):
            try:
                chunk = os.read(self.fileno(), CHUNK_BYTES)
            except BlockingIOError:
                return
            if not chunk:
                self.is_silent = True
                return
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            if len(self._rest) > MAX_LINE_BYTES:
                self._rest = b""
            yield from lines

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self) -> None:
        """Ask it to stop so that its work can be continued."""
        self._leash.close()

    def close(self) -> list[bytes]:
        """Wait for its end, and kill it if that takes too long; returns the last lines."""
        self.stop()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
        with self._output:
            return [*self.lines()]
