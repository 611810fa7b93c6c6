"""What ``approve`` and ``reject`` share: the answer, and how the run continues with it."""

from __future__ import annotations

import time
from dataclasses import asdict

import click

from codex_multi_role.cli.ci_reports import say_unreported
from codex_multi_role.cli.output import put_json, say
from codex_multi_role.cli.resume import resume_run
from codex_multi_role.presentation.event_tail import EventReader
from codex_multi_role.presentation.outcome import resume_command
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.events import ReviewAnswered
from codex_multi_role.run_folder.owner import is_alive

TAKEN_SECONDS = 5.0
LOOK_SECONDS = 0.1
QUESTION = click.option("--question", metavar="KEY", help="Which question, when several are open; `show` lists them.")
RESUME = click.option("--resume", "and_resume", is_flag=True, help="Go on with the run if no process works on it.")


def decide(
    ctx: click.Context, reference: str, *, approved: bool, comment: str, question: str | None, and_resume: bool
) -> None:
    """Answer the run's question; if its process has ended, resume the run or print how to."""
    folder = RunFolder.find(ctx.params["runs_dir"], reference)
    from codex_multi_role import api

    answered = api.answer(
        folder.run_id, runs_dir=folder.path.parent, approved=approved, comment=comment, question=question
    )
    quiet = ctx.params["json"] or ctx.params["quiet"]
    if not quiet:
        say(f"{answered.key} is {'approved' if approved else 'rejected'}.")
    effect = _effect_of_answer(ctx, folder, answered.key)
    if effect is None and and_resume:
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
    end = time.monotonic() + TAKEN_SECONDS
    reader = EventReader(folder.events_path)
    alive = True
    while alive and time.monotonic() < end:
        alive = is_alive(folder)  # checked first: a process records the answer before it releases the run
        if any(isinstance(event, ReviewAnswered) and event.key == key for event in reader.read()):
            return "The run goes on by itself."
        time.sleep(LOOK_SECONDS if alive else 0)
    return "The run is busy with other work; when that is done it goes on by itself." if alive else None
