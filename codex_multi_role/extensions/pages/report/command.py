"""``report``: a run on one page in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from codex_multi_role.cli.options import QUIET, RUNS_DIR, command, run_argument
from codex_multi_role.cli.output import say
from codex_multi_role.cli.run_additions import find_run
from codex_multi_role.cli.setting import output_file
from codex_multi_role.extensions.pages.report.page import write_report


@command(RUNS_DIR, QUIET, finds=True)
@run_argument
@output_file("-o", "--output", help="Write the report to FILE instead of the run's folder.")
@click.option("--open", "open_it", is_flag=True, help="Open the report in the browser.")
def report(run: str, output: Path | None, open_it: bool, runs_dir: Path, quiet: bool) -> None:
    """Write everything that happened in RUN (default: the latest run) to one file, report.html.

    Every run writes its report when it ends. This command writes it again, also for a run that was killed or is still
    running. The page needs no network, and known secrets are masked.

    \b
    Examples:
      codex-multi-role report --open
      codex-multi-role report -o /tmp/for-a-friend.html
    """
    path = write_report(find_run(run, runs_dir), output).resolve()
    if not quiet:
        say(f"wrote {path}")
    if open_it:
        open_page(path)


def open_page(path: Path) -> None:
    """Show a file in the user's browser, or say that none could be started."""
    if not webbrowser.open(path.resolve().as_uri()):
        say("No browser could be started. Open the file yourself.")
