"""Two runs of one flow beside each other, by the visits of its steps: turns, prompts, answers, files and cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.presentation.recorded import changes_of, files_of, read_record, read_turns, status_now, totals_now
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.run_folder import RunFolder, TurnFolder, skim_with_inherited
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.events import StepStarted, TurnStarted

LONGEST_TEXT = 20_000


@dataclass(frozen=True)
class Side:
    """A turn of one of the two runs."""

    role: str
    number: int
    status: str
    seconds: float
    cost: Cost
    prompt: str
    answer: str
    files: list[str]


@dataclass(frozen=True)
class Pair:
    """The turns with the same place in the same visit; None where a run has no such turn."""

    step: str
    one: Side | None
    other: Side | None

    @property
    def differs(self) -> list[str]:
        """In what, of what a person can read."""
        if self.one is None or self.other is None:
            return ["only in one"]
        one, other = vars(self.one), vars(self.other)
        return [name for name in ("status", "prompt", "answer", "files") if one[name] != other[name]]


@dataclass(frozen=True)
class ComparedRun:
    run_id: str
    goal: str
    flow: str
    status: str
    seconds: float
    turns: int
    cost: Cost
    files: dict[str, tuple[int | None, int | None]]

    @classmethod
    def of(cls, folder: RunFolder) -> ComparedRun:
        record = read_record(folder)
        totals = totals_now(folder, record)
        return cls(
            folder.run_id,
            str(record.get("goal") or ""),
            str(record.get("flow") or ""),
            status_now(folder, record),
            float(totals.get("seconds") or 0),
            int(totals.get("turns", 0)),
            Cost.of_totals(totals),
            _files(folder),
        )


@dataclass(frozen=True)
class Comparison:
    """``why_not``: why the visits cannot be compared."""

    one: ComparedRun
    other: ComparedRun
    pairs: list[Pair]
    why_not: str

    @classmethod
    def of(cls, one: RunFolder, other: RunFolder) -> Comparison:
        runs = (ComparedRun.of(one), ComparedRun.of(other))
        if runs[0].flow != runs[1].flow:
            return cls(*runs, [], f"not comparable: one is a run of {runs[0].flow}, the other of {runs[1].flow}")
        sides = (_sides(one), _sides(other))
        places = dict.fromkeys([*sides[0], *sides[1]])
        return cls(*runs, [Pair(place[0], sides[0].get(place), sides[1].get(place)) for place in places], "")

    @property
    def paths(self) -> list[str]:
        return sorted({*self.one.files, *self.other.files})


def _files(folder: RunFolder) -> dict[str, tuple[int | None, int | None]]:
    try:
        return {each.path: (each.added, each.removed) for each in changes_of(folder).files}
    except CodexMultiRoleError:
        return {}


def _sides(folder: RunFolder) -> dict[tuple[str, str, int], Side]:
    """The turns by step and visit, role, and number within both."""
    step, places, counts = "", dict[tuple[str, int], tuple[str, str, int]](), dict[tuple[str, str], int]()
    for event in skim_with_inherited(folder, (StepStarted, TurnStarted)):
        match event:
            case StepStarted():
                step = f"{event.step}:{event.visit}"
            case TurnStarted():
                where = (event.unit or step, event.role)
                counts[where] = counts.get(where, 0) + 1
                places[event.role, event.turn] = (*where, counts[where])
    turns = {(turn["role"], turn["turn"]): turn for turn in read_turns(folder, places)}
    return {place: _side(folder, turns[key]) for key, place in places.items() if key in turns}


def _side(folder: RunFolder, turn: dict[str, Any]) -> Side:
    left = TurnFolder.of(folder, turn["role"], turn["turn"])

    def text(name: str) -> str:
        try:
            with (left.path / name).open(encoding="utf-8", errors="replace") as file:
                return folder.redact(file.read(LONGEST_TEXT))
        except OSError:
            return ""

    return Side(
        turn["role"],
        turn["turn"],
        one_line(turn.get("status", ""), 40),
        float(turn.get("seconds") or 0),
        Cost.of_turn(turn),
        text("prompt.txt"),
        text("assistant_text.txt"),
        sorted(files_of(left)),
    )
