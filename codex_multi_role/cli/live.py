"""The live table of a run on a terminal, and its last state as a picture.

Drawn with rich from the run's `Course`: what it is for, how far it is, its steps and tasks as a tree, tests, questions.
"""

from __future__ import annotations

import io
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click
from rich.cells import chop_cells
from rich.console import (
    Console,  # noqa: TID251 - made to clean its texts
    ConsoleOptions,
    Group,
    RenderableType,
    RenderResult,
)
from rich.live import Live
from rich.live_render import LiveRender
from rich.segment import ControlType, Segment
from rich.style import Style
from rich.text import Text

from codex_multi_role.cli.keys import TERMINAL, Key, Keys, is_in_foreground
from codex_multi_role.cli.output import page_patch
from codex_multi_role.cli.run_additions import RemoteRun, request_pause
from codex_multi_role.cli.tables import STYLES
from codex_multi_role.cli.terminal_questions import is_at_terminal
from codex_multi_role.host.spelling import printable
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import (
    BAD,
    BUSY,
    GLYPHS,
    IDLE,
    WARN,
    answer_commands,
    glyphs_of,
    outcome_in_words,
    playbook_in_words,
    tone_of,
)
from codex_multi_role.presentation.pieces import RUNNING
from codex_multi_role.presentation.plain import role_lines
from codex_multi_role.presentation.recorded import PAGES, changes_of, patch_of
from codex_multi_role.presentation.tree import UNLIMITED, Row, Tree, fit
from codex_multi_role.presentation.wording import (
    BEFORE,
    amounts,
    clock,
    columns_of,
    cut,
    duration,
    judged,
    one_line,
    plural,
    seconds_between,
    verdict,
    verdict_before,
)
from codex_multi_role.run_folder import Record, event_of

CONTINUES = [(ControlType.CURSOR_FORWARD, 0)]
"""Marks a chunk of a line that the next chunk continues; rich neither measures nor cuts control segments."""
STDERR = 2
LATEST_WARNINGS = 3
FOLLOWED_LINES = 6
MIN_TREE_ROWS = 5
"""The lines below the tree, then those above it but the first, are left out before it has fewer rows."""
RULER = Console(file=io.StringIO())
SHORTEST_PAUSE_SECONDS = 0.25
SHARE_OF_A_CORE = 0.0125
"""Maximum share of a core for drawing: after a slow drawing, the next one comes later."""
PICTURE_WIDTH = 110
WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""The rule with which rich loads its font from the network; a picture of a run must load nothing."""


class DrawingConsole(Console):
    """A terminal that no text in a drawing controls, and that gets only what its encoding has."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        continues = False
        for text, style, control in super().render(renderable, options):
            if not (continues and text == "\n" and isinstance(renderable, LiveRender)):
                shown = text if control else printable(text, keep="\n")
                yield Segment(shown.encode(self.encoding, "replace").decode(self.encoding), style, control)
            continues = control is CONTINUES


@dataclass
class UnbrokenText:
    """A text that the terminal itself continues on the next line, so that it is copied as one line.

    Its height is counted as that of several lines. An address becomes a link.
    """

    text: str

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        link = Style(link=self.text if self.text.startswith("file://") else None)
        *full, last = chop_cells(printable(self.text), options.max_width)
        for chunk in full:
            yield Segment(chunk, link, CONTINUES)
            yield Segment.line()
        yield Segment(last, link)
        yield Segment.line()


def render(
    course: Course,
    now: str,
    width: int,
    height: int = UNLIMITED,
    *,
    questions: bool = True,
    figures: bool = True,
    glyphs: dict[str, str] = GLYPHS,
    below: Sequence[RenderableType] = (),
) -> RenderableType:
    """Draw the whole view at ``now`` (an event's ``at``) for a terminal of ``width`` columns and ``height`` lines.

    ``questions``: whether to show them, first, because they are not asked elsewhere on this terminal. ``figures``:
    whether to show the tests and files, because no summary follows. ``below``: its end.
    """
    first, *above = _above(course, now, width)
    told = [*_status_lines(course)] if figures else []
    asked = [*_question_lines(course, width)] if questions else []
    while (left := height - _lines_of(width, first, *above, *asked, *told, *below)) < MIN_TREE_ROWS and (told or above):
        (told or above).pop()
    rows = fit(list(Tree(course, now, width).rows()), max(1, left))
    return Group(first, *above, *asked, *(_drawn(row, width, glyphs) for row in rows), *told, *below)


def _lines_of(width: int, *parts: RenderableType) -> int:
    return len(RULER.render_lines(Group(*parts), RULER.options.update_width(width)))


def _drawn(row: Row, width: int, glyphs: dict[str, str]) -> Text:
    glyph = (f"{glyphs.get(row.tone, ' ')} ", STYLES.get(row.tone, ""))
    words = row.fitted(width - len(row.indent) - len(glyph[0]))
    return Text.assemble(row.indent, glyph, (words, STYLES[IDLE] if row.tone == IDLE else ""))


