"""``batch``: run many goals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from codex_multi_role.cli.options import command
from codex_multi_role.cli.setting import InputFile, output_file
from codex_multi_role.extensions.machines.commands.batch_run import run_batch
from codex_multi_role.extensions.machines.commands.options import BATCH, RUN_OF_BATCH


@command(*BATCH, *RUN_OF_BATCH)
@click.argument("file", metavar="FILE|-", type=InputFile(allow_dash=True))
@click.option(
    "--name", metavar="NAME", help="The name of the batch; its runs are called NAME-ID.  [default: FILE's name]"
)
@click.option("--resume", "resumes", is_flag=True, help="Continue a batch: goals that have ended are not run again.")
@output_file("--output", help="The result file: a JSON line per goal.  [default: results.jsonl in the batch's folder]")
@click.pass_context
def batch(ctx: click.Context, /, file: Path, **values: Any) -> None:  # noqa: ANN401 - the settings above
    """Run the goals in FILE, a JSON object per line, several at once, each as a run of its own.

    A line has `goal` and, if it differs from the options given here, `flow`, `inputs`, `workspace` or `repository`,
    `roles`, `model`, limits and more; `schema batch-goal` lists all keys. Goals with the same workspace get a git
    worktree each, or run one after another if it is in no git repository.

    The exit code is 0 if every goal was reached. Otherwise it is the first of 130, 3, 2, 1, 4 and 5 that the batch or
    any of its goals ended with.

    \b
    Examples:
      codex-multi-role batch goals.jsonl --concurrency 4 --max-turns 20
      codex-multi-role batch goals.jsonl --resume
      codex-multi-role batch goals.jsonl --shard 1/3 --json > events.ndjson
      codex-multi-role batch goals.jsonl --total-max-tokens 5000000
    """
    ctx.exit(run_batch(ctx, file, values["name"]))
