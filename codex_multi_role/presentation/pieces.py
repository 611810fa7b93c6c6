"""The parts of what happens in a run: pieces of work, turns, test runs, roles, and what they used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from sys import intern
from typing import Any

from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.states import COMPLETED, FAILED, IN_PROGRESS, SKIPPED, states_of

STARTING, READY, WORKING, REPAIRING = "starting", "ready", "working", "repairing"
RUNNING, INTERRUPTED = "running", "interrupted"
AT_WORK = frozenset({WORKING, REPAIRING})
ENDED_TASKS = frozenset({COMPLETED, FAILED, SKIPPED})


@dataclass(slots=True)
class Used:
    """What turns that have ended, and those that run, have used; ``turns``: those that have ended."""

    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Cost = field(default_factory=Cost)
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def add(self, input_tokens: int, output_tokens: int, cost: Cost) -> None:
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.cost += cost


@dataclass(slots=True)
class RoleNow(Used):
    """One process of a role. ``state``: a constant of this module or, after a turn, its status.

    ``turn``: the number of its latest. ``last``: its current tool or command or, after a turn, what it said.
    ``task``: the name of the one it works on. ``is_awaited``: the session started its process at once. ``cycle``: the
    latest in which a turn of it has ended.
    """

    name: str = ""
    state: str = STARTING
    turn: int = 0
    working_since: str = ""
    last: str = ""
    task: str = ""
    is_awaited: bool = False
    cycle: int = 0
    has_cost: bool = False
    """Whether a turn of it has ended, or has used something."""

    @property
    def doing(self) -> str:
        """``T2: command: pytest -q``."""
        return ": ".join(filter(None, (self.task, self.last)))


@cache
def _shared(*names: str) -> tuple[str, ...]:
    """The same names as one object, however many test runs have them."""
    return names


@dataclass(slots=True)
class TestRun:
    """``role`` and ``turn``: after which turn it ran; ``turn`` 0: a check of the flow, or the end of the run."""

    __test__ = False
    number: int
    role: str
    turn: int
    began: str
    ended: str = ""
    names: tuple[str, ...] = ("status",)
    values: tuple[Any, ...] = (RUNNING,)

    @property
    def told(self) -> dict[str, Any]:
        """As ``result.json``, as far as the event has it and it is not empty; only a status until they end."""
        return dict(zip(self.names, self.values, strict=True))

    def end(self, at: str, told: Mapping[str, Any]) -> None:
        """A dict for each of thousands of test runs would be too much."""
        self.ended, self.names, self.values = at, _shared(*told), tuple(told.values())


@dataclass(slots=True)
class ReportedTurn:
    """``ended`` is empty without a recorded end. ``summary``: what the turn says of itself, or why it failed.

    ``attempt``: after failures of Codex. ``piece``: the key of what it belongs to. ``ignored``: why its DONE did not
    count. ``cost``: None until it used something, and if its model has no price.
    """

    role: str
    number: int
    began: str
    ended: str = ""
    status: str = RUNNING
    summary: str = ""
    piece: str = ""
    attempt: int = 1
    repair_of: int | None = None
    continues: int | None = None
    inherited: bool = False
    written: int = 0
    ignored: str = ""
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    is_counted: bool = False
    tests: tuple[TestRun, ...] = ()


@dataclass(slots=True)
class WorkPiece:
    """A piece of the run's work: a visit of a step or, if ``is_task``, an item of its fan-out; the run is the first.

    ``key``: that of its unit. ``attempt``: in which try of its caller it is. ``bad``: what its result says against it.
    ``said``: what a person answered. ``transitions``: its states, each followed by its time and reason. ``parts``:
    items, or steps of the flow that it calls.
    """

    key: str
    name: str
    title: str = ""
    is_task: bool = False
    attempt: int = 1
    began: str = ""
    ended: str = ""
    bad: str = ""
    is_met: bool = False
    said: str = ""
    transitions: tuple[str, ...] = ()
    parts: Sequence[WorkPiece] = ()
    turns: tuple[ReportedTurn, ...] = ()
    tests: tuple[TestRun, ...] = ()
    """Those of no turn."""

    @property
    def state(self) -> str:
        """One of those of a task; empty before the first."""
        return self.transitions[-3] if self.transitions else ""

    @property
    def reason(self) -> str:
        return self.transitions[-1] if self.transitions else ""

    @property
    def history(self) -> list[tuple[str, str, str]]:
        """Its states, each with its time and reason."""
        return [*zip(self.transitions[::3], self.transitions[1::3], self.transitions[2::3], strict=True)]

    @property
    def flaw(self) -> str:
        """What speaks against it although it is completed; or against a task of it, unless its ``until`` is met."""
        own = self.bad or (self.reason if self.state == COMPLETED else "")
        return own or next((task.flaw for task in self.tasks if task.flaw and not self.is_met), "")

    @property
    def step(self) -> str:
        """The step's id, after the unit that called its flow."""
        return self.key.rpartition(".")[0]

    @property
    def visit(self) -> int:
        return int(self.key.rpartition(".")[2])

    @property
    def is_called(self) -> bool:
        """Whether it is in a flow that the run's flow called."""
        return "/" in self.key

    @property
    def label(self) -> str:
        """``T1 slug_words``: its name and its title."""
        return self.name if self.title in ("", self.name) else f"{self.name} {self.title}"

    @property
    def tasks(self) -> list[WorkPiece]:
        return [part for part in self.parts if part.is_task]

    def everything(self) -> Iterator[WorkPiece]:
        """Itself and all below it, in order."""
        yield self
        for part in self.parts:
            yield from part.everything()

    def all_turns(self) -> list[ReportedTurn]:
        return [turn for each in self.everything() for turn in each.turns]

    def last_tests(self) -> TestRun | None:
        """The latest test run in it."""
        found = [tests for each in self.everything() for tests in each.tests]
        found += [tests for turn in self.all_turns() for tests in turn.tests]
        return max(found, key=lambda each: each.number, default=None)

    def add(self, part: WorkPiece) -> None:
        if not isinstance(self.parts, list):  # an empty one for each of thousands of pieces would be too much
            self.parts = []
        self.parts.append(part)

    def move(self, state: str, at: str, reason: str = "") -> None:
        self.began = self.began or (at if state == IN_PROGRESS else "")
        self.ended = at if state in ENDED_TASKS else ""
        self.transitions = (*self.transitions, intern(state), at, reason)

    def end(self, state: str, at: str, reason: str = "") -> None:
        """End it, and what in it did not end by itself."""
        for part in self.parts:
            if not part.is_task and not part.ended:
                part.end(state, at)
        self.move(state, at, reason)

    def states(self) -> dict[str, Any]:
        """As in ``states.json``."""
        return states_of(self.key, self.name, self.history)

    def as_json(self) -> dict[str, Any]:
        """Its place in the tree, with everything below it."""
        own = {
            name: getattr(self, name) for name in ("name", "title", "state", "reason", "bad", "said", "began", "ended")
        }
        turns = [{"role": turn.role, "turn": turn.number, "attempt": turn.attempt} for turn in self.turns]
        tests, parts = [tests.number for tests in self.tests], [part.as_json() for part in self.parts]
        return {"unit": self.key, **own, "turns": turns, "tests": tests, "parts": parts}


@dataclass
class WorkDone:
    """What counts towards the run's ``limits`` (as in `RunStarted`): turns started, and ``seconds`` as of ``at``.

    Waiting for a person does not count.
    """

    limits: dict[str, float] = field(default_factory=dict)
    turns: int = 0
    seconds: float = 0.0
    at: str = ""


@dataclass
class WrittenFiles:
    """Those in answers. ``paths``: each once; ``written`` and ``skipped`` count every time."""

    paths: dict[str, None] = field(default_factory=dict)
    written: int = 0
    skipped: int = 0

    @property
    def in_words(self) -> str:
        written = len(self.paths) or self.written  # a log of an earlier version names none
        return f"{written} written" + (f", {self.skipped} skipped" if self.skipped else "")


@dataclass(frozen=True)
class Note:
    """Something to know that does not belong to a turn. ``who``: the type of the event of an extension."""

    began: str
    words: str
    who: str = ""
    is_warning: bool = False
