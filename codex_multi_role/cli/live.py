"""The live table of a run on a terminal, and its last state as a picture.

Drawn with rich from the run's `Course`: what it is for, how far it is, its steps and tasks as a tree, tests, questions.
"""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console, ConsoleOptions, Group, RenderableType  # noqa: TID251 - made to clean its texts
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from codex_multi_role.cli.tables import STYLES
from codex_multi_role.host.spelling import printable
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import (
    BAD,
    BUSY,
    IDLE,
    WARN,
    answer_commands,
    outcome_in_words,
    playbook_in_words,
    tone_of,
)
from codex_multi_role.presentation.pieces import RUNNING
from codex_multi_role.presentation.tree import GLYPHS, UNLIMITED, Row, Tree, cut, fit, glyphs_of
from codex_multi_role.presentation.wording import (
    BEFORE,
    amounts,
    duration,
    judged,
    one_line,
    seconds_between,
    verdict,
    verdict_before,
)
from codex_multi_role.run_folder import Record, RunFolder, event_of

LATEST_WARNINGS = 3
RULER = Console(file=io.StringIO())
SHORTEST_PAUSE_SECONDS = 0.25
SHARE_OF_A_CORE = 0.0125
"""Maximum share of a core for drawing: after a slow drawing, the next one comes later."""
PICTURE_WIDTH = 110
WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""The rule with which rich loads its font from the network; a picture of a run must load nothing."""


class DrawingConsole(Console):
    """A terminal that no text in a drawing controls."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text, keep="\n"), segment.style)


def render(
    course: Course,
    now: str,
    width: int,
    height: int = UNLIMITED,
    *,
    questions: bool = True,
    glyphs: dict[str, str] = GLYPHS,
) -> RenderableType:
    """Draw the whole view at ``now`` (an event's ``at``) for a terminal of ``width`` columns and ``height`` lines.

    ``questions``: whether to show them, because they are not asked elsewhere on this terminal.
    """
    above: list[RenderableType] = [_title(course, width)]
    if course.forked:
        above.append(Text(cut(one_line(course.forked, 500), width), style="dim"))
    if course.started.playbook:
        above.append(Text(playbook_in_words(course.started.playbook), style="yellow"))
    above += [_progress_line(course, now, width), *_budget_line(course, now, width), *_awaited(course, now, width)]
    asked = _questions(course, width) if questions else []
    below = [*_tests_line(course, width), *asked, *_warnings(course, width)]
    lines_left = height - len(RULER.render_lines(Group(*above, *below), RULER.options.update_width(width)))
    rows = fit(list(Tree(course, now, width).rows()), max(1, lines_left))
    return Group(*above, *(_drawn(row, width, glyphs) for row in rows), *below)


def _drawn(row: Row, width: int, glyphs: dict[str, str]) -> Text:
    glyph = (f"{glyphs.get(row.tone, ' ')} ", STYLES.get(row.tone, ""))
    words = cut(row.words, width - len(row.indent) - len(glyph[0]))
    return Text.assemble(row.indent, glyph, (words, STYLES[IDLE] if row.tone == IDLE else ""))


def _title(course: Course, width: int) -> Text:
    run = course.started
    if not run.run_id:
        return Text("starting", style="bold")
    words = cut(f"run {run.run_id}  flow {one_line(run.flow)}  {one_line(run.goal)}", width)
    text = Text(words)
    text.stylize("bold", 0, len(f"run {run.run_id}"))
    return text


def _progress_line(course: Course, now: str, width: int) -> Text:
    where = course.where
    if course.ended is not None:
        where = ", ".join(filter(None, (outcome_in_words(course.ended.outcome), where)))
    elapsed = f"{duration(seconds_between(course.started.at, now))} elapsed" if course.started.at else ""
    return Text(cut("  ".join(filter(None, (where, elapsed))), width))


def _budget_line(course: Course, now: str, width: int) -> list[Text]:
    left = [] if course.ended else amounts(course.left(now))
    return [Text(cut(f"left: {', '.join(left)}", width))] if left else []


def _awaited(course: Course, now: str, width: int) -> list[Text]:
    """What the first turn waits for."""
    before = course.baseline
    if before is None or before.status != RUNNING or course.ended is not None:
        return []
    last = f" ({duration(before.seconds)} last time)" if before.seconds else ""
    running = f"waiting for the {BEFORE}: {duration(seconds_between(before.at, now))}{last}; skip: --no-baseline"
    return [Text(cut(running, width), style=STYLES[BUSY])]


def _questions(course: Course, width: int) -> list[Text]:
    asked = [
        Text(cut(one_line(f"review {key}: {words}"), width), style=STYLES[WARN])
        for key, words in course.questions.items()
    ]
    if asked:
        folder = RunFolder(course.folder or Path(course.started.folder))
        accept, reject = answer_commands(folder, list(course.questions))
        asked += [Text(f"  answer: {accept}"), Text(f"  reject: {reject}")]
    return asked


def _warnings(course: Course, width: int) -> list[Text]:
    return [
        Text(cut(f"warning: {one_line(words)}", width), style=STYLES[WARN])
        for words in course.warnings[-LATEST_WARNINGS:]
    ]


def _tests_line(course: Course, width: int) -> list[Text]:
    told = []
    if (tests := course.latest_tests) is not None:
        told.append(Text(cut(f"tests {tests.number:03d}: {verdict(tests.told)}", width)))
        told[0].stylize(STYLES[tone_of(judged(tests.told), BAD)], len("tests 000: "))
    elif course.baseline is not None and course.baseline.status != RUNNING:
        told.append(Text(cut(f"{BEFORE}: {verdict_before(vars(course.baseline))}", width)))
    return [*told, Text(cut(f"files: {course.files.in_words}", width))]


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
