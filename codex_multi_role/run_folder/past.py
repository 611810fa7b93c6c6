"""A run's past at the start of a step's visit, and how a fork inherits it.

inherited_events.jsonl   in a fork: the events of the earlier runs, up to the start of the fork
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from codex_multi_role.host.atomic import make_folder, storage_errors, write_text
from codex_multi_role.run_folder.event_log import read_event_records, read_events, skim_events
from codex_multi_role.run_folder.events import (
    ReviewAnswered,
    ReviewAsked,
    RunEnded,
    RunEvent,
    StepStarted,
    TestsStarted,
    TurnStarted,
)
from codex_multi_role.run_folder.folder import RunFolder
from codex_multi_role.run_folder.turn_folder import INHERITED, TurnFolder

BY_UNIT = ("checks", "reviews")
"""Folders of the run with the data of a unit or a turn under its key: ``<step>.<visit>``, and possibly more."""


@dataclass(frozen=True)
class Beginning:
    """Where a visit of a step of the run's own flow started.

    ``place`` is its place in the journal; ``workspace`` the workspace's state then among the run's snapshots, empty if
    nothing in the run could change it; ``position`` the number of earlier events.
    """

    step: str
    visit: int
    place: int
    workspace: str
    position: int

    @property
    def key(self) -> str:
        return f"{self.step}.{self.visit}"


def events_with_inherited(folder: RunFolder) -> list[RunEvent]:
    """All events of the run, after those that it inherited from earlier runs."""
    return [*read_events(folder.inherited_events_path), *read_events(folder.events_path)]


def skim_with_inherited(folder: RunFolder, wanted: Collection[type[RunEvent]]) -> Iterator[RunEvent]:
    """The same events as far as they are ``wanted``; see `skim_events`."""
    return chain(skim_events(folder.inherited_events_path, wanted), skim_events(folder.events_path, wanted))


def beginnings(events: Iterable[RunEvent]) -> list[Beginning]:
    """Every visit of a step of the run's own flow, in order.

    A resumed run reports its current visit again: the first report counts, when nothing of the visit was done.
    """
    found: dict[str, Beginning] = {}
    for position, event in enumerate(events):
        if isinstance(event, StepStarted) and event.journal_step:
            began = Beginning(event.step, event.visit, event.journal_step, event.workspace, position)
            found.setdefault(began.key, began)
    return list(found.values())


START, NOW = "start", "now"
"""Points of a run: before its first step, or that of the run it was forked from; and the latest recorded state."""


def state_at(folder: RunFolder, point: str) -> str:
    """The workspace's state at `START`, ``STEP:VISIT``, a question's key or `NOW`; empty if it was not recorded."""
    state = ""
    for event in skim_with_inherited(folder, (StepStarted, ReviewAsked, RunEnded)):
        here = ""
        match event:
            case StepStarted():
                state, here = event.workspace or state, f"{event.step}:{event.visit}"
            case RunEnded():
                state = event.workspace or state
            case ReviewAsked():  # it waits at the state of its step
                here = event.key
        if point == here or (point == START and state):
            return state
    return state if point == NOW else ""


def decision_before(folder: RunFolder, key: str) -> str:
    """The key of the last question that a person answered before the question ``key`` was asked; `START` without."""
    last = START
    for event in skim_with_inherited(folder, (ReviewAsked, ReviewAnswered)):
        match event:
            case ReviewAsked() if event.key == key:
                break
            case ReviewAnswered():
                last = event.key
    return last


def inherit(parent: RunFolder, fork: RunFolder, events: Sequence[RunEvent], start: Beginning) -> None:
    """Copy everything before ``start`` to ``fork``; ``events`` are the parent's, including its inherited ones.

    The turns are marked as inherited, because the fork did not pay for them. Raises `StorageError`.
    """
    past = events[: start.position]
    turns = {(event.role, event.turn) for event in past if isinstance(event, TurnStarted)}
    for role, number in turns:
        inherit_turn(parent, fork, role, number)
    for number in {event.number for event in past if isinstance(event, TestsStarted)}:
        _copy(parent.path / "tests" / f"{number:03d}", fork.path / "tests" / f"{number:03d}")
    keys = {each.key: each.position < start.position for each in beginnings(events)}
    keys |= {f"{role}.turn_{number:03d}": True for role, number in turns}
    for name in BY_UNIT:
        for path in _of_past_units(parent.path / name, keys):
            _copy(path, fork.path / name / path.name)
    records = chain.from_iterable(map(read_event_records, (parent.inherited_events_path, parent.events_path)))
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in islice(records, start.position))
    write_text(fork.inherited_events_path, "".join(lines))


def inherit_turn(parent: RunFolder, fork: RunFolder, instance: str, number: int) -> None:
    """Copy a turn, marked as inherited. Raises `StorageError`."""
    turn, copy = TurnFolder.of(parent, instance, number), TurnFolder.of(fork, instance, number)
    if turn.path.is_dir():
        _copy(turn.path, copy.path)
        copy.write_result({**turn.result(), INHERITED: True})


def _of_past_units(folder: Path, past: dict[str, bool]) -> Iterator[Path]:
    """Entries of ``folder`` whose key is over according to ``past``. Ids may have dots, so the longest key applies."""
    with contextlib.suppress(FileNotFoundError):
        for path in folder.iterdir():
            name = path.name.removesuffix(".json")
            keys = [key for key in past if name == key or name.startswith(f"{key}.")]
            if keys and past[max(keys, key=len)]:
                yield path


def _copy(source: Path, target: Path) -> None:
    make_folder(target.parent)
    with storage_errors(target):
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy2(source, target)
