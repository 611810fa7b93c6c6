"""``demo``: a team at work that needs no model, no login and no project."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

import codex_multi_role.lifecycle.running as running
from codex_multi_role.cli.foreground import on_terminal, open_view, summary
from codex_multi_role.cli.options import PLAIN, command
from codex_multi_role.cli.output import say
from codex_multi_role.extensions.pages.report.command import open_page
from codex_multi_role.playbook import load_playbook
from codex_multi_role.presentation.course import Course
from codex_multi_role.reading.shipped import packaged_roles
from codex_multi_role.run_options import RunOptions

if TYPE_CHECKING:
    from codex_multi_role.run_options import RunReport

PLAYBOOK = "roman-numerals"


@command(PLAIN)
@click.option("--no-open", is_flag=True, help="Do not open the report in a browser.")
@click.pass_context
def demo(ctx: click.Context, /, no_open: bool, plain: bool) -> None:
    """Watch four roles write and test a converter to Roman numerals in a new temporary folder.

    The answers come from a playbook, so no model is asked. Everything else is real: the Codex processes, the files, the
    tests, the record of the run. At the end the report opens in a browser if this is a terminal.
    """
    folder = Path(tempfile.mkdtemp(prefix="codex-multi-role-demo-"))
    report = _play(folder / "workspace", folder / "runs", plain=plain)
    say(f"The team's files are in {folder / 'workspace'}, the record of the run in {report.folder}.")
    say("Next: `codex-multi-role init` writes a team of your own; `codex-multi-role --playbook auto` tries it.")
    if report.page is not None and not no_open and on_terminal():
        open_page(report.page)
    ctx.exit(report.exit_code)


def _play(workspace: Path, runs_dir: Path, *, plain: bool) -> RunReport:
    """Run the shipped team on a new workspace, with its view and its closing summary."""
    workspace.mkdir()
    playbook, course = load_playbook(PLAYBOOK), Course()
    options = RunOptions(
        goal=playbook.goal or "",
        cycles=playbook.cycles or RunOptions.cycles,
        workspace=workspace,
        roles=packaged_roles(),
        runs_dir=runs_dir,
        playbook=str(playbook.source),
    )
    with open_view(course, as_json=False, quiet=False, plain=plain) as view:
        report = running.run(options, view)
    for line in ["", *summary(report, course)]:
        say(line)
    return report
