"""The views of a run: events for machines, a live table, plain lines, or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from codex_multi_role.cli.output import JsonLines, say
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.plain import PlainLines
from codex_multi_role.run_folder import Record, event_of
from codex_multi_role.run_folder.events import ReviewAsked


class View(Protocol):
    """Receives the records of a run's events.

    ``paused`` keeps it from drawing while a person is asked on the terminal.
    """

    def __call__(self, record: Record) -> None: ...

    def paused(self) -> AbstractContextManager[None]: ...


@dataclass(frozen=True)
class Lines:
    """A view that only writes lines; a question fits between them."""

    take: Callable[[Record], None]

    def __call__(self, record: Record) -> None:
        self.take(record)

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()


def open_view(
    course: Course,
    *,
    as_json: bool,
    quiet: bool,
    plain: bool,
    asks: bool = False,
    over: Callable[[], bool] = lambda: False,
    write: Callable[[Record], None] | None = None,
) -> AbstractContextManager[View]:
    """Return a context that gives the view for the run's events; every view keeps ``course`` up to date.

    ``asks``: whether a person is asked on this terminal, so that the view leaves the questions to whoever asks them.
    ``over``: whether nobody works on the run any more, called for every drawing. ``write``: prints an event as JSON; by
    default, a reader that is gone does not hold up the run.
    """
    if as_json:
        return nullcontext(_json_lines(course, write or JsonLines()))
    if quiet:
        return nullcontext(Lines(lambda record: course.apply(event_of(record))))
    if not plain and on_terminal():
        from codex_multi_role.cli.live import live_table  # here: rich loads slowly, and only a terminal needs it

        return live_table(course, over, asks=asks)
    return nullcontext(_plain_lines(course, asks=asks))


def on_terminal() -> bool:
    """Whether stderr is a terminal that can redraw."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _json_lines(course: Course, write: Callable[[Record], None]) -> View:
    def take(record: Record) -> None:
        course.apply(event_of(record))
        write(record)

    return Lines(take)


def _plain_lines(course: Course, *, asks: bool) -> View:
    lines = PlainLines(course)

    def take(record: Record) -> None:
        event = event_of(record)
        told = lines.of(event)
        if not (asks and isinstance(event, ReviewAsked)):
            for line in told:
                say(line)

    return Lines(take)
