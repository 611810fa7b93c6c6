"""Start Python processes of ours: with modules of ours, never with one that a role may have written."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from enum import Enum, auto
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, cast

from codex_multi_role.errors import SYSTEM_HINTS, CodexMultiRoleError, StorageError, UsageError
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.host.programs import steering_variables

OWN_PYTHON = sys.executable
NOTHING = Path(os.devnull)
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
