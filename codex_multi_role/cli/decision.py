"""Decide about a run that another process works on, or that is parked: approve, reject, answer, cancel, pause."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

import codex_multi_role.lifecycle.running as running
from codex_multi_role.cli.options import JSON, OF_THIS_PROCESS, QUIET, RUNS_DIR, command, run_argument
from codex_multi_role.cli.output import put_json, say
from codex_multi_role.cli.resume import resume_run
from codex_multi_role.cli.run_additions import RemoteRun, find_either, give_answer, report_leaving, request_pause, told
from codex_multi_role.cli.setting import not_empty
from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.stopping import stop_run
from codex_multi_role.presentation.event_tail import EventReader
from codex_multi_role.presentation.outcome import outcome_in_words
from codex_multi_role.presentation.wording import answer_in_words, one_line
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import Answer, Question, RunFolder
from codex_multi_role.run_folder.events import ReviewAnswered
from codex_multi_role.run_folder.folder import LATEST
from codex_multi_role.run_folder.items import find_task
from codex_multi_role.run_folder.owner import is_alive, is_running, read_owner
from codex_multi_role.run_folder.states import IN_PROGRESS, OVER, written_state
from codex_multi_role.run_folder.typed_answers import COMMENTS

CONTINUES = "The run continues by itself."
ANSWER_SECONDS = 5.0
LOOK_SECONDS = 0.1
COMMENT = click.Option(
    ["--comment"], metavar="TEXT", default="", help="A comment that the roles may read with the answer."
)
REASON = click.Option(
    ["--comment"], metavar="TEXT", required=True, callback=not_empty, help="The reason; roles may read it."
)
ANSWERED = (
    click.Option(
        ["--on", "on_lines"],
        nargs=2,
        multiple=True,
        metavar="PATH:LINE TEXT",
        help="A comment on a line of a changed file. May be given several times.",
    ),
    click.Option(["--question"], metavar="KEY", help="The question to answer, if several are open; `show` lists them."),
    click.Option(["--resume", "and_resume"], is_flag=True, help="Resume the run if it is not running."),
)
REPORT_SECONDS = 15.0
"""Maximum wait for the report of a run that has stopped."""
TASK_SECONDS = 10.0
"""Maximum wait for the end of a task: as long as an interrupted turn gets to end."""


@command(RUNS_DIR, *OF_THIS_PROCESS, COMMENT, *ANSWERED, works=True, finds=True)
@run_argument
@click.pass_context
def approve(ctx: click.Context, /, run: str, **_: Any) -> None:  # noqa: ANN401 - the settings above
    """Approve the open question of RUN (default: the latest run), from any terminal.

    A running run continues by itself. A parked run continues with --resume, or with `codex-multi-role resume`; one
    elsewhere is resumed there.

    \b
    Examples:
      codex-multi-role approve --resume
      codex-multi-role approve --question release.1 --comment "after lunch"
    """
    _decide(ctx, run, approved=True)


@command(RUNS_DIR, *OF_THIS_PROCESS, REASON, *ANSWERED, works=True, finds=True)
@run_argument
@click.pass_context
def reject(ctx: click.Context, /, run: str, **_: Any) -> None:  # noqa: ANN401 - the settings above
    """Reject the open question of RUN (default: the latest run), from any terminal.

    This does not end the run: the flow defines what follows. A parked run continues with --resume, or with
    `codex-multi-role resume`; one elsewhere is resumed there.

    \b
    Examples:
      codex-multi-role reject --comment "the tests are too slow" --resume
      codex-multi-role reject --comment no --on roman.py:12 "what about zero?"
    """
    _decide(ctx, run, approved=False)


@command(RUNS_DIR, *OF_THIS_PROCESS, COMMENT, *ANSWERED, works=True, finds=True)
@run_argument
@click.argument("values", metavar="[KEY=VALUE ...]", nargs=-1)
@click.pass_context
def answer(ctx: click.Context, /, run: str, values: tuple[str, ...], **_: Any) -> None:  # noqa: ANN401 - as above
    """Answer the open question of RUN (default: the latest run) with its option and the values of its fields.

    A wrong value is refused with the name of its field, and the run stays parked. `show` lists the options and fields.

    \b
    Examples:
      codex-multi-role answer option=ship --resume
      codex-multi-role answer --question release.1 version=1.2.0 draft=false
    """
    if "=" in run:  # the run was left out
        run, values = LATEST, (run, *values)
    _decide(ctx, run, approved=True, values=dict(map(_pair, values)))


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f'"{text}" is not KEY=VALUE', "Give the option as option=NAME, and a field as NAME=VALUE.")
    return name.strip(), value


def _on_line(place: str, text: str) -> Json:
    path, _, line = place.rpartition(":")
    if not path or not line.isdecimal():
        raise UsageError(f'"{place}" is not PATH:LINE', "Give the line as PATH:LINE, such as roman.py:12.")
    return {"path": path, "line": int(line), "text": text}


@command(RUNS_DIR, JSON, QUIET, finds=True)
@run_argument
@click.option(
    "--task", metavar="ID", help="Cancel only this task: its turn is interrupted, and the rest of the run continues."
)
@click.option("--comment", metavar="TEXT", default="", help="The reason for cancelling the task; later roles see it.")
def cancel(run: str, task: str | None, comment: str, runs_dir: Path, json: bool, quiet: bool) -> None:
    """Stop RUN (default: the latest run) as Ctrl-C in its terminal does. It can be resumed.

    Waits until the run has ended, and reports how; other work of its process continues. The exit code is 0 also if it
    ended before, and 2 if it is still running after a minute, or its process is gone. With --task, only that task (an
    item of a fan-out; `show` lists the ids) is cancelled: it is skipped, and so are the tasks that depend on it.

    A run elsewhere that nobody works on yet will not start, and a parked one no longer resumes by itself.

    \b
    Examples:
      codex-multi-role cancel
      codex-multi-role cancel --task T3 --comment "known already"
    """
    found = find_either(run, runs_dir)
    if task is not None:
        record, words = _cancel_task(found, task, comment.strip())
    else:
        record = _stopped(found)
        reason = f": {one_line(record['reason'], 500)}" if record.get("reason") else ""
        words = f"{found.run_id}: {outcome_in_words(str(record.get('outcome') or record.get('status')))}{reason}"
    if json:
        put_json(record)
    elif not quiet:
        say(words)


def _stopped(found: RunFolder | RemoteRun) -> dict[str, Any]:
    """Stop the run; returns its record, of one here once its report is written."""
    if not isinstance(found, RunFolder):
        found.cancel()
        return found.folder().record()
    owner, end = read_owner(found), time.monotonic() + REPORT_SECONDS
    stop_run(found)
    while not found.report_path.exists() and is_running(owner) and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
    return found.record()


@command(RUNS_DIR, QUIET, finds=True)
@run_argument
def pause(run: str, runs_dir: Path, quiet: bool) -> None:
    """Park RUN (default: the latest run) once the turns at work have ended. `resume` continues it.

    Does not wait for that; `watch` shows it. A run that is parked already stays as it is. A run elsewhere that nobody
    works on yet is not paused: `cancel` it.

    \b
    Examples:
      codex-multi-role pause
    """
    words = request_pause(find_either(run, runs_dir))
    if not quiet:
        say(words)


def _decide(
    ctx: click.Context, reference: str, *, approved: bool, values: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Answer the run's question; if its process has ended, resume the run or print how to."""
    comment, question = ctx.params["comment"].strip(), ctx.params["question"]
    on_lines = [_on_line(*each) for each in ctx.params["on_lines"]]
    given = {**values, **({COMMENTS: on_lines} if on_lines else {})}
    found = find_either(reference, ctx.params["runs_dir"])
    answered = give_answer(found, question, Answer(approved, comment, values=given))
    is_silent = ctx.params["json"] or ctx.params["quiet"]
    if not is_silent:
        say(_told(found.run_id, answered))
    effect = _effect_of_answer(found, answered.key)
    if not effect and isinstance(found, RunFolder):
        effect = f"next: {found.command('resume')}"
        if ctx.params["and_resume"]:
            resume_run(ctx, found, {})
            return
    report_leaving(ctx)
    if ctx.params["json"]:
        put_json(asdict(answered))
    elif not is_silent:
        say(effect)


