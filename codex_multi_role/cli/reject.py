"""``reject``: answer a run's question with no, and why."""

from __future__ import annotations

from typing import Any

import click

from codex_multi_role.cli.ci_reports import reported
from codex_multi_role.cli.decision import QUESTION, RESUME, decide
from codex_multi_role.cli.options import OF_THIS_PROCESS, RUNS_DIR, command, run_argument
from codex_multi_role.cli.settings import not_empty


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

    The run does not end with that: its flow says what follows. One that is parked goes on with --resume, or `resume`.

    \b
    Examples:
      codex-multi-role reject latest --comment "the tests are too slow" --resume
    """
    decide(ctx, run, approved=False, comment=comment.strip(), question=question, and_resume=and_resume)
