"""Runs without Codex: a flow is walked as the engine walks it, and what the steps come to is decided by chance."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, StepSpec, render
from codex_multi_role.flow import FlowState, GoTo, WalkBound, WorstCase, after, may_call, new_state

from .flows import ROLES
from .generated import MOST_ITEMS

MOST_VISITS = 400
STEPS_PER_ASK = 16


class TooLong(Exception):
    """The run was given up; what it came to so far must keep to the bound as well."""


@dataclass
class Processes:
    """The processes of one walk, or of one item of a fan-out: ``held`` until it ends, ``peak`` with those of items."""

    held: set[str] = field(default_factory=set)
    peak: Counter[str] = field(default_factory=Counter)

    def hold(self, role: str) -> None:
        self.held.add(role)
        self.peak |= Counter(self.held)


@dataclass
class Row:
    """Places in the journal; more than ``size`` of them there are not."""

    size: int
    used: int = 0

    def draw(self, number: int) -> None:
        self.used += number
        assert self.used <= self.size


@dataclass(frozen=True)
class Place:
    """A walk, and what is its own; ``under_way`` are the flows it is in, itself the last."""

    state: FlowState
    under_way: tuple[str, ...]
    bound: WalkBound
    row: Row
    processes: Processes


class Simulation:
    """One run of ``flows``. ``bound`` is what its walks must keep to wherever they are; `run` tells what it came to."""

    def __init__(self, flows: Mapping[str, FlowSpec], cycles: int, repairs: int, chance: Random) -> None:
        self._flows = flows
        self._cycles = cycles
        self._repairs = repairs
        self._chance = chance
        self._visits = 0
        self._turns = 0
        self._repair_turns = 0

    def run(self, name: str, bound: WalkBound) -> WorstCase:
        row, processes, seconds = Row(bound.effort.records), Processes(), 0.0
        with suppress(TooLong):
            seconds = self._walk(Place(self._state(name, {}), (name,), bound, row, processes))
        return WorstCase(self._turns, self._repair_turns, processes.peak.total(), seconds, row.used)

    def _state(self, name: str, inputs: Mapping[str, object]) -> FlowState:
        flow = self._flows[name]
        return new_state(flow, "goal", flow.resolve_inputs(inputs), self._cycles)

    def _walk(self, place: Place) -> float:
        flow = self._flows[place.state.flow]
        seconds = 0.0
        move: object = GoTo(flow.steps[0])
        while isinstance(move, GoTo):
            self._visits += 1
            if self._visits > MOST_VISITS:
                raise TooLong
            place.state.enter(move.step.id)
            place.row.draw(self._chance.randint(0, 2))
            fans_out = move.step.for_each is not None
            seconds += self._fan_out(move.step, place) if fans_out else self._unit(move.step, place, {})
            place.row.draw(0 if fans_out or move.step.isolate is None else 1)
            place.state.leave(move.step.id, {"red": self._maybe(), "green": self._maybe()})
            move = after(flow, move.step, place.state)
        return seconds

    def _fan_out(self, step: StepSpec, place: Place) -> float:
        """Each item begins as soon as there is room for it, with places in the journal that were drawn for it."""
        size = place.bound.unit_records[step.id]
        given = (
            step.for_each if isinstance(step.for_each, list) else range(self._chance.randint(0, step.max_items or 0))
        )
        at_once = self._at_once(step, place)
        ends: list[float] = []
        running: list[tuple[float, Counter[str]]] = []
        for index, item in enumerate(given):
            begin = heapq.heappop(ends) if len(ends) == at_once else 0.0
            place.row.draw(size if step.isolate is None else size + 1)
            apart = replace(place, row=Row(size), processes=Processes())
            end = begin + self._unit(step, apart, {"item": item, "index": index})
            heapq.heappush(ends, end)
            running = [each for each in running if each[0] > begin] + [(end, apart.processes.peak)]
            place.processes.peak |= sum((peak for _, peak in running), Counter(place.processes.held))
        return max(ends, default=0.0)

    def _at_once(self, step: StepSpec, place: Place) -> int:
        unknown = isinstance(step.concurrency, str) and "steps" in step.concurrency
        given = self._chance.randint(1, MOST_ITEMS) if unknown else render(step.concurrency, place.state.context(), "")
        return int(given)

    def _unit(self, step: StepSpec, place: Place, item: Mapping[str, Any]) -> float:
        if step.retry is None:
            return self._once(step, place, item)
        pauses = self._chance.randint(0, step.retry.attempts - 1)
        place.row.draw(pauses)
        waited = step.retry.backoff_seconds * sum(2.0**pause for pause in range(pauses))
        return waited + sum(self._once(step, place, item) for _ in range(1 + pauses))

    def _once(self, step: StepSpec, place: Place, item: Mapping[str, Any]) -> float:
        if step.ask is not None:
            return sum(self._ask(step, role, place) for role in (ROLES if step.ask == EVERY_ROLE else [step.ask]))
        if step.call is not None:
            return self._call(step, place, item)
        place.row.draw(self._chance.randint(1, 2) if step.review else 1)
        return self._chance.choice([0.0, step.time_limit_seconds or 0.0])

    def _ask(self, step: StepSpec, role: str, place: Place) -> float:
        place.processes.hold(role)
        place.row.draw(self._chance.choice([1, STEPS_PER_ASK]))
        repairs = self._chance.randint(0, self._repairs)
        self._turns += 1
        self._repair_turns += repairs
        most = step.limits.turn_seconds if step.limits and step.limits.turn_seconds else ROLES[role]
        return sum(most * self._chance.choice([0.1, 1.0]) for _ in range(1 + repairs))

    def _call(self, step: StepSpec, place: Place, item: Mapping[str, Any]) -> float:
        assert (step.id in place.bound.called) == may_call(step, place.under_way)
        if step.id not in place.bound.called:
            return 0.0
        name, bound = str(step.call), place.bound.called[step.id]
        inputs = render(step.with_, {**place.state.context(), **item}, "with")
        row = Row(bound.effort.records)
        try:
            return self._walk(Place(self._state(name, inputs), (*place.under_way, name), bound, row, place.processes))
        finally:
            place.row.draw(row.used)

    def _maybe(self) -> bool:
        return self._chance.random() < 0.5
