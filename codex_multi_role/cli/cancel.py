"""``cancel``: stop a run that another process works on, or one of its tasks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from codex_multi_role.cli.options import JSON, QUIET, RUNS_DIR, command, run_argument
from codex_multi_role.cli.output import put_json, say
from codex_multi_role.lifecycle.stopping import outlives, stop_run
from codex_multi_role.presentation.outcome import outcome_in_words, resume_command
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.owner import is_alive, read_owner
from codex_multi_role.run_folder.states import IN_PROGRESS, OVER
from codex_multi_role.run_folder.tasks import find_task

LOOK_SECONDS = 0.1
TAKEN_SECONDS = 10.0
"""Maximum wait for the end of a task: as long as an interrupted turn gets to end."""


@command(RUNS_DIR, JSON, QUIET, short_help="Stop a run that works somewhere else, as Ctrl-C does there.")
@run_argument
@click.option("--task", metavar="ID", help="Cancel this task only: its turn is interrupted, the rest goes on.")
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


def _cancel_task(folder: RunFolder, task: str, comment: str) -> dict[str, Any]:
    """Request the cancellation; returns the task's record once it has ended, or after `TAKEN_SECONDS`."""
    from codex_multi_role import api

    unit = api.cancel_task(folder.run_id, task, runs_dir=folder.path.parent, comment=comment)
    end = time.monotonic() + TAKEN_SECONDS
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
        later = f"when `{resume_command(folder.run_id, folder.path.parent)}` goes on"
    return f"task {task_record['item']} is {task_record['state']}; it is skipped {later}."
