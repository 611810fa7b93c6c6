"""The result of each fan-out item: ``items/<unit>.json``, for people, and for a run that repeats one of them."""

from __future__ import annotations

import json
from pathlib import Path

from codex_multi_role.host.atomic import make_folder, write_json
from codex_multi_role.reading.json_types import Json


class ItemResults:
    """The results of the run in ``run_folder``: ``{value, outcome}``, the item from the list and its outcome."""

    def __init__(self, run_folder: Path) -> None:
        self._folder = run_folder / "items"

    def write(self, unit: str, value: object, outcome: Json) -> None:
        """Raises `StorageError`."""
        make_folder(self._path(unit).parent)  # the unit of a called flow has a "/"
        write_json(self._path(unit), {"value": value, "outcome": outcome})

    def read(self, unit: str) -> Json | None:
        """None for an item that has not ended."""
        try:
            found = json.loads(self._path(unit).read_text(encoding="utf-8"))
            return {"value": found["value"], "outcome": dict(found["outcome"])}
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def find(self, unit: str, value: object) -> Json | None:
        """The outcome, if the item had this value."""
        found = self.read(unit)
        return found["outcome"] if found is not None and found["value"] == value else None

    def _path(self, unit: str) -> Path:
        return self._folder / f"{unit}.json"