def _above(course: Course, now: str, width: int) -> Iterator[Text]:
    """The lines above the tree: what it is for, how far it is, what the first turn waits for."""
    run, before = course.started, course.baseline
    names = f"run {run.run_id}  flow {one_line(run.flow)}"
    yield from _side_by_side(one_line(run.goal), names, width, "bold") if run.run_id else [Text("starting", "bold")]
    if course.forked:
        yield Text(one_line(course.forked, 2 * width), STYLES[IDLE])
    if run.playbook:
        yield Text(playbook_in_words(run.playbook), STYLES[WARN])
    ended = outcome_in_words(course.ended.outcome) if course.ended is not None else ""
    elapsed = f"{duration(seconds_between(run.at, now))} elapsed" if run.at else ""
    where = "  ".join(filter(None, (", ".join(filter(None, (ended, course.where))), elapsed)))
    left = amounts(course.left(now)) if course.ended is None else []
    yield from _side_by_side(where, f"left: {', '.join(left)}" if left else "", width)
    if course.ended is None and before is not None and before.status == RUNNING:
        last = f" ({duration(before.seconds)} last time)" if before.seconds else ""
        running = f"{duration(seconds_between(before.at, now))}{last}; skip: --no-baseline"
        yield Text(f"waiting for the {BEFORE}: {running}", STYLES[BUSY])


def _side_by_side(first: str, second: str, width: int, style: str = "") -> list[Text]:
    """Both on one line if they fit, otherwise on two."""
    fits = columns_of(f"{first}  {second}") <= width
    lines = [Text.assemble((first, style), f"  {second}")] if fits else [Text(cut(first, width), style), Text(second)]
    return [line for line in lines if line.plain.strip()]


def _status_lines(course: Course) -> Iterator[Text]:
    """The lines below the tree, the most important first."""
    if (tests := course.latest_tests) is not None:
        yield Text(f"tests {tests.number:03d}: {verdict(tests.told)}", STYLES[tone_of(judged(tests.told), BAD)])
    elif course.baseline is not None and course.baseline.status != RUNNING:
        yield Text(f"{BEFORE}: {verdict_before(vars(course.baseline))}")
    for words in course.warnings[-LATEST_WARNINGS:]:
        yield Text(f"warning: {one_line(words)}", STYLES[WARN])
    if course.files.written or course.files.skipped:
        yield Text(f"files in answers: {course.files.in_words}")


def _question_lines(course: Course, width: int) -> Iterator[RenderableType]:
    """The oldest question with its commands, which are never cut, and how many others there are."""
    keys = list(course.questions)
    for key in keys[:1]:
        yield Text(one_line(f"review {key}: {course.questions[key]}"), STYLES[WARN])
        for what, command in zip(("answer", "reject"), answer_commands(course.run_folder, keys), strict=True):
            fits = columns_of(line := f"  {what}: {command}") <= width
            yield Text(line) if fits else UnbrokenText(command)
    if keys[1:]:
        yield Text(f"and {plural(len(keys) - 1, 'more question')}", STYLES[WARN])


