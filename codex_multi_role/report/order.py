"""What a report has entries for, in the order it began."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.presentation.story import ReportedTurn, Story, TestRun, Visit
from codex_multi_role.run_folder import Question, RunFolder, list_turns


@dataclass(frozen=True)
class Begun:
    """``what``: a check is identified by its folder. Tests after a turn belong to that turn."""

    at: str
    what: ReportedTurn | Question | TestRun | Path


def in_order(folder: RunFolder, story: Story, questions: Sequence[Question]) -> list[Begun]:
    """Return everything that began, earliest first."""
    found = [Begun(turn.began, turn) for turn in _turns(folder, story)]
    found += [Begun(tests.began, tests) for tests in story.tests.values() if not tests.turn]
    found += [Begun(question.asked_at, question) for question in questions]
    found += _checks(folder, story.visits)
    return sorted(found, key=lambda each: each.at)


def _turns(folder: RunFolder, story: Story) -> Iterator[ReportedTurn]:
    """Yield the turns that have events, then those in the folder that have none."""
    yield from story.turns.values()
    last = story.at
    for role, turn in list_turns(folder):
        if (role, turn.number) not in story.turns:
            yield ReportedTurn(role, turn.number, last, last, "unknown")


def _checks(folder: RunFolder, visits: Mapping[tuple[str, int], Visit]) -> Iterator[Begun]:
    top = folder.path / "checks"
    for path in top.rglob("result.json"):
        visit = _visit(path.parent.relative_to(top).as_posix(), visits)
        if visit is not None:
            yield Begun(visit.at, path.parent)


def _visit(key: str, visits: Mapping[tuple[str, int], Visit]) -> Visit | None:
    """Find the visit of a unit's key, ``<step>.<visit>`` or ``<step>.<visit>.<index>``. Ids may contain dots."""
    unit = key
    for _ in range(2):
        unit, _, number = unit.rpartition(".")
        if number.isdecimal() and (unit, int(number)) in visits:
            return visits[unit, int(number)]
    return None
