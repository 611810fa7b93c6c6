"""The live table of a run on a terminal, and its last state as a picture."""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from rich.console import Console, RenderableType  # noqa: TID251 - draws to a text
from rich.live import Live

from codex_multi_role.cli.drawing import DrawingConsole, render
from codex_multi_role.host.spelling import printable
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.tree import glyphs_of
from codex_multi_role.run_folder import Record, event_of

SHORTEST_PAUSE_SECONDS = 0.25
SHARE_OF_A_CORE = 0.0125
"""Maximum share of a core for drawing: after a slow drawing, the next one comes later."""
PICTURE_WIDTH = 110
WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""The rule with which rich loads its font from the network; a picture of a run must load nothing."""


class LiveTable:
    """Draws ``course`` on stderr, a terminal, while events arrive; the last state stays in the scrollback.

    Events arrive on the run's threads; a separate thread draws. The clock stops once ``over`` returns True, which
    means that nobody works on the run any more. ``asks``: whether the questions are asked below the table.
    """

    def __init__(self, course: Course, over: Callable[[], bool], *, asks: bool = False) -> None:
        self._course = course
        self._over = over
        self._asks = asks
        self._console = DrawingConsole(stderr=True)
        self._drawing = threading.Lock()  # waits: for one event or one drawing in memory
        self._switching = threading.Lock()  # waits: for one drawing on the terminal
        self._live: Live | None = None
        self._stopped = threading.Event()
        self._paused = False

    def __call__(self, record: Record) -> None:
        with self._drawing:
            self._course.apply(event_of(record))
        self._start()  # not earlier: a run that fails at once should leave no empty table behind

    def stop(self) -> None:
        with self._switching, suppress(OSError):  # losing the terminal must not end the run
            if self._live is not None:
                live, self._live = self._live, None
                self._stopped.set()
                live.stop()  # draws once more, without the questions: the summary below has them

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question; a new table follows below it."""
        self._paused = True
        self.stop()
        try:
            yield
        finally:
            self._paused = False
            self._start()

    def _start(self) -> None:
        with self._switching, suppress(OSError):
            if self._live is None and not self._paused:
                # A new one each time: the old one would draw over the lines below its last state.
                self._live = Live(
                    console=self._console, get_renderable=self._view, auto_refresh=False, redirect_stdout=False
                )
                self._live.start(refresh=True)
                self._stopped = threading.Event()
                threading.Thread(
                    target=_redraw, args=(self._live, self._stopped), name="live-view", daemon=True
                ).start()

    def _view(self) -> RenderableType:
        with self._drawing:
            course = self._course
            now = course.at if course.ended or self._over() else datetime.now(UTC).isoformat()
            questions = self._live is not None and not self._asks
            size, glyphs = self._console.size, glyphs_of(self._console.encoding)
            return render(course, now, size.width, size.height, questions=questions, glyphs=glyphs)


def _redraw(live: Live, stopped: threading.Event) -> None:
    pause = SHORTEST_PAUSE_SECONDS
    while not stopped.wait(pause):  # waits: between two drawings, ended by `stopped`
        began = time.thread_time()
        with suppress(OSError):
            live.refresh()
        pause = max(SHORTEST_PAUSE_SECONDS, (time.thread_time() - began) / SHARE_OF_A_CORE)


@contextmanager
def live_table(course: Course, over: Callable[[], bool], *, asks: bool) -> Iterator[LiveTable]:
    """Yield a `LiveTable` and stop it at the end."""
    table = LiveTable(course, over, asks=asks)
    try:
        yield table
    finally:
        table.stop()


def picture(course: Course) -> str:
    """Draw the view after the last event of ``course`` as SVG."""
    console = Console(
        record=True, width=PICTURE_WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(render(course, course.at, PICTURE_WIDTH))
    drawn = console.export_svg(title=f"codex-multi-role: run {course.started.run_id}")
    return printable(WEB_FONT.sub("", drawn), keep="\n")
