"""``pr``: what a pull request for a run says, and creating it."""

from __future__ import annotations

from pathlib import Path

import click

from codex_multi_role.cli.options import RUNS_DIR, command, run_argument
from codex_multi_role.cli.output import put_line, put_text, say
from codex_multi_role.cli.run_additions import find_run
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.results.commands import repository_option
from codex_multi_role.extensions.results.pull_request.creating import Request, create_pull_request
from codex_multi_role.extensions.results.pull_request.description import describe
from codex_multi_role.extensions.results.run_history import history_of


@command(RUNS_DIR, finds=True)
@run_argument
@click.option("--create", is_flag=True, help="Export the branch, push it, and create the pull request.")
@click.option("--draft", is_flag=True, help="With --create: as a draft.")
@click.option(
    "--branch",
    default="",
    metavar="NAME",
    help="With --create: the branch.",
    show_default="that of the run, otherwise codex-multi-role/RUN",
)
@click.option(
    "--base",
    default="",
    metavar="NAME",
    help="With --create: the branch to merge into.",
    show_default="checked out when the run started, otherwise the default branch of the host",
)
@click.option("--remote", metavar="NAME", help="With --create: where to push.", show_default="origin")
@repository_option
def pr(
    run: str, create: bool, draft: bool, branch: str, base: str, remote: str | None, repo: Path | None, runs_dir: Path
) -> None:
    """Print a pull request for RUN (default: the latest run): the title, then the body in Markdown.

    Everything in it comes from the record of the run: goal, end, result, tests, files, turns, warnings, tokens, and how
    to reproduce it. Unknown facts are left out or named as unknown.

    --create makes the branch as `export` does, pushes it without force, and creates the pull request with gh or glab.
    If neither is installed, it fails and prints the commands. If one is open for the branch, it only gets the new
    commits. The last line is its address.

    \b
    Examples:
      codex-multi-role pr
      codex-multi-role pr --create --draft
      codex-multi-role pr 2026 --create --branch agents/roman --base develop
    """
    if not create and (draft or branch or base or remote or repo):
        raise UsageError("these options need --create", "Without it, the text is printed, and nothing is changed.")
    history = history_of(find_run(run, runs_dir))
    description = describe(history)
    if not create:
        put_text(f"{description.title}\n\n{description.body}")
        return
    put_line(create_pull_request(history, description, Request(branch, remote or "origin", base, draft, repo), say))
