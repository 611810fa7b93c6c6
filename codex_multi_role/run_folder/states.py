"""The states that a run and the items of its fan-outs went through.

Events are their only source: ``states.json`` is the sum of the events, written before anyone is shown the event that
changes it. The ends of turns that a killed session recorded but did not publish are published here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from codex_multi_role.host.atomic import write_text
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.run_folder.event_log import EventLog, event_of, skim_events
from codex_multi_role.run_folder.events import Record, StateChanged, TurnEnded, TurnStarted
from codex_multi_role.run_folder.folder import RunFolder
from codex_multi_role.run_folder.past import skim_with_inherited
from codex_multi_role.run_folder.turn_folder import REUSED, TurnFolder, origin_in_words

RUN = ""
"""The run itself, in place of a unit's key."""
PENDING, IN_PROGRESS, COMPLETED, FAILED, SKIPPED = "PENDING", "IN_PROGRESS", "COMPLETED", "FAILED", "SKIPPED"
"""The states of an item. A failed one may be retried; a skipped one was not started, or was cancelled."""
OVER = (COMPLETED, SKIPPED)
"""The final states."""


History = Sequence[tuple[str, str, str]]
"""States, each with its time and reason."""


def states_of(unit: str, item: str, history: History) -> dict[str, Any]:
    """``{unit, item, state, reason, history: [{state, at, reason}]}``."""
    told = [{"state": state, "at": at, "reason": reason} for state, at, reason in history]
    return {"unit": unit, "item": item, "state": told[-1]["state"], "reason": told[-1]["reason"], "history": told}


def read_states(folder: RunFolder) -> dict[str, Any]:
    """``{run, items}`` of the run in ``folder``, with what it inherited, as in `states_of`; ``run`` may be null."""
    known = {unit: states_of(unit, *told) for unit, told in _reported(folder).items()}
    return {"run": known.pop(RUN, None), "items": list(known.values())}


def written_state(folder: RunFolder, unit: str) -> str:
    """The state in ``states.json``, which is written just after the event; empty if the file does not have it."""
    try:
        items = read_object(folder.path / "states.json")["items"]
        return next(str(each["state"]) for each in items if each["unit"] == unit)
    except (LookupError, TypeError, StopIteration):
        return ""


def _reported(folder: RunFolder) -> dict[str, tuple[str, list[tuple[str, str, str]]]]:
    """The name and the states of each unit, in order."""
    known: dict[str, tuple[str, list[tuple[str, str, str]]]] = {}
    for event in skim_with_inherited(folder, {StateChanged}):
        if isinstance(event, StateChanged):
            known.setdefault(event.unit, (event.item, []))[1].append((event.state, event.at, event.reason))
    return known


class States:
    """The states of the run that ``events`` belong to, continued from the recorded ones. Threads may share it."""

    def __init__(self, folder: RunFolder, events: EventLog) -> None:
        self._path = folder.path / "states.json"
        self._events = events
        self._known = _reported(folder)
        self._texts = {unit: _as_text(states_of(unit, *told)) for unit, told in self._known.items()}
        if self._texts:
            self._write()  # a kill may have come between an event and the file
        events.keep(self._keep)

    def latest(self, unit: str) -> str:
        """Empty before the first state."""
        return self._known[unit][1][-1][0] if unit in self._known else ""

    def move(self, unit: str, item: str, state: str, reason: str = "") -> None:
        """Set the state of the unit, or of `RUN`, unless it has that state already, for the same or without a reason.

        Raises `StorageError`.
        """
        if self.latest(unit) != state or (reason and self._known[unit][1][-1][2] != reason):
            self._events.publish(StateChanged(unit, item, state, reason))

    def begin(self, items: Mapping[str, tuple[str, str]]) -> None:
        """Set the items (name, title), by their units, to `PENDING` if they have no state. Raises `StorageError`."""
        new = ((unit, *item) for unit, item in items.items() if not self.latest(unit))
        self._events.publish(*(StateChanged(unit, name, PENDING, "", title) for unit, name, title in new))

    def _keep(self, records: Sequence[Record]) -> None:
        changes = [event_of(record) for record in records if record["type"] == StateChanged.type]
        for change in changes:
            if isinstance(change, StateChanged):
                known = self._known.setdefault(change.unit, (change.item, []))
                known[1].append((change.state, change.at, change.reason))
                self._texts[change.unit] = _as_text(states_of(change.unit, *known))
        if changes:
            self._write()

    def _write(self) -> None:
        """Writes the same as `write_json` of `read_states`, reusing the texts of unchanged units."""
        run = self._texts.get(RUN, "null")
        items = ",\n".join(f"    {text}".replace("\n", "\n    ") for unit, text in self._texts.items() if unit != RUN)
        listed = f"[\n{items}\n  ]" if items else "[]"
        indented = run.replace("\n", "\n  ")
        write_text(self._path, f'{{\n  "run": {indented},\n  "items": {listed}\n}}\n')


class ItemStates:
    """Reports each state of one item once, before anything is done in it, and none while a run is replayed.

    `become` sets the item's state, which begins as `PENDING`; `publish` reports it when real work starts, and at the
    end. ``states`` is None if nothing is to be reported.
    """

    def __init__(self, states: States | None, unit: str, item: str) -> None:
        self._states = states
        self._unit = unit
        self._item = item
        self._now = (PENDING, "")

    def become(self, state: str, reason: str = "") -> None:
        self._now = (state, reason)

    def publish(self) -> None:
        """Raises `StorageError`."""
        if self._states is not None:
            self._states.move(self._unit, self._item, *self._now)


def _as_text(summary: dict[str, Any]) -> str:
    return json.dumps(summary, ensure_ascii=False, indent=2)


def unpublished_ends(folder: RunFolder) -> list[TurnEnded]:
    """One event per turn that started and has no published end, in order, at the time of the latest event.

    No process may be working on the run, and `close_unfinished` has marked the turns that a kill cut short.
    """
    at = ""
    running: dict[tuple[str, int], None] = {}
    for event in skim_events(folder.events_path, (TurnStarted, TurnEnded)):
        at = event.at or at
        match event:
            case TurnStarted():
                running[event.role, event.turn] = None
            case TurnEnded():
                running.pop((event.role, event.turn), None)
    turns = ((role, TurnFolder.of(folder, role, number)) for role, number in running)
    return [end_of(role, turn, at) for role, turn in turns if turn.result()]


def end_of(role: str, turn: TurnFolder, at: str = "") -> TurnEnded:
    """The end of the turn as its ``turn.json`` has it."""
    result, handoff = turn.result(), turn.handoff()
    tokens = result.get("tokens", {})
    summary = handoff.get("summary", "") if isinstance(handoff, dict) else ""
    return TurnEnded(
        role=role,
        turn=turn.number,
        status=str(result["status"]),
        outcome=str(result.get("outcome", "")),
        reason=str(result.get("reason", "")),
        input_tokens=tokens.get("input", 0),
        output_tokens=tokens.get("output", 0),
        seconds=result.get("seconds", 0.0),
        summary=turn.redact(str(summary))[:200],
        worked_seconds=result.get("worked_seconds"),
        cost=result.get("cost"),
        reused_from=origin_in_words(result.get(REUSED) or {}),
        at=at,
    )
