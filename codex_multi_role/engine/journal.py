"""The journal of a run: in the run folder's own file, or in the database that ``--database-url`` names.

Each is imported when it is used: the engine of the database loads slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from codex_multi_role.engine.durable_run import Begin
from codex_multi_role.engine.recorded_step import Past

Journal = Path | str
"""The run's own file, or the URL of a database."""


def open_journal(
    journal: Journal,
    run_id: str,
    warn: Callable[[str], None] = lambda _: None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> AbstractContextManager[Begin]:
    """Open the run's journal for the duration of the block.

    ``warn`` gets a line about each outage of a database; ``is_stopping``: whether the run is to stop, and a wait for
    the database with it. Raises `StorageError` if the journal cannot be used, `UsageError` if a database never can.
    """
    if isinstance(journal, Path):
        from codex_multi_role.engine.journal_file import open_file

        return open_file(journal)
    from codex_multi_role.engine.shared_journal import open_shared

    return open_shared(journal, run_id, warn, is_stopping)


def recorded_steps(journal: Journal, run_id: str) -> Past:
    """What the run has recorded; empty if no session has reached the journal. Raises `StorageError`."""
    if isinstance(journal, Path):
        from codex_multi_role.engine.journal_file import steps_of_file

        return steps_of_file(journal)
    from codex_multi_role.engine.journal_client import shared_steps

    return shared_steps(journal, run_id)
