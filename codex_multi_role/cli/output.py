"""Standard output is for machines, standard error for people; neither may stop a run."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from codex_multi_role.cli.tables import Column, shown_at
from codex_multi_role.host.spelling import printable
from codex_multi_role.host.workflow_log import harmless, runs_here
from codex_multi_role.presentation.wording import columns_of, wrapped
from codex_multi_role.run_folder.folder import PROGRAM

PATIENCE_SECONDS = 30.0
LOOK_SECONDS = 0.1
COLOURS = {"+": "green", "-": "red", "@": "cyan"}
FILE_LINES = ("+++ ", "--- ", "diff ")
PIECE = select.PIPE_BUF
"""Bytes that a pipe which is ready for writing takes without blocking."""


def open_missing() -> None:
    """Open /dev/null in place of standard streams that were closed when this process started (``2>&-``).

    Otherwise the next files to be opened would get their numbers, and everything written to these streams.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest free number
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, errors="replace"))  # noqa: SIM115 - stays open


def say(text: str) -> None:
    """Print a line for people on stderr, as `put_line` does; it is lost if nobody can read it."""
    annotate(_line(text, sys.stderr))


def annotate(command: str) -> None:
    """Write a workflow command to stderr; GitHub reads both streams. It may be lost like a line of `say`."""
    try:
        wait_for_reader(sys.stderr)
        click.echo(command, err=True)
    except OSError:
        discard_output(sys.stderr)


def put_line(text: str, **style: Any) -> None:  # noqa: ANN401 - of `click.style`
    """Print a line for people on stdout; text of others in it controls no terminal, and forges no line or command.

    Further lines of it are indented.
    """
    line = _line(text, sys.stdout)
    click.echo(click.style(line, **style) if style else line)


def diff_style(line: str) -> dict[str, Any]:
    """How `click.style` shows a line of a patch."""
    if line.startswith(FILE_LINES):
        return {"bold": True}
    return {"fg": COLOURS[line[0]]} if line[:1] in COLOURS else {}


def page_patch(patch: str, is_over: Callable[[], bool]) -> None:
    """Show a patch in the pager, in colours, until it is closed, by Ctrl-C as well, or ``is_over``.

    Without a terminal on stdout, on stderr.
    """
    lines, pager = patch.splitlines(), shlex.split(os.environ.get("PAGER", "")) or ["less"]
    if not sys.stdout.isatty() or shutil.which(pager[0]) is None:
        for line in lines:
            say(line)
        return
    before, options = termios.tcgetattr(sys.stdout), f"-RK {os.environ.get('LESS', '')}"
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        file.writelines(f"{click.style(_line(line, None), **diff_style(line))}\n" for line in lines)
        file.seek(0)
        child = subprocess.Popen(pager, stdin=file, env={**os.environ, "LESS": options})
        end = child.terminate
        while child.poll() is None:  # waits: for a person, ended by `is_over`
            if is_over():
                end()
                end = child.kill  # at the next look, if it pays no attention
            time.sleep(LOOK_SECONDS)
    termios.tcsetattr(sys.stdout, termios.TCSANOW, before)


def put_text(text: str, *, exact: bool = False) -> None:
    """Print lines on stdout; ``exact``: unchanged, except on a terminal, which control characters would steer."""
    if not exact or sys.stdout.isatty():
        text = printable(text, keep="\n\t").expandtabs()
    click.echo(_safe(text), nl=not text.endswith("\n"), color=True)


def put_bytes(content: bytes) -> None:
    """Write ``content`` to stdout exactly."""
    click.echo(content, nl=False)


def _line(text: str, stream: TextIO | None) -> str:
    first, *others = [printable(line, keep="\t").expandtabs() for line in text.splitlines()] or [""]
    lines = [first, *(f"  {each.removeprefix('  ')}" for each in others)]
    context = click.get_current_context(silent=True)
    is_plain = os.environ.get("CI") or runs_here() or (context is not None and context.params.get("plain"))
    if stream is not None and stream.isatty() and not is_plain:
        lines = [_fitted(line, links=_draws(stream)) for line in lines]
    return _safe("\n".join(lines))


