"""The database that machines share, open until the command ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from codex_multi_role.host.atomic import make_folder

if TYPE_CHECKING:
    from codex_multi_role.workers.database import Database
    from codex_multi_role.workers.shared_runs import SharedRuns


def open_database(database_url: str | None, runs_dir: Path) -> Database:
    """The database at that address; without one, a file in ``runs_dir``. Raises `UsageError`, `StorageError`."""
    from codex_multi_role.workers.database import Database  # here: most commands need none

    database = Database.open(database_url or f"sqlite:///{make_folder(runs_dir.absolute()) / 'queue.sqlite'}")
    click.get_current_context().call_on_close(database.close)
    return database


def open_shared(database_url: str | None) -> SharedRuns | None:
    """The runs that workers execute; None without a database, or if that is only used for journals.

    Raises `UsageError`, `StorageError`.
    """
    if database_url is None:
        return None
    from codex_multi_role.workers.shared_runs import SharedRuns  # as above

    shared = SharedRuns.open(database_url)
    if shared is not None:
        click.get_current_context().call_on_close(shared.close)
    return shared
