"""``serve``: the runs in a browser."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.cli.options import SERVE, command
from codex_multi_role.cli.output import say
from codex_multi_role.errors import UsageError

NEEDED = ("starlette", "uvicorn", "sse_starlette")


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
