"""A run in the foreground: its view, the person at the terminal, its closing summary and its exit code.

The views: events for machines, a live table, plain lines, or nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codex_multi_role.cli.output import JsonLines, say
from codex_multi_role.cli.run_additions import RemoteRun, report_end
from codex_multi_role.cli.terminal_questions import is_at_terminal, person_at
from codex_multi_role.errors import ExitCode
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import (
    answer_commands,
    cost_of_totals,
    exit_in_words,
    next_command,
    outcome_in_words,
    playbook_in_words,
    tokens_in_words,
    turns_in_words,
)
from codex_multi_role.presentation.plain import PlainLines, question_lines
from codex_multi_role.presentation.recorded import PAGES, read_record
from codex_multi_role.presentation.result import CHANGED_FILES, result_lines, result_of
from codex_multi_role.presentation.wording import one_line, verdict, verdict_before
from codex_multi_role.run_folder import Questions, Record, RunFolder, event_of
from codex_multi_role.run_folder.events import ReviewAsked
from codex_multi_role.run_options import RunReport

if TYPE_CHECKING:
    from codex_multi_role.cli.live import LiveTable

FILES_NAMED = 6


@dataclass(frozen=True)
class Lines:
    """A view that gets the records of a run's events and only writes lines; a question fits between them."""

    take: Callable[[Record], None]

    def __call__(self, record: Record) -> None:
        self.take(record)

    @staticmethod
    def paused() -> AbstractContextManager[None]:
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
    remote: RemoteRun | None = None,
) -> AbstractContextManager[Lines | LiveTable]:
    """Return a context that gives the view for the run's events; every view keeps ``course`` up to date.

    ``asks``: whether a person is asked on this terminal, so that the view leaves the questions to whoever asks them.
    ``over``: whether nobody works on the run any more, called for every drawing. ``write``: prints an event as JSON; by
    default, a reader that is gone does not hold up the run. ``remote``: the run, if it is elsewhere.
    """
    if as_json:
        return nullcontext(_json_lines(course, write or JsonLines()))
    if quiet:
        return nullcontext(Lines(lambda record: course.apply(event_of(record))))
    if not plain and on_terminal():
        from codex_multi_role.cli.live import LiveTable  # here: rich loads slowly, and only a terminal needs it

        return closing(LiveTable(course, over, asks=asks, remote=remote))
    return nullcontext(_plain_lines(course, asks=asks))


