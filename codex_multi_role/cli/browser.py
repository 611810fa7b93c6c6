"""``report`` and ``serve``: runs in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from codex_multi_role.cli.options import QUIET, RUNS_DIR, SERVE, SHARED_RUNS, command, run_argument
from codex_multi_role.cli.output import say
from codex_multi_role.cli.run_reference import find_run, open_shared
from codex_multi_role.cli.settings import output_file
from codex_multi_role.errors import UsageError

NEEDED = ("starlette", "uvicorn", "sse_starlette")


@command(RUNS_DIR, SHARED_RUNS, QUIET, short_help="Write the report of a run, one HTML page.")
@run_argument
@output_file("-o", "--output", help="Write the report to FILE instead of the run's folder.")
@click.option("--open", "open_it", is_flag=True, help="Open the report in the browser.")
def report(run: str, output: Path | None, open_it: bool, runs_dir: Path, database_url: str | None, quiet: bool) -> None:
    """Write everything that happened in RUN (default: the latest run) to one file, report.html.

    Every run writes its report when it ends. This command writes it again, also for a run that was killed or is still
    running. The page needs no network, and known secrets are masked.

    \b
    Examples:
      codex-multi-role report --open
      codex-multi-role report -o /tmp/for-a-friend.html
    """
    from codex_multi_role.report import write_report  # here: `--help` should not load it

    path = write_report(find_run(run, runs_dir, database_url), output).resolve()
    if not quiet:
        say(f"wrote {path}")
    if open_it:
        open_page(path)


def open_page(path: Path) -> None:
    """Show a file in the user's browser, or say that none could be started."""
    import webbrowser  # here: few commands need it

    if not webbrowser.open(path.resolve().as_uri()):
        say("No browser could be started. Open the file yourself.")


@command(*SERVE, SHARED_RUNS, short_help="Serve live pages of the runs; decide and start runs there.")
def serve(
    host: str,
    port: int,
    public_url: str | None,
    runs_dir: Path,
    roles: Path | None,
    token: str | None,
    database_url: str | None,
) -> None:
    """Serve live pages of all runs in --runs-dir: approve, answer, stop, download, start another run.

    With --database-url also those that its workers execute, the workers and the queues; runs are not started there.

    By default only this machine can reach them. With --host or --public-url, visitors need a token, which is part of
    the printed address. The server ends with Ctrl-C, SIGTERM or its terminal; runs started from its pages continue.

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
        raise UsageError("`serve` needs the extra web: pip install 'codex-multi-role[web]'") from error

    access = Access.to(host, token, public_url)

    shared = open_shared(database_url)

    def on_ready(address: str) -> None:
        more = f", and those of {shared.database}," if shared else ""
        say(f"Serving the runs in {runs_dir}{more} at {address} (Ctrl-C to stop)")

    serve_pages(runs_dir, roles, access, port, on_ready, shared)
