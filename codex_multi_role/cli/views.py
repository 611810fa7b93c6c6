"""Which way a run is shown: events for machines, a live table, plain lines, or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from codex_multi_role.cli.plain import PlainLines
from codex_multi_role.cli.progress import Progress, Record
from codex_multi_role.cli.streams import JsonLines, say

Taker = Callable[[Record], None]


def open_view(progress: Progress, *, as_json: bool, quiet: bool) -> AbstractContextManager[Taker]:
    """A context that gives what takes the run's events; every view keeps ``progress`` up to date."""
    if as_json:
        return _json_lines(progress)
    if quiet:
        return _nothing(progress)
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from codex_multi_role.cli.live import live_table  # here: rich costs time, and only a terminal needs it

        return live_table(progress)
    return _plain_lines(progress)


@contextmanager
def _json_lines(progress: Progress) -> Iterator[Taker]:
    write = JsonLines()

    def take(record: Record) -> None:
        progress.apply(record)
        write(record)

    yield take


@contextmanager
def _nothing(progress: Progress) -> Iterator[Taker]:
    yield progress.apply


@contextmanager
def _plain_lines(progress: Progress) -> Iterator[Taker]:
    lines = PlainLines(progress)

    def take(record: Record) -> None:
        for line in lines.of(record):
            say(line)

    yield take
