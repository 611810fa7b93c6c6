"""``watch``: show a run as its own terminal does, or all runs at once, from another terminal."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codex_multi_role.cli.completion import run_ids
from codex_multi_role.cli.foreground import on_terminal, open_view, say_end
from codex_multi_role.cli.options import JSON, PLAIN, QUIET, RUNS_DIR, command
from codex_multi_role.cli.output import put_json_line, put_line, say
from codex_multi_role.cli.run_additions import (
    RemoteRun,
    RemoteRuns,
    all_records,
    find_either,
    give_answer,
    open_remote,
    told,
)
from codex_multi_role.cli.tables import Column, draw_last
from codex_multi_role.cli.terminal_questions import TerminalAsker, is_at_terminal
from codex_multi_role.errors import ExitCode, RunStatus, UsageError
from codex_multi_role.presentation.course import Course, inherited_by
from codex_multi_role.presentation.event_tail import RunNow, RunsReader, follow
from codex_multi_role.presentation.outcome import outcome_in_words, run_status
from codex_multi_role.presentation.recorded import Records, open_questions
from codex_multi_role.presentation.wording import compact, one_line, price
from codex_multi_role.run_folder import Questions, RunFolder
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.folder import LATEST
from codex_multi_role.run_folder.owner import is_alive
from codex_multi_role.run_options import recorded_report

if TYPE_CHECKING:
    from rich.console import RenderableType

LOOK_SECONDS = 0.5
LINES_AROUND = 3
COLUMNS = (
    *(Column("run"), Column("flow", from_width=120), Column("status"), Column("where", text=16, from_width=78)),
    *(Column("turns", number=True, from_width=120), Column("tokens", number=True, from_width=86)),
    *(Column("cost", number=True, from_width=110), Column("now", text=20, from_width=60)),
)


@command(RUNS_DIR, JSON, PLAIN, QUIET, finds=True)
@click.argument("run", metavar="[RUN]", required=False, shell_complete=run_ids)
@click.option(
    "--all", "every", is_flag=True, help="Show all runs: on a terminal until you quit, otherwise until none is running."
)
@click.pass_context
def watch(ctx: click.Context, /, run: str | None, every: bool, **values: Any) -> None:  # noqa: ANN401 - the settings above
    """Show RUN (default: the latest run) as its own terminal does, from start to end.

    Also works for runs that have ended. Exits when the run ends, with the exit code of the run. Ctrl-C stops watching,
    not the run. A run elsewhere that nobody works on yet is awaited. With --all, a person at the terminal answers the
    questions of all runs.

    \b
    Examples:
      codex-multi-role watch
      codex-multi-role watch --json | grep turn_ended
      codex-multi-role watch --all
    """
    if every:
        if run is not None:
            raise UsageError("RUN and --all exclude each other", "Use one of them.")
        if values["json"] or values["quiet"]:
            raise UsageError("--all excludes --json and --quiet", "`codex-multi-role runs --json` lists all runs.")
        watch_all(values["runs_dir"], open_remote(), plain=values["plain"])
        return
    found = find_either(run or LATEST, values["runs_dir"])
    folder, course = view_run(ctx, found)
    _close(ctx, folder, course)


def view_run(ctx: click.Context, found: RunFolder | RemoteRun) -> tuple[RunFolder, Course]:
    """Show the run until it ends; ``ctx`` has the settings ``json``, ``quiet`` and ``plain``."""
    if isinstance(found, RunFolder):
        folder, records = found, follow(found)
    else:
        await_start(found, quiet=ctx.params["json"] or ctx.params["quiet"])
        folder, records = found.folder(), found.follow()
    course = Course(folder.path)
    course.inherit(inherited_by(folder))
    view_options = {"as_json": ctx.params["json"], "quiet": ctx.params["quiet"], "plain": ctx.params["plain"]}
    over, remote = lambda: not is_alive(folder), None if isinstance(found, RunFolder) else found
    with open_view(course, **view_options, over=over, write=put_json_line, remote=remote) as view:
        for record in records:
            view(record)
    return folder, course


def await_start(found: RemoteRun, *, quiet: bool) -> None:
    """Wait as long as nobody works on the run, and print why whenever that changes."""
    printed = ""
    while words := told(found.folder().record()).waits:  # waits: for whoever takes the run, or for Ctrl-C
        if words != printed and not quiet:
            say(words)
        printed = words
        time.sleep(LOOK_SECONDS)


def _close(ctx: click.Context, folder: RunFolder, course: Course) -> None:
    """Close as the run itself does; a run that was killed left no summary."""
    record = folder.record()
    if record.get("exit_code") is None:
        if not ctx.params["json"]:
            again = folder.command("resume")
            say(f"{run_status(RunStatus.KILLED).news} It is not running, and its end was not recorded.")
            say(f"  next     {again}")
        ctx.exit(ExitCode.FAILED)
    say_end(ctx, recorded_report(folder.path, record), course)
    ctx.exit(record["exit_code"])


def watch_all(runs_dir: Path, remote: RemoteRuns | None, *, plain: bool) -> None:
    """Show the runs below ``runs_dir``, and those elsewhere, until no live one is left, or until a person quits."""
    here = Records(runs_dir)
    reader = RunsReader(lambda: all_records(here, remote))
    if not reader.look():
        say(f"There are no runs in {runs_dir}.")
    elif not plain and on_terminal():
        AllRuns(reader, lambda run: remote.find(run.run_id, runs_dir) if remote else run.folder).show()
    else:
        _print_changes(reader)


class AllRuns:
    """The runs on a terminal, where a person answers their questions and decides when to quit.

    ``find``: a run where it is worked on.
    """

    def __init__(self, reader: RunsReader, find: Callable[[RunNow], RunFolder | RemoteRun]) -> None:
        from codex_multi_role.cli.live import Drawing  # here: only a terminal needs it

        self._reader, self._find = reader, find
        self._runs: list[RunNow] = []
        self._left_open: set[tuple[str, str]] = set()
        self._quit = threading.Event()
        keys = {"a": ("answer the next question", self._answer), "q": ("quit watching", self._quit.set)}
        self._drawing = Drawing(self._draw, keys)

    def show(self) -> None:
        try:
            while not self._quit.is_set():  # waits: for a person, or until none is at work
                self._runs = self._reader.look()
                self._drawing.start()
                if not is_at_terminal() and not any(run.alive for run in self._runs):
                    return
                self._quit.wait(LOOK_SECONDS)
        finally:
            self._quit.set()
            self._drawing.close()

    def _draw(self, _: bool) -> RenderableType:
        """The live runs and the newest of the others, as many as fit."""
        from rich.console import Group

        size, below = shutil.get_terminal_size(), self._drawing.below()
        lines = max(1, size.lines - LINES_AROUND - len(below))
        rows = [(_row(run), "" if run.alive else "dim") for run in sorted(self._runs, key=lambda run: run.alive)]
        return Group(*draw_last(COLUMNS, rows, size.columns, lines), *below)

    def _answer(self) -> None:
        """Ask the oldest question that the person has not left open, then these again."""
        asked = [(run, each) for run in self._runs for each in open_questions(run.folder, run.record)]
        fresh = [(run, each) for run, each in asked if (run.run_id, each.key) not in self._left_open]
        if not asked:
            self._drawing.tell("no run asks anything")
            return
        run, question = (fresh or asked)[0]
        self._left_open = {*(self._left_open if fresh else ()), (run.run_id, question.key)}
        asker = TerminalAsker(self._drawing.paused, sys.stdin.fileno(), lambda: run.folder)
        shown = replace(question, question=f"run {run.run_id}: {question.question}")
        still = Questions(run.folder.path)
        if not (answer := asker(shown, lambda: self._quit.is_set() or still.find(question.key) != question)):
            return
        give_answer(found := self._find(run), question.key, answer)
        if isinstance(found, RunFolder) and not run.alive:
            self._drawing.tell(f"next: {found.command('resume')}")


def _row(run: RunNow) -> Sequence[object]:
    totals = run.record.get("totals") or {}
    tokens = totals.get("input_tokens", 0) + totals.get("output_tokens", 0)
    if run.course is not None:
        where, turns, tokens = run.course.where, run.course.work.turns, run.course.used.tokens
        cost = run.course.used.cost
    else:
        where, turns = outcome_in_words(str(run.record.get("outcome") or "")), totals.get("turns", 0)
        cost = Cost.of_totals(totals)
    used = (turns, compact(tokens), price(cost))
    return (run.run_id, run.record.get("flow") or "", run.status, where, *used, _now(run))


def _now(run: RunNow) -> str:
    """Return what the run asks and what its roles do, or why it ended."""
    if run.course is None:
        return str(run.record.get("reason") or run.record.get("goal") or "")
    asked = [f"asks {key}: {words}" for key, words in run.course.questions.items()]
    working = [f"{role.name}: {role.doing}" for role in run.course.roles.values() if role.working_since]
    return "; ".join([*asked, *working])


def _print_changes(reader: RunsReader) -> None:
    printed: dict[str, str] = {}
    while True:  # waits: for the runs, ended when none is worked on
        runs = reader.look()
        for run in runs:
            if printed.get(run.run_id) != (line := _line(run)):
                printed[run.run_id] = line
                put_line(line)
        if not any(run.alive for run in runs):
            return
        time.sleep(LOOK_SECONDS)


def _line(run: RunNow) -> str:
    _, flow, status, where, *_ = _row(run)
    asks = "; ".join(f"asks {key}" for key in run.course.questions) if run.course else ""
    return "  ".join(filter(None, map(one_line, (run.run_id, flow, status, where, asks))))
