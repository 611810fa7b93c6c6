"""Walk a run's past again from its journal: does it lead to the start of a fork, or as far as it did before?

Nothing is executed: the walk ends at the first work that is not recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count, takewhile

from codex_multi_role.engine.askers import Asker, Instances, Scope
from codex_multi_role.engine.flow_walk import CallableFlows, FlowWalk
from codex_multi_role.engine.journal_slots import JournalSlots, NothingRecorded, Past, RunHalted
from codex_multi_role.errors import CodexMultiRoleError, ReviewWaiting, UsageError, ending_for
from codex_multi_role.flow import FlowState
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps import RunResources, Unit, Work

HINT = "Up to that point, the flow, its inputs and cycles, and the names and order of the roles must not change."


class PathEnded(NothingRecorded):
    """One path of the walk has reached its end, or would do what the past did not; ``problem`` states what.

    As with a person's missing answer, the other items of a fan-out continue.
    """

    def __init__(self, problem: str) -> None:
        RunHalted.__init__(self, ending_for(ReviewWaiting(problem)))
        self.problem = problem


@dataclass(frozen=True)
class RecordedSlot:
    """A slot of the journal that returns what is recorded and executes nothing. ``seen`` gets the number, if so."""

    step_id: int
    past: Past
    seen: set[int]

    def find(self, name: str, /) -> Json:
        recorded = self.past.get(self.step_id)
        if recorded is None or recorded.name != name:
            was = f'"{recorded.name}"' if recorded else "nothing"
            raise PathEnded(
                f'"{name}" would be recorded at position {self.step_id} of the journal instead of {was} was'
            )
        self.seen.add(self.step_id)
        return recorded.output

    def add(self, name: str, result: Json, /) -> Json:
        raise AssertionError("a rehearsal records nothing")


@dataclass(frozen=True)
class _PastSlots(JournalSlots):
    """The slots up to ``end``, where the checkpoint of a visit must be. ``seen``: those whose record was returned."""

    seen: set[int] = field(default_factory=set)
    end: int = sys.maxsize

    @classmethod
    def of(cls, past: Past, end: int = sys.maxsize) -> _PastSlots:
        seen: set[int] = set()
        return cls(lambda: None, (RecordedSlot(number, past, seen) for number in count(1)), seen=seen, end=end)

    def checkpoint(self) -> int:
        number = super().checkpoint()
        if number >= self.end:
            raise PathEnded("" if number == self.end else "earlier steps would record more")
        return number


class PastUnits:
    """What each unit of a walk was given and has recorded, and how often each of the flow's own steps was visited.

    ``stopped_in``: the visit in which the walk stopped, empty if the walk ended.
    """

    def __init__(self) -> None:
        self.units: dict[str, tuple[Json, list[Json]]] = {}
        self.visits: dict[str, int] = {}
        self.stopped_in = ""

    def watch(self, unit: Unit) -> Unit:
        @contextmanager
        def record(name: str) -> Iterator[Work]:
            try:
                with unit.record(name) as work:
                    yield work
            except RunHalted as halted:
                if halted.ending.is_of_step:
                    self._note(unit, {"failed": halted.ending.reason})
                raise
            self._note(unit, work.result)

        return replace(unit, record=record)

    def _note(self, unit: Unit, recorded: Json) -> None:
        self.units.setdefault(unit.key, (unit.given, []))[1].append(recorded)


def walk_past(
    flows: CallableFlows,
    state: FlowState,
    run: RunResources,
    past: Past,
) -> PastUnits:
    """Walk as far as the past reaches, or up to a value that the flow cannot use: there, the past has ended as well."""
    found = PastUnits()
    ids = _PastSlots.of(past)
    walk = FlowWalk(flows, Scope(run, ids, Asker(run, Instances()), state, found.watch))
    with suppress(RunHalted, CodexMultiRoleError):
        walk.walk()
    found.visits = {name: step.visits for name, step in state.steps.items()}
    running = (f"{name}.{step.visits}" for name, step in state.steps.items() if step.status == "running")
    found.stopped_in = next(running, "")
    return found


def first_difference(before: PastUnits, after: PastUnits) -> tuple[str, str]:
    """The first unit of ``before`` that is missing or different in ``after``, and a ``STEP:VISIT``.

    Up to that visit the two are the same. Both texts are empty if nothing differs.
    """
    fewer = (f"{step}.{visits}" for step, visits in before.visits.items() if after.visits[step] < visits)
    differing = (unit for unit, known in before.units.items() if after.units.get(unit) != known)
    unit = next(differing, next(fewer, ""))
    if not unit:
        return "", ""
    visits = _visits_of(before.units)
    pairs = zip(visits, _visits_of([*after.units, *filter(None, [after.stopped_in])]), strict=False)
    common = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)] or visits[:1]
    (own,) = _visits_of([unit])
    return unit, (own if own in common else common[-1]).replace(".", ":")


def _visits_of(units: Iterable[str]) -> list[str]:
    """The visits of the flow's own steps to which the units belong, in order."""
    return list(dict.fromkeys(".".join(unit.partition("/")[0].split(".")[:2]) for unit in units))


def rehearse(
    flows: CallableFlows,
    state: FlowState,
    run: RunResources,
    past: Past,
    start: tuple[str, int, int],
) -> None:
    """Bring ``state`` to the beginning of the visit ``start`` (step, visit, its journal position).

    Raises `UsageError` if the past does not lead there, `DefinitionError` for a template that fails on the way.
    """
    step, visit, place = start
    ids = _PastSlots.of(past, place)
    walk = FlowWalk(flows, Scope(run, ids, Asker(run, Instances()), state))
    try:
        problem = f"the flow would end earlier, with {walk.walk().outcome}"
    except PathEnded as left:
        problem = left.problem
    except RunHalted as halted:
        problem = halted.ending.reason
    problem = problem or _what_differs(state, ids.seen, past, step, visit)
    if problem:
        raise UsageError(f"the flow {state.flow} does not lead to {step}:{visit} in the same way: {problem}", HINT)


def _what_differs(state: FlowState, seen: set[int], past: Past, step: str, visit: int) -> str:
    there = next(each for each, known in state.steps.items() if known.status == "running")
    if there != step or state.steps[step].visits != visit:
        return f"it would be at {there}:{state.steps[there].visits} there"
    left = [past[number].name for number in sorted(past.keys() - seen)]
    return f'"{left[0]}" would be skipped' if left else ""
