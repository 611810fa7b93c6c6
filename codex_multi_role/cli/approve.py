"""``approve``: answer a run's question with yes."""

from __future__ import annotations

from typing import Any

import click

from codex_multi_role.cli.ci_reports import reported
from codex_multi_role.cli.decision import QUESTION, RESUME, decide
from codex_multi_role.cli.options import OF_THIS_PROCESS, RUNS_DIR, command, run_argument


@command(RUNS_DIR, *OF_THIS_PROCESS, short_help="Say yes to what a run asks.")
@run_argument
@click.option("--comment", metavar="TEXT", default="", help="What the roles may get to read with the answer.")
@QUESTION
@RESUME
@click.pass_context
@reported
def approve(ctx: click.Context, /, run: str, comment: str, question: str | None, and_resume: bool, **_: Any) -> None:  # noqa: ANN401 - the settings above
    """Approve the open question of RUN (an id, a unique prefix of one, or `latest`), from any terminal.

    A run whose process waits goes on by itself; one that is parked goes on with --resume, or `resume`.

    \b
    Examples:
      codex-multi-role approve latest --resume
      codex-multi-role approve 20260131_101500 --question release.1 --comment "after lunch"
    """
    decide(ctx, run, approved=True, comment=comment.strip(), question=question, and_resume=and_resume)
