"""The process of one run of a batch: started by the batch's process, and never outliving it for long.

``python -m`` with this module, the run's id and ``--order N``. It reads what to do from the descriptor N, and stops as
SIGTERM does once its standard input ends: the other end of that pipe is in the batch's process, and closes however that
ends.
"""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

import codex_multi_role.lifecycle.running as running
from codex_multi_role.cli.main import main
from codex_multi_role.cli.output import JsonLines
from codex_multi_role.errors import RunInterrupted
from codex_multi_role.extensions.machines.batches.batch_folder import join_members
from codex_multi_role.extensions.machines.batches.repositories import clone
from codex_multi_role.extensions.machines.workers.own_process import stop_at_end_of
from codex_multi_role.host.own_python import read_order
from codex_multi_role.lifecycle.preparing import abandon_worktree
from codex_multi_role.run_folder import Record, RunFolder
from codex_multi_role.run_options import RunOptions, RunReport, options_for
from codex_multi_role.workspace.manifest import make_place

if TYPE_CHECKING:
    from codex_multi_role.option_keywords import ResumeKeywords

STANDARD_INPUT = 0


@dataclass(frozen=True)
class Order:
    """What the process does. ``options`` as `RunOptions.as_record`.

    ``changes``: the names of those that replace recorded ones.

    ``members``: the lock file that all processes of the batch hold. ``repository``: to clone to the workspace, or
    empty; ``mirrors``: the folder of its mirror.
    """

    options: Record
    resumes: bool
    changes: tuple[str, ...]
    members: str
    repository: str
    ref: str | None
    mirrors: str


def carry_out(order: Order, on_event: Callable[[Record], None]) -> RunReport:
    """Do what ``order`` says. Raises `RunInterrupted` if nobody waits for it any more, and what a run raises."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # until the run handles it: what has begun is undone
    if not join_members(Path(order.members)):
        raise RunInterrupted
    stop_at_end_of(STANDARD_INPUT)  # at once if it has ended already
    options = RunOptions.from_record(order.options)
    assert options.place.run_id is not None
    if order.resumes:
        given, table = options.as_keywords(), options_for(order.changes)
        changes = cast("ResumeKeywords", {name: given.get(name, table[name].default) for name in order.changes})
        return running.resume(options.place.run_id, runs_dir=options.place.runs_dir, changes=changes, on_event=on_event)
    left = RunFolder(options.place.runs_dir / options.place.run_id)
    if left.path.is_dir() and not left.record_path.exists():  # by a process that was killed before
        abandon_worktree(left)
        shutil.rmtree(left.path, ignore_errors=True)
    if order.repository:
        make_place(options.place.workspace.parent, Path(order.mirrors).parent.resolve())
        clone(order.repository, order.ref, Path(order.mirrors), options.place.workspace)
    return running.run(options, on_event)


@click.command()
@click.argument("run")
@click.option("--order", type=int, required=True)
@click.pass_context
def work_on(ctx: click.Context, run: str, order: int) -> None:
    """Work on RUN as the file with the descriptor ORDER says, until standard input ends."""
    ctx.exit(carry_out(Order(**read_order(order)), JsonLines()).exit_code)


if __name__ == "__main__":
    sys.exit(main(work_on))
