"""``serve``: live pages of the runs in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from codex_multi_role.cli.options import ROLES, RUNS_DIR, command
from codex_multi_role.cli.output import say
from codex_multi_role.cli.setting import Setting, not_empty
from codex_multi_role.extensions.machines.extension import SHARED_RUNS

if TYPE_CHECKING:
    from codex_multi_role.extensions.machines.workers.shared_runs import SharedRuns

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


@command(HOST, PORT, PUBLIC_URL, RUNS_DIR, ROLES, TOKEN, SHARED_RUNS)
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
    from codex_multi_role.extensions.pages.serve.access import Access  # here: the extra may not be installed
    from codex_multi_role.extensions.pages.serve.server import serve as serve_pages

    shared = _open_shared(database_url)

    def on_ready(address: str) -> None:
        more = f", and those of {shared.database}," if shared else ""
        say(f"Serving the runs in {runs_dir}{more} at {address} (Ctrl-C to stop)")

    serve_pages(runs_dir, roles, Access.to(host, token, public_url), port, on_ready, shared)


def _open_shared(database_url: str | None) -> SharedRuns | None:
    """The runs that workers execute, open until the command ends. Raises `UsageError`, `StorageError`."""
    if database_url is None:
        return None
    from codex_multi_role.extensions.machines.workers.shared_runs import (
        SharedRuns,  # here: a server without workers needs no database
    )

    shared = SharedRuns.open(database_url)
    if shared is not None:
        click.get_current_context().call_on_close(shared.close)
    return shared
