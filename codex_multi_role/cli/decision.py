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
from codex_multi_role.cli.run_additions import RemoteRun, find_either, report_leaving, told
from codex_multi_role.cli.setting import not_empty
from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.stopping import pause_run, stop_run
from codex_multi_role.presentation.event_tail import EventReader
from codex_multi_role.presentation.outcome import outcome_in_words
from codex_multi_role.presentation.wording import answer_in_words, one_line
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import Question, RunFolder
from codex_multi_role.run_folder.events import ReviewAnswered
from codex_multi_role.run_folder.folder import LATEST
from codex_multi_role.run_folder.items import find_task
from codex_multi_role.run_folder.owner import is_alive, is_running, read_owner
from codex_multi_role.run_folder.states import IN_PROGRESS, OVER, written_state
from codex_multi_role.run_folder.typed_answers import COMMENTS

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
    folder = find_either(run, runs_dir)
    if not isinstance(folder, RunFolder):
        _cancel_remote(folder, task, comment.strip(), json=json, quiet=quiet)
        return
    if task is not None:
        task_record = _cancel_task(folder, task, comment.strip())
        if json:
            put_json(task_record)
        elif not quiet:
            say(_in_words(folder, task_record))
        return
    owner, end = read_owner(folder), time.monotonic() + REPORT_SECONDS
    stop_run(folder)
    while not folder.report_path.exists() and is_running(owner) and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
    record = folder.record()
    if json:
        put_json(record)
    elif not quiet:
        reason = f": {one_line(record['reason'], 500)}" if record.get("reason") else ""
        say(f"{folder.run_id}: {outcome_in_words(str(record.get('outcome') or record.get('status')))}{reason}")


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
    found = find_either(run, runs_dir)
    parks = pause_run(found) if isinstance(found, RunFolder) else found.pause()
    if not quiet:
        record = (found if isinstance(found, RunFolder) else found.folder()).record()
        already = f"{outcome_in_words(str(record['outcome']))}: it is parked already."
        say(f"{found.run_id}: {'it parks once the turns at work have ended.' if parks else already}")


def _decide(
    ctx: click.Context, reference: str, *, approved: bool, values: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Answer the run's question; if its process has ended, resume the run or print how to."""
    comment, question = ctx.params["comment"].strip(), ctx.params["question"]
    on_lines = [_on_line(*each) for each in ctx.params["on_lines"]]
    given = {**values, **({COMMENTS: on_lines} if on_lines else {})}
    said = {"approved": approved, "comment": comment, "question": question, "values": given}
    folder = find_either(reference, ctx.params["runs_dir"])
    if not isinstance(folder, RunFolder):
        _answer_remote(ctx, folder, said)
        return

    answered = running.answer(folder.run_id, runs_dir=folder.path.parent, **said)
    quiet = ctx.params["json"] or ctx.params["quiet"]
    if not quiet:
        say(_told(folder.run_id, answered))
    effect = _effect_of_answer(ctx, folder, answered.key)
    if effect is None and ctx.params["and_resume"]:
        resume_run(ctx, folder, {})
        return
    report_leaving(ctx)
    if ctx.params["json"]:
        put_json(asdict(answered))
    elif not quiet:
        say(effect or f"next: {folder.command('resume')}")


def _effect_of_answer(ctx: click.Context, folder: RunFolder, key: str) -> str | None:
    """Return what the run's process does with the answer; None without a process.

    A process that has nobody to ask looks for the answer once its other work is done. A process that was about to end
    when the answer came does not.
    """
    end = time.monotonic() + ANSWER_SECONDS
    reader = EventReader(folder.events_path)
    alive = True
    while alive and time.monotonic() < end:
        alive = is_alive(folder)  # checked first: a process records the answer before it releases the run
        if any(isinstance(event, ReviewAnswered) and event.key == key for event in reader.read()):
            return "The run continues by itself."
        time.sleep(LOOK_SECONDS if alive else 0)
    return "The run is busy with other work; it continues by itself afterwards." if alive else None


def _cancel_task(folder: RunFolder, task: str, comment: str) -> dict[str, Any]:
    """Request the cancellation; returns the task's record once its files say that it has ended.

    Or after `TASK_SECONDS`, or when nobody works on the run any more.
    """
    unit = running.cancel_task(folder.run_id, task, runs_dir=folder.path.parent, comment=comment)
    end = time.monotonic() + TASK_SECONDS
    while is_alive(folder) and _in_progress(folder, unit) and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
    return find_task(folder, unit)


def _in_progress(folder: RunFolder, unit: str) -> bool:
    """Whether the task is so by its events, or still by the file of states, which a caller may read next."""
    return IN_PROGRESS in (find_task(folder, unit)["state"], written_state(folder, unit))


def _told(run_id: str, question: Question) -> str:
    answer = question.answer
    assert answer is not None
    if answer.option or answer.values:
        return (
            f"{run_id}: {question.key} is answered: {answer_in_words(answer.approved, answer.option, answer.values)}."
        )
    return f"{run_id}: {question.key} is {'approved' if answer.approved else 'rejected'}."


def _answer_remote(ctx: click.Context, found: RemoteRun, said: Mapping[str, Any]) -> None:
    answered = found.answer(**said)
    report_leaving(ctx)
    if ctx.params["json"]:
        put_json(asdict(answered))
    elif not ctx.params["quiet"]:
        say(_told(found.run_id, answered))
        say(told(found.folder().record()).waits or "The run continues by itself.")


def _cancel_remote(found: RemoteRun, task: str | None, comment: str, *, json: bool, quiet: bool) -> None:
    if task is not None:
        unit = found.cancel_task(task, comment)
        record = find_task(found.folder(), unit)
        words = f"task {record['item']} is {record['state']}; it is skipped when the run continues."
    else:
        found.cancel()
        record = found.folder().record()
        words = f"{found.run_id}: {outcome_in_words(str(record['outcome']))}: {one_line(record['reason'], 500)}"
    if json:
        put_json(record)
    elif not quiet:
        say(words)


def _in_words(folder: RunFolder, task_record: dict[str, Any]) -> str:
    if task_record["state"] in OVER:
        return f"task {task_record['item']}: {task_record['state']}: {task_record['reason']}".removesuffix(": ")
    later = "when the run reaches it"
    if not is_alive(folder):
        later = f"when `{folder.command('resume')}` continues"
    return f"task {task_record['item']} is {task_record['state']}; it is skipped {later}."
