"""Standard output is for machines, standard error for people; neither may take a run down with it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import sys
from pathlib import Path
from typing import Any, TextIO

import click

from codex_multi_role.ci.github import harmless, runs_here

PATIENCE_SECONDS = 30.0
PIECE = select.PIPE_BUF
"""So much can be written at once to a pipe that takes anything at all."""


def open_missing() -> None:
    """Put /dev/null in place of standard streams that were closed when this process started (``2>&-``).

    Otherwise the next files to be opened would get their numbers, and with them what others write there.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, errors="replace"))  # noqa: SIM115 - as long as we live


def say(text: str) -> None:
    """A line for people, on stderr; lost if nobody can hear it."""
    annotate(_safe(text))


def annotate(command: str) -> None:
    """A workflow command, on stderr, where it is in nobody's way; GitHub reads both streams. Lost as `say` may be."""
    try:
        wait_for_reader(sys.stderr)
        click.echo(command, err=True)
    except OSError:
        let_go(sys.stderr)


def put_line(text: str) -> None:
    """A line for people, on stdout, that holds what others wrote."""
    click.echo(_safe(text))


def _safe(text: str) -> str:
    return harmless(text) if runs_here() else text


def _as_json(value: object, indent: int | None = None) -> str:
    """JSON, ASCII. In a workflow's log no text in it is a command: a bracket is written otherwise, to the same end."""
    text = json.dumps(value, indent=indent, default=str)
    return text.replace("##[", "##\\u005b") if runs_here() else text


def wait_for_reader(stream: TextIO) -> None:
    """Return once `PIECE` bytes can be written there. Raises `TimeoutError`: a run must not wait for its audience."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):  # no file: nobody to wait for
        return
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    if not poll.poll(PATIENCE_SECONDS * 1000):
        raise TimeoutError(errno.ETIMEDOUT, f"nobody read there for {PATIENCE_SECONDS:g} s")


def put_json(value: object) -> None:
    """``value``, indented, on stdout; ASCII, so that no terminal's encoding can refuse it."""
    click.echo(_as_json(value, 2))


def put_json_line(value: object) -> None:
    """``value`` as one line on stdout."""
    click.echo(_as_json(value))


def let_go(stream: TextIO | None) -> None:
    """Stop writing there: its reader is gone, and what is buffered must not fail again when the interpreter ends."""
    with contextlib.suppress(OSError, AttributeError):  # a stream may be no file, or not be there at all
        descriptor = stream.fileno()  # type: ignore[union-attr]
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


class JsonLines:
    """Writes events to stdout, one a line, ASCII. A reader that goes away or does not read does not hold up the run."""

    def __init__(self) -> None:
        self._lost = False

    def __call__(self, record: dict[str, Any]) -> None:
        if self._lost:
            return
        line = f"{_as_json(record)}\n"
        try:
            for begin in range(0, len(line), PIECE):
                wait_for_reader(sys.stdout)
                sys.stdout.write(line[begin : begin + PIECE])
                sys.stdout.flush()
        except OSError as error:
            self._lost = True
            let_go(sys.stdout)
            if not isinstance(error, BrokenPipeError):
                say(f"warning: no more events on standard output: {error.strerror}; events.jsonl has them all")


def put_yaml(value: object) -> None:
    """``value`` as YAML on stdout, in its own order."""
    import yaml  # here: few commands show YAML

    click.echo(yaml.safe_dump(value, sort_keys=False, allow_unicode=False, width=100), nl=False)
