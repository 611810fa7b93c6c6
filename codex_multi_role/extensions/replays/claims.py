"""What a bundle claims of a run, and how the same is read from the folder of any run.

A state of the workspace is the id of its git tree, so that equal ids are equal files, modes and links. Nothing is
claimed that the run did not record and `bundle` did not measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from codex_multi_role.checks.tests import PytestResult
from codex_multi_role.extensions.replays.run_outcome import places_around
from codex_multi_role.extensions.results.run_history import RunHistory
from codex_multi_role.extensions.results.workspace_states import Change
from codex_multi_role.run_folder import skim_with_inherited
from codex_multi_role.run_folder.events import RunEvent, TestsEnded, TestsStarted, TurnEnded, TurnStarted
from codex_multi_role.run_options import A_DAY
from codex_multi_role.workspace.trees import without

Who = tuple[str, int]
"""The role and number of a turn."""
COUNTS = ("passed", "failed", "errors", "skipped")
EVENTS = (TurnStarted, TurnEnded, TestsStarted, TestsEnded)
KILLED = "interrupted"
"""The status of a turn that a resumed run did again; the run that verifies it has no such turn."""

Tree = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]


class _ClaimPart(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ClaimedTurn(_ClaimPart):
    """``turn``: its number among those of the role that were not killed."""

    role: str
    turn: int
    unit: str
    status: str

    @property
    def name(self) -> str:
        return f"turn {self.role} {self.turn}{f', {self.unit}' if self.unit else ''}"


class ClaimedChange(_ClaimPart):
    """As `Change`, with ``turn`` as in `ClaimedTurn`; ``merged`` is the key of a merged copy."""

    role: str
    turn: int
    unit: str
    merged: str
    before: Tree
    after: Tree

    @property
    def name(self) -> str:
        if self.role:
            return f"turn {self.role} {self.turn}{f', {self.unit}' if self.unit else ''}"
        return f"merge of {self.merged}" if self.merged else "between the turns"


class ClaimedTests(_ClaimPart):
    """A test result after a turn of ``role``, or of a check if that is empty. ``failures``: the first failed tests."""

    role: str
    turn: int
    status: str
    passed: int
    failed: int
    errors: int
    skipped: int
    failures: tuple[str, ...]

    @classmethod
    def of(cls, result: TestsEnded | PytestResult, failures: Iterable[str], role: str = "", turn: int = 0) -> Self:
        """``failures``: their names, which each kind of result has in its own way."""
        counts = {name: getattr(result, name) for name in COUNTS}
        return cls(role=role, turn=turn, status=result.status, failures=tuple(sorted(failures)), **counts)

    @property
    def name(self) -> str:
        return f"tests after {self.role} {self.turn}" if self.role else "tests"

    @property
    def words(self) -> str:
        counts = [f"{getattr(self, name)} {name}" for name in COUNTS if getattr(self, name)]
        words = [self.status, *counts, *self.failures]
        return ", ".join(words)


class ObservedRun(_ClaimPart):
    """What is compared of two runs. ``changes``: of the workspace, in order; ``in_copies``: of isolated copies."""

    first: Tree
    changes: tuple[ClaimedChange, ...]
    in_copies: tuple[ClaimedChange, ...]
    turns: tuple[ClaimedTurn, ...]
    tests: tuple[ClaimedTests, ...]
    figures: dict[str, Any]

    @property
    def last(self) -> str:
        return self.changes[-1].after if self.changes else self.first

    @property
    def every_state(self) -> list[str]:
        """Those of copies, too."""
        sides = (side for change in (*self.changes, *self.in_copies) for side in (change.before, change.after))
        return list(dict.fromkeys([self.first, *sides]))

    @property
    def states(self) -> list[str]:
        """The states of the workspace itself."""
        return list(dict.fromkeys([self.first, *(change.after for change in self.changes)]))


class Environment(_ClaimPart):
    """Versions of the programs, and the machine, on which a run was made."""

    codex_multi_role: str
    codex: str
    python: str
    git: str
    machine: str


class Claims(_ClaimPart):
    """``observed``: how the run went; ``tests_before``: its last tests on the first state, None if it ran none.

    ``pytest_cmd`` and ``test_seconds`` are the run's options; all others are in the recording.
    """

    version: Literal[1]
    run: str
    catalog_file: str
    pytest_cmd: str | None
    test_seconds: Annotated[float, Field(gt=0, le=A_DAY)]
    made_with: Environment
    observed: ObservedRun
    tests_before: ClaimedTests | None


def observe(history: RunHistory, started: str, leave_out: Sequence[str] = ()) -> ObservedRun:
    """Read from the run's folder how it went.

    ``started``: the state in which the recording or the replay started, the only one of a run that could change no
    files. ``leave_out``: files of the workspace that are not part of any state.
    """
    reader = _RunReader(history, leave_out)
    workspace = Path(str(history.folder.record().get("workspace", "")))
    figures = (history.folder.record().get("result") or {}).get("figures", {})
    in_copies = (change for key in sorted(history.states.in_copies) for change in history.states.in_copies[key])
    return ObservedRun(
        first=reader.tree(history.states.first or started),
        changes=tuple(reader.changes(history.states.changes)),
        in_copies=tuple(reader.changes(in_copies, in_copies=True)),
        turns=tuple(reader.turns),
        tests=tuple(reader.tests),
        figures=places_around(workspace).named(figures),
    )


class _RunReader:
    """``turns`` and ``tests``: in the order in which they ended."""

    def __init__(self, history: RunHistory, leave_out: Sequence[str]) -> None:
        self.turns: list[ClaimedTurn] = []
        self.tests: list[ClaimedTests] = []
        self._history, self._leave_out = history, leave_out
        self._numbers: dict[Who, int] = {}
        self._units: dict[Who, str] = {}
        self._tested: dict[int, Who] = {}
        for event in skim_with_inherited(history.folder, EVENTS):
            self._observe(event)

    def _observe(self, event: RunEvent) -> None:
        match event:
            case TurnStarted():
                self._units[event.role, event.turn] = event.unit
            case TurnEnded() if event.status != KILLED:
                number = self._numbers[event.role, event.turn] = 1 + sum(each.role == event.role for each in self.turns)
                unit = self._units.get((event.role, event.turn), "")
                self.turns.append(ClaimedTurn(role=event.role, turn=number, unit=unit, status=event.status))
            case TestsStarted():
                self._tested[event.number] = (event.role, event.turn)
            case TestsEnded():
                who = self._tested.get(event.number, ("", 0))
                self.tests.append(ClaimedTests.of(event, event.failures, who[0], self._numbers.get(who, 0)))

    def tree(self, state: str) -> str:
        return without(self._history.git(), self._history.tree(state), self._leave_out)

    def changes(self, changes: Iterable[Change], *, in_copies: bool = False) -> Iterator[ClaimedChange]:
        """Those that changed anything that is not left out."""
        for each in changes:
            before, after = (state if in_copies else self.tree(state) for state in (each.before, each.after))
            if before != after:
                by = {"role": each.role, "unit": each.unit, "merged": each.copy}
                number = self._numbers.get((each.role, each.turn), 0)
                yield ClaimedChange(turn=number, before=before, after=after, **by)
