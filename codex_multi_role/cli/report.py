"""``report``: a run as one page for a browser."""

from __future__ import annotations

from pathlib import Path

import click

from codex_multi_role.cli.options import QUIET, RUNS_DIR, command, run_argument
from codex_multi_role.cli.output import say
from codex_multi_role.run_folder import RunFolder


@command(RUNS_DIR, QUIET, short_help="Write a run as one page for a browser: report.html.")
@run_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it to this file instead of the run's folder.",
)
@click.option("--open", "open_it", is_flag=True, help="Show it in the browser.")
def report(run: str, output: Path | None, open_it: bool, runs_dir: Path, quiet: bool) -> None:
    """Write all that happened in RUN (an id, a unique prefix of one, or `latest`) as one file: report.html.

    It is made at the end of every run; this makes it again, for a run that was killed or still goes on, too. It needs
    no network, and known secrets are masked in it.

    \b
    Examples:
      codex-multi-role report latest --open
      codex-multi-role report latest -o /tmp/for-a-friend.html
    """
    from codex_multi_role.report import write_report  # here: `--help` should not load it

    path = write_report(RunFolder.find(runs_dir, run), runs_dir, output).resolve()
    if not quiet:
        say(f"wrote {path}")
    if open_it:
        import webbrowser  # here: only --open needs it

        if not webbrowser.open(path.as_uri()):
            say("No browser could be started: open the file in one.")
