"""The items of a run's fan-outs: their results, their cancellations, and the names that people use for them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codex_multi_role.errors import UsageError
from codex_multi_role.host.atomic import make_folder, write_json
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_folder.folder import RunFolder, has_reached_end
from codex_multi_role.run_folder.states import OVER, read_states
from codex_multi_role.run_folder.typed_answers import user_name

GIVEN = "given_items"


class ItemResults:
    """The results of the run in ``run_folder``: ``{value, outcome}``, the item from the list and its outcome.

    ``given``: those that the fork in that folder got from its parent, once, when it was made.
    """

    def __init__(self, run_folder: Path, *, given: bool = False) -> None:
        self._folder = run_folder / (GIVEN if given else "items")

    def write(self, unit: str, value: object, outcome: Json) -> None:
        """Raises `StorageError`."""
        _write(_file(self._folder, unit), {"value": value, "outcome": outcome})

    def read(self, unit: str) -> Json | None:
        """None for an item that has not ended."""
        found = read_object(_file(self._folder, unit))
        try:
            return {"value": found["value"], "outcome": dict(found["outcome"])}
        except (LookupError, TypeError, ValueError):
            return None

    def find(self, unit: str, value: object) -> Json | None:
        """The outcome, if the item had this value."""
        found = self.read(unit)
        return found["outcome"] if found is not None and found["value"] == value else None


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
            return Cancellation(**read_object(_file(self._folder, unit)))
        except TypeError:  # not cancelled, or its file is damaged
            return None

    def any(self) -> bool:
        return self._folder.is_dir()

    def cancel(self, unit: str, comment: str = "") -> Cancellation:
        """Request the item's cancellation in the name of this process's user. Raises `StorageError`."""
        cancellation = Cancellation(user_name(), comment, now())
        self.record(unit, cancellation)
        return cancellation

    def record(self, unit: str, cancellation: Cancellation) -> None:
        """Raises `StorageError`."""
        _write(_file(self._folder, unit), asdict(cancellation))


def _file(folder: Path, unit: str) -> Path:
    return folder / f"{unit}.json"


def _write(path: Path, content: Json) -> None:
    make_folder(path.parent)  # the unit of a called flow has a "/"
    write_json(path, content)


def find_task(folder: RunFolder, task: str) -> dict[str, Any]:
    """The entry in `read_states` of the item with that name, unit or number, counted from 1; the last of several.

    Raises `UsageError`, which lists the existing ones.
    """
    items = read_states(folder)["items"]
    found = [each for each in items if task in (each["item"], each["unit"])]
    found = found or [each for each in items if task == str(int(each["unit"].rpartition(".")[2]) + 1)]
    if found:
        return dict(found[-1])
    if not items:
        raise UsageError(
            f"the run {folder.run_id} has not started any tasks", "Tasks are the items of a step with for_each."
        )
    names = list(dict.fromkeys(each["item"] for each in items))
    raise UsageError(f"the run {folder.run_id} has no task '{task}'", f"It has {', '.join(names)}.")


def find_open_task(folder: RunFolder, task: str) -> str:
    """The unit of a task that has not ended. Raises `UsageError`."""
    found = find_task(folder, task)
    if found["state"] in OVER or has_reached_end(folder.record()):
        why = f": {found['reason']}" if found["reason"] else ""
        raise UsageError(
            f"the task {task} of the run {folder.run_id} is {found['state']}{why}",
            f"`{folder.command('fork', '--task', task)}` redoes it.",
        )
    return str(found["unit"])
