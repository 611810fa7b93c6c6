"""The views of a batch: a live table, plain lines, events for machines, or nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from codex_multi_role.cli.foreground import on_terminal
from codex_multi_role.cli.live import Drawing
from codex_multi_role.cli.output import JsonLines, say
from codex_multi_role.cli.tables import STYLES, Column, draw_last
from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.machines.batches.batch_progress import BatchProgress, RunningGoal
from codex_multi_role.extensions.machines.batches.goal_results import NOT_STARTED, GoalResult
from codex_multi_role.extensions.machines.batches.planned_runs import PlannedRun
from codex_multi_role.presentation.outcome import ASKS, BAD, BUSY, IDLE, glyphs_of, outcome_in_words, run_status
from codex_multi_role.presentation.wording import compact, cost_in_words, duration, one_line, plural, price, wrapped
from codex_multi_role.run_folder import RunEvent
from codex_multi_role.run_folder.events import now

if TYPE_CHECKING:
    from rich.console import RenderableType

LINES_AROUND = 3
COLUMNS = (
    *(Column("goal", text=8), Column("", text=16, from_width=120), Column("state", text=12)),
    *(Column("now", text=20, from_width=60), Column("turns", number=True, from_width=90)),
    *(Column("tokens", number=True, from_width=78), Column("cost", number=True, from_width=100)),
    Column("time", number=True),
)


class QuietBatch:
    """Shows nothing, and counts for those that show something."""

    def __init__(self, progress: BatchProgress) -> None:
        self._progress = progress
        self._counting = threading.Lock()  # waits: for one change or one drawing in memory

    def started(self, run: PlannedRun) -> None:
        with self._counting:
            self._progress.started(run)

    def heard(self, goal_id: str, event: RunEvent) -> None:
        with self._counting:
            self._progress.heard(goal_id, event)

    def ended(self, result: GoalResult) -> None:
        with self._counting:
            self._progress.finish(result)

    def stopping(self) -> None:
        self._progress.stopping = True


class BatchLines(QuietBatch):
    """A line when a goal starts and when it ends."""

    def started(self, run: PlannedRun) -> None:
        super().started(run)
        say(f"started  {run.id}: {one_line(run.options.goal, 80) or run.options.flow} (run {run.run_id})")

    def ended(self, result: GoalResult) -> None:
        super().ended(result)
        progress = self._progress
        counts = f"{progress.ended} ended, {len(progress.running)} running, {progress.waiting} waiting"
        say(f"ended    {result.id}: {_ending(result)} ({counts})")

    def stopping(self) -> None:
        super().stopping()
        if running := len(self._progress.running):
            say(f"stopping {plural(running, 'run')}, which can be resumed; a second Ctrl-C stops them faster")


class BatchEvents(QuietBatch):
    """A line of JSON on standard output when a goal starts and when it ends."""

    def __init__(self, progress: BatchProgress) -> None:
        super().__init__(progress)
        self._put = JsonLines()

    def started(self, run: PlannedRun) -> None:
        super().started(run)
        self._put({"type": "goal_started", "at": now(), "id": run.id, "line": run.goal.number, "run_id": run.run_id})

    def ended(self, result: GoalResult) -> None:
        super().ended(result)
        self._put({"type": "goal_ended", "at": now(), **asdict(result)})


class BatchTable(QuietBatch):
    """Redraws a table on stderr, a terminal: the running goals, the last that ended, and counts."""

    def __init__(self, progress: BatchProgress) -> None:
        super().__init__(progress)
        self.drawing = Drawing(self._draw, {})

    def _draw(self, _: bool) -> RenderableType:
        size = self.drawing.console.size
        with self._counting:
            return drawn(self._progress, size.width, size.height, now(), glyphs_of(self.drawing.console.encoding))


@contextmanager
def batch_view(progress: BatchProgress, *, as_json: bool, quiet: bool, plain: bool) -> Iterator[QuietBatch]:
    """The view for these settings; a table stays as it was at the end."""
    if as_json:
        yield BatchEvents(progress)
    elif quiet:
        yield QuietBatch(progress)
    elif plain or not on_terminal():
        yield BatchLines(progress)
    else:
        table = BatchTable(progress)
        with closing(table.drawing):
            table.drawing.start()
            yield table


def drawn(progress: BatchProgress, width: int, height: int, at: str, glyphs: Mapping[str, str]) -> RenderableType:
    """The whole view for a terminal of this size, at the time ``at`` of an event."""
    rows = [(_ended_row(result, glyphs), STYLES[BAD if result.has_failed else IDLE]) for result in progress.last]
    rows += [(_running_row(goal, at, glyphs), "") for goal in progress.running.values()]
    counted = len(wrapped(_counts(progress, len(rows)), width))
    lines = draw_last(COLUMNS, rows, width, max(1, height - LINES_AROUND - counted)) if rows else []
    return Group(*lines, *map(Text, wrapped(_counts(progress, len(rows) - len(lines[1:])), width)))


def _counts(progress: BatchProgress, hidden: int) -> str:
    failed = progress.ended - progress.reached
    parts = [f"{progress.reached} reached", f"{failed} not reached", f"{len(progress.running)} running"]
    parts += [f"{progress.waiting} waiting", f"{compact(progress.tokens)} tokens"]
    parts += [cost_in_words(progress.cost)]
    parts += [f"{hidden} not shown"] if hidden else []
    return ", ".join([*parts, "stopping (Ctrl-C: faster)"] if progress.stopping and progress.running else parts)


def _running_row(goal: RunningGoal, at: str, glyphs: Mapping[str, str]) -> Sequence[object]:
    course = goal.course
    asked = [f"asks {key}" for key in course.questions]
    working = [f"{role.name}: {role.doing}" for role in course.roles.values() if role.working_since]
    step = f"[{course.current_step}] " if course.current_step else ""
    state = course.where or ("running" if course.work.turns else "starting")
    seconds = duration(course.worked_until(at)) if course.started.at else ""
    doing = step + "; ".join([*asked, *working])
    text = goal.run.options.goal or goal.run.options.flow
    used = (course.work.turns, compact(course.used.tokens), price(course.used.cost))
    glyph = glyphs[ASKS if course.questions else BUSY]
    return (goal.run.id, text, f"{glyph} {state}", doing, *used, seconds)


def _ended_row(result: GoalResult, glyphs: Mapping[str, str]) -> Sequence[object]:
    used = result.used
    seconds = duration(used["seconds"]) if result.totals else ""
    figures = (f"{used['turns']:.0f}", compact(used["tokens"]), price(result.cost))
    state = f"{glyphs[run_status(result.status).tone]} {_outcome(result)}"
    return (result.id, "", state, result.reason, *figures, seconds)


def _outcome(result: GoalResult) -> str:
    if result.status == NOT_STARTED:
        return "Not started"
    return outcome_in_words(result.outcome or result.status)


def _ending(result: GoalResult) -> str:
    reason = f": {one_line(result.reason)}" if result.reason and result.code != ExitCode.GOAL_REACHED else ""
    return f"{_outcome(result)}{reason}"