def _effect_of_answer(found: RunFolder | RemoteRun, key: str) -> str:
    """Return what the run's process does with the answer; empty for a run here without a process.

    A process that has nobody to ask looks for the answer once its other work is done. A process that was about to end
    when the answer came does not.
    """
    if not isinstance(found, RunFolder):
        return told(found.folder().record()).waits or CONTINUES
    end = time.monotonic() + ANSWER_SECONDS
    reader = EventReader(found.events_path)
    alive = True
    while alive and time.monotonic() < end:
        alive = is_alive(found)  # checked first: a process records the answer before it releases the run
        if any(isinstance(event, ReviewAnswered) and event.key == key for event in reader.read()):
            return CONTINUES
        time.sleep(LOOK_SECONDS if alive else 0)
    return "The run is busy with other work; it continues by itself afterwards." if alive else ""


def _cancel_task(found: RunFolder | RemoteRun, task: str, comment: str) -> tuple[dict[str, Any], str]:
    """Request the cancellation; returns the task's record, and what to say.

    Of a run here, once its files say that the task has ended, or after `TASK_SECONDS`, or when nobody works on the run.
    """
    if not isinstance(found, RunFolder):
        record = find_task(found.folder(), found.cancel_task(task, comment))
        return record, f"task {record['item']} is {record['state']}; it is skipped when the run continues."
    unit = running.cancel_task(found.run_id, task, runs_dir=found.path.parent, comment=comment)
    end = time.monotonic() + TASK_SECONDS
    while is_alive(found) and time.monotonic() < end:
        if IN_PROGRESS not in (find_task(found, unit)["state"], written_state(found, unit)):  # a caller may read both
            break
        time.sleep(LOOK_SECONDS)
    record = find_task(found, unit)
    if record["state"] in OVER:
        return record, f"task {record['item']}: {record['state']}: {record['reason']}".removesuffix(": ")
    later = "the run reaches it" if is_alive(found) else f"`{found.command('resume')}` continues"
    return record, f"task {record['item']} is {record['state']}; it is skipped when {later}."


def _told(run_id: str, question: Question) -> str:
    answer = question.answer
    assert answer is not None
    what = "answered: " if answer.option or answer.values else ""
    return f"{run_id}: {question.key} is {what}{answer_in_words(answer.approved, answer.option, answer.values)}."