def _fitted(line: str, *, links: bool) -> str:
    """The line for a terminal: broken at blanks; a path or an address alone or after a label is a link.

    If it does not fit beside its label, it is printed unbroken on the next line, as a command is.
    """
    label, _, what = line.rpartition("  ")
    is_path = "/" in what and os.path.exists(what)  # noqa: PTH110 - `Path.exists` raises for a name that is too long
    is_address = re.fullmatch(r"(https?|file)://\S+", what)
    width = shutil.get_terminal_size().columns
    if not (is_path or is_address or what.startswith(f"{PROGRAM} ")):
        return "\n".join(wrapped(line, width))
    fits = columns_of(line) <= width
    start = line.removesuffix(what) if fits or not label.strip() else f"{label.rstrip()}\n"
    address = Path(what).absolute().as_uri() if is_path else what
    is_link = links and (is_path or is_address)
    return start + (f"\x1b]8;;{address}\x1b\\{what}\x1b]8;;\x1b\\" if is_link else what)


def _safe(text: str) -> str:
    return harmless(text) if runs_here() else text


def _as_json(value: object, indent: int | None = None) -> str:
    """Return printable ASCII JSON; in a workflow's log, brackets are escaped so that no text in it is a command."""
    text = json.dumps(value, indent=indent, default=str).replace("\x7f", "\\u007f")
    return text.replace("##[", "##\\u005b") if runs_here() else text


def wait_for_reader(stream: TextIO) -> None:
    """Wait until `PIECE` bytes can be written. Raises `TimeoutError`: a run must not wait for its readers."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):  # not a file: no reader to wait for
        return
    poll = select.poll()  # waits: for a reader, ended by PATIENCE_SECONDS
    poll.register(descriptor, select.POLLOUT)
    if not poll.poll(PATIENCE_SECONDS * 1000):
        raise TimeoutError(errno.ETIMEDOUT, f"reader stalled for {PATIENCE_SECONDS:g} s")


def put_json(value: object) -> None:
    """Print ``value`` as indented JSON on stdout; ASCII, so that no terminal's encoding can reject it."""
    click.echo(_as_json(value, 2))


def put_json_line(value: object) -> None:
    """Print ``value`` as one line of JSON on stdout."""
    click.echo(_as_json(value))


def discard_output(stream: TextIO | None) -> None:
    """Discard what is written to a stream whose reader is gone, so that the final flush does not fail again."""
    with contextlib.suppress(OSError, AttributeError):  # the stream may be None or not a file
        descriptor = stream.fileno()  # type: ignore[union-attr]
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, descriptor)
        os.close(null_device)


class JsonLines:
    """Writes one event per line to stdout, in ASCII. A reader that leaves or stalls does not hold up the run."""

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
            discard_output(sys.stdout)
            if not isinstance(error, BrokenPipeError):
                say(f"warning: events no longer go to standard output: {error.strerror}; events.jsonl has all events")


def put_yaml(value: object) -> None:
    """Print ``value`` as YAML on stdout, in its own order; texts of several lines as they are, if they are harmless.

    Other texts are on one line in quotes: a line that starts within a text could be a command of a workflow's log.
    """
    import yaml  # here: few commands print YAML

    class Dumper(yaml.SafeDumper):
        pass

    def put_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        lines = text.splitlines()
        is_plain = len(lines) > 1 and text.isascii() and all(each.isprintable() for each in lines)
        style = "|" if is_plain and not any(each.lstrip().startswith(("::", "##[")) for each in lines) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    Dumper.add_representer(str, put_text)
    click.echo(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=False, width=math.inf), nl=False)


def put_table(
    columns: Sequence[Column | str], rows: Iterable[Sequence[object]], tones: Sequence[str] | None = None
) -> None:
    """Print ``rows`` below the headings of ``columns``: one line per row, except on a terminal that is too narrow.

    ``tones``: one for each row.
    """
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    named = [column if isinstance(column, Column) else Column(column) for column in columns]
    table, cells = shown_at(named, rows, width)
    for line in table.heading:
        put_line(line, **({"bold": True} if _draws(sys.stdout) else {}))
    in_colour = _draws(sys.stdout) and not os.environ.get("NO_COLOR")
    for row, tone in zip(cells, tones if tones and in_colour else [""] * len(cells), strict=True):
        for line in table.row(row, tone):
            click.echo(_safe(line))


def _draws(stream: TextIO) -> bool:
    """Whether it is a terminal with more than plain text."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
