"""The views of a batch: a live table, plain lines, events for machines, or nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.text import Text

from codex_multi_role.cli.foreground import on_terminal
from codex_multi_role.cli.live import DrawingConsole
from codex_multi_role.cli.output import JsonLines, say
from codex_multi_role.cli.tables import Column, draw_last
from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.machines.batches.batch_progress import BatchProgress, RunningGoal
from codex_multi_role.extensions.machines.batches.goal_results import NOT_STARTED, GoalResult
from codex_multi_role.extensions.machines.batches.planned_runs import PlannedRun
from codex_multi_role.presentation.outcome import outcome_in_words
from codex_multi_role.presentation.wording import compact, cost_in_words, duration, one_line, plural, price
from codex_multi_role.run_folder import RunEvent
from codex_multi_role.run_folder.events import now

if TYPE_CHECKING:
    from rich.console import Console, RenderableType  # noqa: TID251 - a type

SHORTEST_PAUSE_SECONDS = 0.25
SHARE_OF_A_CORE = 0.0125
LINES_AROUND = 4
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

    def started(self, run: PlannedRun) -> None:
        self._progress.started(run)

    def heard(self, goal_id: str, event: RunEvent) -> None:
        self._progress.heard(goal_id, event)

    def ended(self, result: GoalResult) -> None:
        self._progress.finish(result)

    def stopping(self) -> None:
        self._progress.stopping = True

    def look(self) -> None:
        """Called again and again."""


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

    def __init__(self, progress: BatchProgress, live: Live, console: Console) -> None:
        super().__init__(progress)
        self._live = live
        self._console = console
        self._not_before = 0.0

    def look(self) -> None:
        if time.monotonic() >= self._not_before:
            self.draw()

    def draw(self) -> None:
        """Draw now; after a slow drawing, the next one comes later."""
        began = time.thread_time()
        with suppress(OSError):  # losing the terminal must not end the batch
            self._live.update(drawn(self._progress, self._console.width, self._console.height, now()), refresh=True)
        took = time.thread_time() - began
        self._not_before = time.monotonic() + max(SHORTEST_PAUSE_SECONDS, took / SHARE_OF_A_CORE)


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
        console = DrawingConsole(stderr=True)
        with Live(console=console, auto_refresh=False, redirect_stdout=False) as live:
            table = BatchTable(progress, live, console)
            try:
                yield table
            finally:
                table.draw()


def drawn(progress: BatchProgress, width: int, height: int, at: str) -> RenderableType:
    """The whole view for a terminal of this size, at the time ``at`` of an event."""
    rows = [(_ended_row(result), "dim") for result in progress.last]
    rows += [(_running_row(goal, at), "") for goal in progress.running.values()]
    lines = draw_last(COLUMNS, rows, width, max(1, height - LINES_AROUND)) if rows else []
    hidden = len(rows) - len(lines[1:])
    return Group(*lines, Text(_counts(progress, hidden), no_wrap=True, overflow="ellipsis"))


def _counts(progress: BatchProgress, hidden: int) -> str:
    failed = progress.ended - progress.reached
    parts = [f"{progress.reached} reached", f"{failed} not reached", f"{len(progress.running)} running"]
    parts += [f"{progress.waiting} waiting", f"{compact(progress.tokens)} tokens"]
    parts += [cost_in_words(progress.cost)]
    parts += [f"{hidden} not shown"] if hidden else []
    return ", ".join([*parts, "stopping (Ctrl-C: faster)"] if progress.stopping and progress.running else parts)


def _running_row(goal: RunningGoal, at: str) -> Sequence[object]:
    course = goal.course
    asked = [f"asks {key}" for key in course.questions]
    working = [f"{role.name}: {role.doing}" for role in course.roles.values() if role.working_since]
    step = f"[{course.current_step}] " if course.current_step else ""
    state = course.where or ("running" if course.work.turns else "starting")
    seconds = duration(course.worked_until(at)) if course.started.at else ""
    doing = step + "; ".join([*asked, *working])
    text = goal.run.options.goal or goal.run.options.flow
    used = (course.work.turns, compact(course.used.tokens), price(course.used.cost))
    return (goal.run.id, text, state, doing, *used, seconds)


def _ended_row(result: GoalResult) -> Sequence[object]:
    used = result.used
    seconds = duration(used["seconds"]) if result.totals else ""
    figures = (f"{used['turns']:.0f}", compact(used["tokens"]), price(result.cost))
    return (result.id, "", _outcome(result), result.reason, *figures, seconds)


def _outcome(result: GoalResult) -> str:
    if result.status == NOT_STARTED:
        return "Not started"
    return outcome_in_words(result.outcome or result.status)


def _ending(result: GoalResult) -> str:
    reason = f": {one_line(result.reason)}" if result.reason and result.code != ExitCode.GOAL_REACHED else ""
    return f"{_outcome(result)}{reason}"
