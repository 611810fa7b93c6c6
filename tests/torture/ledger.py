"""What was paid for: the model requests that the playbook server saw, held against what the journal says is done."""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from codex_multi_role.playbook import Ask

TURN = re.compile(r"(?P<role>\S+) (?:turn|repair turn (?P<repair>\d+))")


class Turn(NamedTuple):
    """A turn that somebody pays for. ``visit`` counts the asks of its role from 1, ``repair`` from 0."""

    role: str
    visit: int
    repair: int

    @classmethod
    def of(cls, ask: Ask) -> Turn:
        return cls(ask.role, ask.visit, ask.repair)


def recorded_turns(journal: Path) -> set[Turn]:
    """The turns whose result is in the journal of a run that no process works on; the journal is left as it is."""
    if not journal.exists():
        return set()
    with tempfile.TemporaryDirectory() as name:
        for path in journal.parent.glob(f"{journal.name}*"):
            shutil.copy(path, name)
        with closing(sqlite3.connect(Path(name) / journal.name)) as connection:
            return _turns_in(connection)


def _turns_in(connection: sqlite3.Connection) -> set[Turn]:
    known = "SELECT 1 FROM sqlite_master WHERE name = 'operation_outputs'"
    if connection.execute(known).fetchone() is None:
        return set()
    steps = connection.execute("SELECT function_name FROM operation_outputs ORDER BY function_id")
    visits: Counter[str] = Counter()
    turns = set()
    for (step,) in steps:
        if (match := TURN.fullmatch(step)) is not None:
            visits[match["role"]] += match["repair"] is None
            turns.add(Turn(match["role"], visits[match["role"]], int(match["repair"] or 0)))
    return turns


def in_flight(due: Iterable[Ask], recorded: Container[Turn]) -> Turn | None:
    """The turn that was under way, or about to begin, when no more than ``recorded`` was done; ``due`` is in order."""
    return next((turn for turn in map(Turn.of, due) if turn not in recorded), None)


class Account(NamedTuple):
    """``wrong`` says in words what was paid for too often, or never; ``twice`` counts turns that may be."""

    wrong: list[str]
    twice: int


def audit(due: Mapping[Ask, int], paid: Mapping[Ask, int], free: Turn | None) -> Account:
    """Hold the requests ``paid`` against those ``due``; the turn ``free``, in flight at the kill, may be paid twice."""
    wrong, twice = [], 0
    for ask in sorted({*due, *paid}):
        owed, given = due.get(ask, 0), paid.get(ask, 0)
        if owed < given <= 2 * owed and Turn.of(ask) == free:
            twice += 1
        elif given != owed:
            wrong.append(f"{given} model requests instead of {owed} for {ask}")
    return Account(wrong, twice)
