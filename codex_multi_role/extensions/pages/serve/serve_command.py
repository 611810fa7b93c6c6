"""``serve``: live pages of the runs in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from codex_multi_role.cli.options import ROLES, RUNS_DIR, command
from codex_multi_role.cli.output import say
from codex_multi_role.cli.run_additions import open_remote
from codex_multi_role.cli.setting import Setting, not_empty

HOST = Setting(
    ["--host"],
    trust=True,
    metavar="NAME",
    default="127.0.0.1",
    callback=not_empty,
    help="The address to listen on.",
)
PORT = Setting(
    ["--port"],
    metavar="N",
    type=click.IntRange(0, 65535),
    default=8765,
    help="The port to listen on; 0 chooses a free one.",
)
PUBLIC_URL = Setting(
    ["--public-url"],
    trust=True,
    metavar="URL",
    callback=not_empty,
    help="The public address, if visitors come through a proxy; they then need the token.",
    show_default="none",
)
TOKEN = Setting(
    ["--token"],
    is_secret=True,
    trust=True,
    metavar="TEXT",
    help="The access token for visitors. Set it in the environment: other users can see command lines.",
    show_default="none for this machine only, otherwise generated and printed",
)


@command(HOST, PORT, PUBLIC_URL, RUNS_DIR, ROLES, TOKEN, finds=True)
def serve(
    host: str,
    port: int,
    public_url: str | None,
    runs_dir: Path,
    roles: Path | None,
    token: str | None,
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
    from codex_multi_role.extensions.pages.serve.access import Access  # here: the extra may not be installed
    from codex_multi_role.extensions.pages.serve.server import serve as serve_pages

    remote = open_remote()
    shared = getattr(remote, "shared", None)  # the pages know those of workers only

    def on_ready(address: str) -> None:
        more = f", and those of {remote}," if remote else ""
        say(f"Serving the runs in {runs_dir}{more} at {address} (Ctrl-C to stop)")

    serve_pages(runs_dir, roles, Access.to(host, token, public_url), port, on_ready, shared)