class Drawing:
    """Draws on stderr, a terminal, again and again; the last state stays in the scrollback.

    A thread of its own draws what ``draw`` returns, which is called with whether it will be drawn again. ``keys`` may
    be pressed meanwhile, if a person is at the terminal.
    """

    def __init__(self, draw: Callable[[bool], RenderableType], keys: Mapping[str, Key]) -> None:
        self._draw = draw
        self.console = DrawingConsole(stderr=True)
        self._switching = threading.Lock()  # waits: for one drawing on the terminal
        self._live: Live | None = None
        self._stopped = threading.Event()
        self._is_paused = self._is_begun = False
        self._told = ""
        has_keys = is_at_terminal() and threading.current_thread() is threading.main_thread()
        self._keys = Keys(self, keys, sys.stdin.fileno()) if has_keys else None

    @property
    def is_drawn(self) -> bool:
        return self._live is not None

    def tell(self, text: str) -> None:
        """Say it below what is drawn, until the next key."""
        self._told = text

    def below(self) -> list[RenderableType]:
        """The latest messages and, while keys are read, the list of keys."""
        line = self._keys.line if self._keys is not None else ""
        lines = self._told.splitlines()
        told = [UnbrokenText(each) if each.startswith("file://") else Text(each) for each in lines]
        return [*told, Text(cut(line, self.console.size.width), style=STYLES[IDLE])] if line else []

    def start(self, *, again: bool = False) -> None:
        """Draw from now on, if this process is in the foreground; ``again``: only if it was started before."""
        with self._switching, suppress(OSError):
            self._is_begun = self._is_begun or not again
            if self._live is None and self._is_begun and not self._is_paused and is_in_foreground(STDERR):
                options: dict[str, Any] = {"auto_refresh": False, "redirect_stdout": False}
                # A new one each time: the old one would draw over the lines below its last state.
                self._live = Live(console=self.console, get_renderable=lambda: self._draw(self.is_drawn), **options)
                self._live.start(refresh=True)
                self._stopped = threading.Event()
                parts = (self._live, self._stopped)
                threading.Thread(target=_redraw, args=parts, name="live-view", daemon=True).start()

    def stop(self) -> None:
        with self._switching, suppress(OSError):  # losing the terminal must not end the run
            if self._live is not None:
                live, self._live = self._live, None
                self._stopped.set()
                self.console.quiet = not is_in_foreground(STDERR)  # as after `kill -STOP`: the terminal is the shell's
                live.stop()  # draws once more, without the questions: the summary below has them
                self.console.quiet = False
        if self._keys is not None:
            self._keys.release()

    def is_closed(self) -> bool:
        return self._keys is not None and self._keys.closed.is_set()

    def close(self) -> None:
        if self._keys is not None:
            self._keys.close()
        self.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question; a new drawing follows below it."""
        self._is_paused = True
        try:
            self.stop()
            yield
        finally:
            self._is_paused = False
            self.start()


class LiveTable(Drawing):
    """Draws ``course`` while its events arrive, on the run's threads.

    The clock stops once ``over`` returns True, which means that nobody works on the run any more. ``asks``: whether the
    questions are asked below the table. ``remote``: the run, if it is elsewhere.
    """

    def __init__(
        self, course: Course, over: Callable[[], bool], *, asks: bool = False, remote: RemoteRun | None = None
    ) -> None:
        self._course, self._over, self._asks, self._remote = course, over, asks, remote
        self._drawing = threading.Lock()  # waits: for one event or one drawing in memory
        self._followed = ""
        self._said: dict[str, deque[str]] = {}
        keys: dict[str, Key] = {
            "d": ("changes so far, in the pager", self._page_changes),
            "f": ("follow a role: the next one that works, and none after the last one", self._follow_next),
            "p": ("pause: the run parks once the turns at work have ended", self._pause),
            "o": ("open the report as of now, or print its address", self._open_report),
        }
        super().__init__(self._view_of_run, keys)

    def __call__(self, record: Record) -> None:
        event = event_of(record)
        with self._drawing:
            self._course.apply(event)
            if lines := role_lines(event):
                said = self._said.setdefault(str(record.get("role")), deque(maxlen=FOLLOWED_LINES))
                said.extend(f"{clock(event.at)}  {line}" for line in lines)
        self.start()  # not earlier: a run that fails at once should leave no empty table behind

    def _view_of_run(self, is_live: bool) -> RenderableType:
        with self._drawing:
            course = self._course
            now = course.at if course.ended or self._over() else datetime.now(UTC).isoformat()
            size, glyphs = self.console.size, glyphs_of(self.console.encoding)
            below = [*self._followed_lines(size.width), *self.below()] if is_live else []
            questions = is_live and not self._asks
            shown = {"questions": questions, "figures": is_live}
            return render(course, now, size.width, size.height, **shown, glyphs=glyphs, below=below)

    def _followed_lines(self, width: int) -> list[Text]:
        latest = list(self._said.get(self._followed, ()))[-max(1, self.console.size.height // 4) :]
        lines = [f"following {self._followed}:", *latest] if self._followed else []
        return [Text(cut(line, width), style=STYLES[BUSY]) for line in lines]

    def _page_changes(self) -> None:
        folder = self._course.run_folder
        patch = patch_of(folder, changes_of(folder))
        if not patch:
            self.tell("no turn has changed a file so far")
            return
        with TERMINAL, self.paused():
            page_patch(patch, self.is_closed)

    def _follow_next(self) -> None:
        working = [role.name for role in self._course.roles.values() if role.working_since]
        names = ["", *(working or self._course.roles)]
        at = names.index(self._followed) if self._followed in names else 0
        self._followed = names[(at + 1) % len(names)]

    def _pause(self) -> None:
        self.tell(request_pause(self._remote or self._course.run_folder))

    def _open_report(self) -> None:
        for page in PAGES.that_load():
            address = page.write(self._course.run_folder).absolute().as_uri()
            self.tell(address)
            if sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
                click.launch(address)


def _redraw(live: Live, stopped: threading.Event) -> None:
    pause = SHORTEST_PAUSE_SECONDS
    while not stopped.wait(pause):  # waits: between two drawings, ended by `stopped`
        began = time.thread_time()
        with suppress(OSError):
            if is_in_foreground(STDERR):
                live.refresh()
        pause = max(SHORTEST_PAUSE_SECONDS, (time.thread_time() - began) / SHARE_OF_A_CORE)


def picture(course: Course) -> str:
    """Draw the view after the last event of ``course`` as SVG."""
    console = Console(
        record=True, width=PICTURE_WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(render(course, course.at, PICTURE_WIDTH))
    drawn = console.export_svg(title=f"codex-multi-role: run {course.started.run_id}")
    return printable(WEB_FONT.sub("", drawn), keep="\n")