def on_terminal() -> bool:
    """Whether stderr is a terminal that can redraw."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _json_lines(course: Course, write: Callable[[Record], None]) -> Lines:
    def take(record: Record) -> None:
        course.apply(event_of(record))
        write(record)

    return Lines(take)


def _plain_lines(course: Course, *, asks: bool) -> Lines:
    lines = PlainLines(course)

    def take(record: Record) -> None:
        event = event_of(record)
        told = lines.of(event)
        if not (asks and isinstance(event, ReviewAsked)):
            for line in told:
                say(line)

    return Lines(take)


@contextmanager
def in_foreground(ctx: click.Context, course: Course) -> Iterator[dict[str, Any]]:
    """Show the run that is worked on meanwhile, and ask the person at the terminal, by the callbacks of `api`.

    ``ctx`` has the settings `OF_THIS_PROCESS`.
    """
    as_json, quiet, plain = (ctx.params[name] for name in ("json", "quiet", "plain"))
    asks = is_at_terminal() and not ctx.params.get("yes")
    with open_view(course, as_json=as_json, quiet=quiet, plain=plain, asks=asks) as view:
        person = person_at(view.paused, course, as_json=as_json, awaited=ctx.params["await_answers"])
        yield {"on_event": view, "ask_person": person}


def report_and_exit(ctx: click.Context, report: RunReport, course: Course) -> None:
    """Tell people and extensions how the run ended, and exit with its code."""
    say_end(ctx, report, course)
    report_end(ctx, report, course)
    ctx.exit(report.exit_code)


def say_end(ctx: click.Context, report: RunReport, course: Course) -> None:
    """Print the closing summary; ``ctx`` has the settings ``runs_dir``, ``json`` and ``quiet``."""
    if not ctx.params["json"] and not (ctx.params["quiet"] and report.exit_code == 0):
        lines = list(summary(report, course))
        for line in (_headline(report), lines[-1]) if ctx.params["quiet"] else ["", *lines]:
            say(line)
    if report.page_problem and ctx.params["json"]:
        say(f"report {no_page(report)}")


def summary(report: RunReport, course: Course) -> Iterator[str]:
    totals = report.totals
    is_waiting = report.exit_code == ExitCode.WAITING  # the question itself follows
    yield outcome_in_words(report.outcome) if is_waiting else _headline(report)
    if course.started.playbook:
        yield f"  {playbook_in_words(course.started.playbook, over=True)}"
    folder = RunFolder(report.folder)
    record = read_record(folder)
    if (result := result_of(folder, record)) is not None:
        yield ""
        yield from result_lines(result, folder.command("show", "--result"))
        yield ""
    if files := _files(course, record, are_listed=result is not None and result.title == CHANGED_FILES):
        yield f"  files    {files}"
    if (tests := course.latest_tests) is not None:
        yield f"  tests    {verdict(tests.told)}"
    if course.baseline is not None and (course.baseline.left_by or course.latest_tests is not None):
        yield f"  before   {verdict_before(vars(course.baseline))}"
    cost = [] if totals.get("cost") is None else [cost_of_totals(totals)]
    tokens = tokens_in_words(totals["input_tokens"], totals["output_tokens"])
    yield f"  turns    {', '.join([turns_in_words(totals), f'tokens: {tokens}', *cost])}"
    yield f"  folder   {report.folder}"
    if record.get("source_workspace") and Path(record["workspace"]).is_dir():
        yield f"  worktree {record['workspace']}"
    if report.page is not None:
        yield f"  report   {report.page}"
    if report.page_problem:
        yield f"  report   {no_page(report)}"
    if report.exit_code == ExitCode.WAITING:
        yield from _waiting_for(folder)
    if report.hint:
        yield f"  hint     {one_line(report.hint, 2000)}"
    yield f"  exit     {exit_in_words(report.exit_code, 'see the reason above')}"
    yield f"  next     {next_command(folder, report.exit_code)}"


def _headline(report: RunReport) -> str:
    is_said = report.reason.endswith(f" finished: {report.outcome}")
    return ": ".join(filter(None, (outcome_in_words(report.outcome), "" if is_said else one_line(report.reason, 500))))


def _waiting_for(folder: RunFolder) -> Iterator[str]:
    """Yield the open questions with what each is about: this is where people read what they approve."""
    pending = Questions(folder.path).pending()
    for question in pending:
        yield ""
        yield from (f"  {line}" for line in question_lines(question))
        yield ""
    if pending:
        yield f"  reject   {answer_commands(folder, [each.key for each in pending])[1]}"


def no_page(report: RunReport) -> str:
    """Say that a run has no report, and why."""
    again = [RunFolder(report.folder).command(each.command) for each in PAGES.that_load()]
    return "; ".join(
        [f"not written: {one_line(report.page_problem, 500)}", *(f"`{each}` tries again" for each in again)]
    )


def _files(course: Course, record: Mapping[str, Any], *, are_listed: bool) -> str:
    """The changed files with their lines, if the result does not list them; without a record, those written."""
    recorded = record.get("files")  # empty if what was written is as it was before
    counted = [{"path": path} for path in course.files.paths] if recorded is None else recorded
    counted = [] if are_listed else counted
    named = [f"{one_line(each['path'])}{_lines(each)}" for each in counted[:FILES_NAMED]]
    more = f" and {len(counted) - FILES_NAMED} more" if len(counted) > FILES_NAMED else ""
    skipped = [f"{course.files.skipped} skipped"] if course.files.skipped else []
    return "; ".join(filter(None, (f"{', '.join(named)}{more}", *skipped)))


def _lines(file: Mapping[str, Any]) -> str:
    """`` +12 -3``; empty for a binary file."""
    return "" if file.get("added") is None else f" +{file['added']} -{file['removed']}"
