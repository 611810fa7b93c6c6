"""What the journal of a run recorded."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path


def recorded_steps(journal: Path) -> dict[int, str]:
    """What is in the journal of a run without a process, by its place; the journal is left as it is."""
    if not journal.exists():
        return {}
    with tempfile.TemporaryDirectory() as name:
        for path in journal.parent.glob(f"{journal.name}*"):
            shutil.copy(path, name)
        with closing(sqlite3.connect(Path(name) / journal.name)) as connection:
            known = "SELECT 1 FROM sqlite_master WHERE name = 'steps'"
            if connection.execute(known).fetchone() is None:
                return {}
            return dict(connection.execute("SELECT position, name FROM steps"))
