"""``report`` and ``serve``: runs in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from codex_multi_role.cli.options import QUIET, RUNS_DIR, SERVE, command, run_argument
from codex_multi_role.cli.output import say
from codex_multi_role.errors import UsageError
from codex_multi_role.run_folder import RunFolder

NEEDED = ("starlette", "uvicorn", "sse_starlette")


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

    It is made at the end of every run; this makes it again, also for a run that was killed or still works. It needs
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
        open_page(path)


def open_page(path: Path) -> None:
    """Show a file in the user's browser, or say that none could be started."""
    import webbrowser  # here: few commands need it

    if not webbrowser.open(path.resolve().as_uri()):
        say("No browser could be started: open the file in one.")


@command(*SERVE, short_help="Show the runs in a browser; decide and start there.")
def serve(host: str, port: int, public_url: str | None, runs_dir: Path, roles: Path | None, token: str | None) -> None:
    """Serve pages with all runs below --runs-dir, each of them live: approve, answer, stop, download, start another.

    Only this machine reaches them, unless --host or a proxy makes it otherwise; then a token is needed, which the
    address has that is printed. Ends with Ctrl-C, SIGTERM or its terminal; runs that were started there continue.

    \b
    Examples:
      codex-multi-role serve
      codex-multi-role serve --port 0 --runs-dir ../shop/runs
      codex-multi-role serve --host 0.0.0.0
      codex-multi-role serve --public-url https://runs.example.com
    """
    try:
        from codex_multi_role.web.access import Access  # here: the extra may not be installed
        from codex_multi_role.web.server import serve as serve_pages
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in NEEDED:
            raise
        raise UsageError("pages need the extra web: pip install 'codex-multi-role[web]'") from error

    access = Access.to(host, token, public_url)

    def on_ready(address: str) -> None:
        say(f"The runs in {runs_dir} are shown at {address} (Ctrl-C ends this)")

    serve_pages(runs_dir, roles, access, port, on_ready)
