"""The states that a run and the items of its fan-outs went through.

Events tell them, and nothing else knows them: ``states.json`` is what the events add up to, written before anyone is
shown the event that changes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from codex_multi_role.run_folder.atomic import write_text
from codex_multi_role.run_folder.event_log import EventLog
from codex_multi_role.run_folder.events import Record, StateChanged
from codex_multi_role.run_folder.folder import RunFolder
from codex_multi_role.run_folder.past import events_with_inherited

RUN = ""
"""In place of a unit's key: the run itself."""
PENDING, IN_PROGRESS, COMPLETED, FAILED, SKIPPED = "PENDING", "IN_PROGRESS", "COMPLETED", "FAILED", "SKIPPED"
"""The states of an item. One that failed may be tried again; a skipped one was not begun, or cancelled."""
OVER = (COMPLETED, SKIPPED)
"""Those after which nothing comes."""


class ToldStates:
    """What ``records`` tell of states: by the key of the unit, in order."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._told: dict[str, list[Record]] = {}
        for record in records:
            self.apply(record)

    def apply(self, record: Record) -> bool:
        """Take in one event; whether it told a state."""
        if record["type"] != "state_changed":
            return False
        self._told.setdefault(record["unit"], []).append(record)
        return True

    def latest(self, unit: str) -> str:
        """Empty before the first."""
        told = self._told.get(unit)
        return str(told[-1]["state"]) if told else ""

    def as_json(self) -> dict[str, Any]:
        """``{run, items}``, each ``{unit, item, state, reason, history: [{state, at, reason}]}``, the run's or null."""
        told = dict(self.summaries())
        return {"run": told.pop(RUN, None), "items": list(told.values())}

    def summaries(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each unit and its state, as in `as_json`."""
        return ((unit, self.summary(unit)) for unit in self._told)

    def summary(self, unit: str) -> dict[str, Any]:
        records = self._told[unit]
        history = [{name: each[name] for name in ("state", "at", "reason")} for each in records]
        return {**{name: records[-1][name] for name in ("unit", "item", "state", "reason")}, "history": history}


def read_states(folder: RunFolder) -> dict[str, Any]:
    """As `ToldStates.as_json`, of the run in ``folder`` with what it inherited."""
    return ToldStates(events_with_inherited(folder)).as_json()


class States:
    """The states of the run that ``events`` belong to; it goes on from those it had. Threads may share it."""

    def __init__(self, folder: RunFolder, events: EventLog) -> None:
        self._path = folder.path / "states.json"
        self._events = events
        self._known = ToldStates(events_with_inherited(folder))
        self._texts = {unit: _as_text(summary) for unit, summary in self._known.summaries()}
        if self._texts:
            self._write()  # a kill may have come between an event and the file
        events.subscribe(self._take_in)

    def latest(self, unit: str) -> str:
        return self._known.latest(unit)

    def move(self, unit: str, item: str, state: str, reason: str = "") -> None:
        """The unit, or `RUN`, is in ``state`` now; nothing where it is already. Raises `StorageError`."""
        if self._known.latest(unit) != state:
            self._events.publish(StateChanged(unit, item, state, reason))

    def _take_in(self, record: Record) -> None:
        if self._known.apply(record):
            unit = record["unit"]
            self._texts[unit] = _as_text(self._known.summary(unit))
            self._write()

    def _write(self) -> None:
        """As `write_json` would write `ToldStates.as_json`, with the texts of what has not changed since."""
        run = self._texts.get(RUN, "null")
        items = ",\n".join(f"    {text}".replace("\n", "\n    ") for unit, text in self._texts.items() if unit != RUN)
        listed = f"[\n{items}\n  ]" if items else "[]"
        indented = run.replace("\n", "\n  ")
        write_text(self._path, f'{{\n  "run": {indented},\n  "items": {listed}\n}}\n')


class ItemStates:
    """What is told of one item: each state once, before anything is done in it, and none when a run is replayed.

    `become` says what the item is in; `tell` is called when something is really done, and at its end. ``states`` is
    None where nothing is to be told.
    """

    def __init__(self, states: States | None, unit: str, item: str) -> None:
        self._states = states
        self._unit = unit
        self._item = item
        self._now = (PENDING, "")
        if states is not None and not states.latest(unit):
            self.tell()

    def become(self, state: str, reason: str = "") -> None:
        self._now = (state, reason)

    def tell(self) -> None:
        """Raises `StorageError`."""
        if self._states is not None:
            self._states.move(self._unit, self._item, *self._now)


def _as_text(summary: dict[str, Any]) -> str:
    return json.dumps(summary, ensure_ascii=False, indent=2)
