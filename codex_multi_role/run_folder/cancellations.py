"""The cancelled items of a run's fan-outs: ``cancelled/<unit>.json``, written from any process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from codex_multi_role.host.atomic import make_folder, write_json
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_folder.questions import user_name


@dataclass(frozen=True)
class Cancellation:
    """``by``: a user's name. ``at``: ISO 8601, UTC."""

    by: str
    comment: str
    at: str

    @property
    def reason(self) -> str:
        return f"cancelled by {self.by}{f': {self.comment}' if self.comment else ''}"


class Cancellations:
    """The cancellations of the run in ``run_folder``, by the item's unit."""

    def __init__(self, run_folder: Path) -> None:
        self._folder = run_folder / "cancelled"

    def find(self, unit: str) -> Cancellation | None:
        try:
            return Cancellation(**json.loads(self._path(unit).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def cancel(self, unit: str, comment: str = "") -> Cancellation:
        """Request the item's cancellation in the name of this process's user. Raises `StorageError`."""
        cancellation = Cancellation(user_name(), comment, now())
        make_folder(self._path(unit).parent)  # the unit of a called flow has a "/"
        write_json(self._path(unit), asdict(cancellation))
        return cancellation

    def _path(self, unit: str) -> Path:
        return self._folder / f"{unit}.json"
