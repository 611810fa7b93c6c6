"""``approve``, ``reject`` and ``cancel``: decide about a run that another process works on, or that is parked."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from codex_multi_role.cli.ci_reports import reported, say_unreported
from codex_multi_role.cli.options import JSON, OF_THIS_PROCESS, QUIET, RUNS_DIR, command, run_argument
from codex_multi_role.cli.output import put_json, say
from codex_multi_role.cli.settings import not_empty
from codex_multi_role.lifecycle.stopping import outlives, stop_run
from codex_multi_role.presentation.outcome import outcome_in_words, resume_command
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.events import ReviewAnswered
from codex_multi_role.run_folder.items import find_task
from codex_multi_role.run_folder.owner import is_alive, read_owner
from codex_multi_role.run_folder.states import IN_PROGRESS, OVER

ANSWER_SECONDS = 5.0
LOOK_SECONDS = 0.1
QUESTION = click.option("--question", metavar="KEY", help="Which question, when several are open; `show` lists them.")
RESUME = click.option("--resume", "and_resume", is_flag=True, help="Resume the run if it is not running.")
TASK_SECONDS = 10.0
"""Maximum wait for the end of a task: as long as an interrupted turn gets to end."""


@command(RUNS_DIR, *OF_THIS_PROCESS, short_help="Say yes to what a run asks.")
@run_argument
@click.option("--comment", metavar="TEXT", default="", help="What the roles may get to read with the answer.")
@QUESTION
@RESUME
@click.pass_context
@reported
def approve(ctx: click.Context, /, run: str, comment: str, question: str | None, and_resume: bool, **_: Any) -> None:  # noqa: ANN401 - the settings above
    """Approve the open question of RUN (an id, a unique prefix of one, or `latest`), from any terminal.

    A running run continues by itself; a parked one continues with --resume, or `resume`.

    \b
    Examples:
      codex-multi-role approve latest --resume
      codex-multi-role approve 20260131_101500 --question release.1 --comment "after lunch"
    """
    _decide(ctx, run, approved=True, comment=comment.strip(), question=question, and_resume=and_resume)


@command(RUNS_DIR, *OF_THIS_PROCESS, short_help="Say no to what a run asks, and why.")
@run_argument
@click.option(
    "--comment",
    metavar="TEXT",
    required=True,
    callback=not_empty,
    help="Why not; the roles may get to read it.",
)
@QUESTION
@RESUME
@click.pass_context
@reported
def reject(ctx: click.Context, /, run: str, comment: str, question: str | None, and_resume: bool, **_: Any) -> None:  # noqa: ANN401 - the settings above
    """Reject the open question of RUN (an id, a unique prefix of one, or `latest`), from any terminal.

    This does not end the run: its flow defines what follows. A parked run continues with --resume, or `resume`.

    \b
    Examples:
      codex-multi-role reject latest --comment "the tests are too slow" --resume
    """
    _decide(ctx, run, approved=False, comment=comment.strip(), question=question, and_resume=and_resume)


@command(RUNS_DIR, JSON, QUIET, short_help="Stop a run that works somewhere else, as Ctrl-C does there.")
@run_argument
@click.option("--task", metavar="ID", help="Cancel this task only: its turn is interrupted, the rest continues.")
@click.option("--comment", metavar="TEXT", default="", help="Why the task is not wanted; the roles after it see it.")
def cancel(run: str, task: str | None, comment: str, runs_dir: Path, json: bool, quiet: bool) -> None:
    """Stop RUN (an id, a unique prefix of one, or `latest`) as Ctrl-C in its terminal does; it can be resumed.

    Waits until its process has ended, and says how the run ended; exit code 2 if the process still works on it after a
    minute. With --task, the id that an item of a fan-out has
    in `show`, only that one ends: it is skipped, and so are those that need it.

    \b
    Examples:
      codex-multi-role cancel latest
      codex-multi-role cancel latest --task T3 --comment "known already"
    """
    folder = RunFolder.find(runs_dir, run)
    if task is not None:
        task_record = _cancel_task(folder, task, comment.strip())
        if json:
            put_json(task_record)
        elif not quiet:
            say(_in_words(folder, task_record))
        return
    owner = read_owner(folder)
    stop_run(folder)
    if outlives(owner):
        say(f"warning: the run has ended, but process {owner['pid']}, which worked on it, is still running")
        say(f"hint: `kill -9 {owner['pid']}`, unless it is a program of yours that has more to do")
    record = folder.record()
    if json:
        put_json(record)
    elif not quiet:
        reason = f": {one_line(record['reason'], 500)}" if record.get("reason") else ""
        say(f"{outcome_in_words(str(record.get('outcome') or record.get('status')))}{reason}")


def _decide(
    ctx: click.Context, reference: str, *, approved: bool, comment: str, question: str | None, and_resume: bool
) -> None:
    """Answer the run's question; if its process has ended, resume the run or print how to."""
    folder = RunFolder.find(ctx.params["runs_dir"], reference)
    import codex_multi_role.api as api

    answered = api.answer(
        folder.run_id, runs_dir=folder.path.parent, approved=approved, comment=comment, question=question
    )
    quiet = ctx.params["json"] or ctx.params["quiet"]
    if not quiet:
        say(f"{answered.key} is {'approved' if approved else 'rejected'}.")
    effect = _effect_of_answer(ctx, folder, answered.key)
    if effect is None and and_resume:
        from codex_multi_role.cli.resume import resume_run  # here: most answers resume nothing

        resume_run(ctx, folder, {})
        return
    say_unreported(ctx)
    if ctx.params["json"]:
        put_json(asdict(answered))
    elif not quiet:
        say(effect or f"next: {resume_command(folder.run_id, ctx.params['runs_dir'])}")


def _effect_of_answer(ctx: click.Context, folder: RunFolder, key: str) -> str | None:
    """Return what the run's process does with the answer; None without a process.

    A process that has nobody to ask looks for the answer once its other work is done. A process that was about to end
    when the answer came does not.
    """
    from codex_multi_role.presentation.event_tail import EventReader  # here: `cancel` reads no events

    end = time.monotonic() + ANSWER_SECONDS
    reader = EventReader(folder.events_path)
    alive = True
    while alive and time.monotonic() < end:
        alive = is_alive(folder)  # checked first: a process records the answer before it releases the run
        if any(isinstance(event, ReviewAnswered) and event.key == key for event in reader.read()):
            return "The run continues by itself."
        time.sleep(LOOK_SECONDS if alive else 0)
    return "The run is busy with other work; when that is done it continues by itself." if alive else None


def _cancel_task(folder: RunFolder, task: str, comment: str) -> dict[str, Any]:
    """Request the cancellation; returns the task's record once it has ended, or after `TASK_SECONDS`."""
    import codex_multi_role.api as api

    unit = api.cancel_task(folder.run_id, task, runs_dir=folder.path.parent, comment=comment)
    end = time.monotonic() + TASK_SECONDS
    while (
        (task_record := find_task(folder, unit))["state"] == IN_PROGRESS and is_alive(folder) and time.monotonic() < end
    ):
        time.sleep(LOOK_SECONDS)
    return task_record


def _in_words(folder: RunFolder, task_record: dict[str, Any]) -> str:
    if task_record["state"] in OVER:
        return f"task {task_record['item']}: {task_record['state']}: {task_record['reason']}".removesuffix(": ")
    later = "when it comes to it"
    if not is_alive(folder):
        later = f"when `{resume_command(folder.run_id, folder.path.parent)}` continues"
    return f"task {task_record['item']} is {task_record['state']}; it is skipped {later}."
