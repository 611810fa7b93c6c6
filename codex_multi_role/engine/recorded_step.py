"""What a journal holds, wherever it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codex_multi_role.errors import StorageError
from codex_multi_role.reading.json_types import Json

JOURNAL_VERSION = "2"
"""Incremented when recorded steps change their order or meaning; a journal of another version cannot be resumed."""


@dataclass(frozen=True)
class RecordedStep:
    """A recorded step: what was done, and its result."""

    name: str
    output: Json


Past = Mapping[int, RecordedStep]
"""The recorded steps of a run by their positions."""


def require_version(journal: object, version: str | None) -> None:
    """Raise `StorageError` if this program cannot read a journal of that ``version``."""
    if version != JOURNAL_VERSION:
        raise StorageError(
            f"the journal {journal} has version {version or 'unknown'}, this program writes {JOURNAL_VERSION}",
            "Use the version of codex-multi-role that `run.json` names.",
        )
