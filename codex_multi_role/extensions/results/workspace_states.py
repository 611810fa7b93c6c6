"""The states of the workspace that a run went through, in order, and what led from each to the next.

A state is a tree of the run's snapshots. The events say when each was reached; nothing else is kept for this.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from codex_multi_role.run_folder.events import (
    CopyMerged,
    FilesApplied,
    RunEnded,
    RunEvent,
    StepStarted,
    TurnEnded,
    TurnStarted,
)

Trees = tuple[str, str]
"""The states before and after the changes of a turn."""


@dataclass(frozen=True)
class Change:
    """What led from the state ``before`` to ``after``: a turn of ``role``, the merge of ``copy``, or neither of them.

    A change without both came between the turns: a check or a person made it. ``role`` is the process's name,
    ``unit`` the key of the asking unit, empty in a team, or the step in which a change between turns came. ``at``: when
    it was recorded.
    """

    before: str
    after: str
    role: str = ""
    turn: int = 0
    unit: str = ""
    copy: str = ""
    at: str = field(default="", compare=False)


@dataclass(frozen=True)
class CopyStates:
    """``base``: the state that a copy was made of; ``before`` and ``after`` its merge, empty if it changed nothing."""

    base: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class WorkspaceStates:
    """``first``: the state before the first change, empty if the run recorded none. ``changes`` are in order.

    ``in_copies``: the changes of turns in copies of the workspace, in order, by the key of the copy.
    """

    first: str = ""
    changes: tuple[Change, ...] = ()
    in_copies: dict[str, tuple[Change, ...]] = field(default_factory=dict)

    @property
    def last(self) -> str:
        """The latest known state."""
        return self.changes[-1].after if self.changes else self.first


def copy_of(unit: str, copies: Container[str]) -> str:
    """The key of the copy in which ``unit`` works: its own or that of a call around it; empty for the workspace."""
    while unit and unit not in copies:
        unit = unit.rpartition("/")[0]
    return unit


def states_of(
    events: Iterable[RunEvent], trees_of: Callable[[str, int], Trees | None], copies: Mapping[str, CopyStates]
) -> WorkspaceStates:
    """Derive the states from the events of a run, those that it inherited included.

    ``trees_of`` returns what ``(role, turn)`` changed. ``copies``: those of the workspace, by key.
    """
    walk = _Walk(trees_of, copies)
    for event in events:
        walk.observe(event)
    return walk.states


class _Walk:
    """Observes the events one by one. A turn counts when its last event comes: files are applied after its end."""

    def __init__(self, trees_of: Callable[[str, int], Trees | None], copies: Mapping[str, CopyStates]) -> None:
        self.states = WorkspaceStates()
        self._trees_of = trees_of
        self._copies = copies
        self._began: dict[tuple[str, int], tuple[str, int]] = {}
        """The asking unit of each turn, and how many changes there were when it started."""
        self._counted: set[tuple[str, int]] = set()
        self._seen: set[str] = set()
        self._merged: set[str] = set()
        self._step = ""
        self._at = ""

    def observe(self, event: RunEvent) -> None:
        self._at = event.at
        match event:
            case StepStarted() if event.workspace:
                self._reach(event.workspace)
                self._step = event.step
            case RunEnded():
                self._reach(event.workspace)
            case TurnStarted():
                copy = self._copies.get(copy_of(event.unit, self._copies), CopyStates())
                if copy.base not in self._seen:  # what changed since the last event, just before the copy was made
                    self._reach(copy.base)
                self._began[event.role, event.turn] = (event.unit, len(self.states.changes))
            case TurnEnded() | FilesApplied():
                self._count(event.role, event.turn)
            case CopyMerged():
                self._merge(event.copy)

    def _count(self, role: str, turn: int) -> None:
        """Count the changes of a turn once: both events find those of the whole turn."""
        trees = self._trees_of(role, turn)
        if trees is None or (role, turn) in self._counted:
            return
        self._counted.add((role, turn))
        unit, earlier = self._began.get((role, turn), ("", 0))
        if key := copy_of(unit, self._copies):
            in_copy = (*self.states.in_copies.get(key, ()), Change(*trees, role, turn, unit, at=self._at))
            self.states = replace(self.states, in_copies={**self.states.in_copies, key: in_copy})
            return
        before, after = trees
        if len(self.states.changes) == earlier:  # otherwise others changed something during the turn
            self._reach(before)
        self._reach(after, role=role, turn=turn, unit=unit)

    def _merge(self, key: str) -> None:
        """Count the merge of a copy once, and before it those that led to the state it found."""
        copy = self._copies.get(key, CopyStates())
        if copy.after and key not in self._merged:
            self._merged.add(key)
            self._reach(copy.before)
            self._reach(copy.after, copy=key)

    def _reach(self, state: str, **by: str | int) -> None:
        if not state:
            return
        self._seen.add(state)
        if not by and state != self.states.last:  # the check that merges copies has no event of its own
            for key in [key for key, copy in self._copies.items() if copy.after == state]:
                self._merge(key)
        if not self.states.first:
            self.states = replace(self.states, first=state)
        elif state != self.states.last:
            by = by or {"unit": self._step}
            change = Change(self.states.last, state, at=self._at, **by)  # type: ignore[arg-type]  # its own fields
            self.states = replace(self.states, changes=(*self.states.changes, change))
