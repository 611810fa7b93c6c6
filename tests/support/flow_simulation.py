"""Runs without Codex: a flow is walked as the engine walks it, and what the steps come to is decided by chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, RoleSpecCatalog, StepSpec, render
from codex_multi_role.catalog.step_spec import AskStep, ForEach
from codex_multi_role.flow import FlowState, GoTo, Terms, WalkBound, WorstCase, after, may_call, new_state
from tests.support.flows import CATALOG, CHECK_SECONDS, ROLES
from tests.support.simulated_clock import Clock, Pause, Side, Turn, Work

MOST_ITEMS = 3
MOST_VISITS = 400
STEPS_PER_ASK = 16
ATTEMPTS = 3
PAUSES = (60.0, 60.0)
"""Before a prompt is sent the second and the third time."""


class TooLong(Exception):
    """The run was given up; what it came to so far must keep to the bound as well."""


def any_result(chance: Random) -> dict[str, Any]:
    """What a step leaves: every field that conditions of `tests.support.random_flows` read, with any value."""
    items = [{"status": chance.choice(["done", "failed"]), "bad": chance.random() < 0.5} for _ in range(2)]
    told = {
        "said": chance.choice(["ok", ""]),
        "verdict": chance.choice(["ok", "failed"]),
        "exit_code": chance.randint(0, 3),
    }
    flags = {name: chance.random() < 0.5 for name in ("approved", "failed", "met")}
    return {**told, **flags, "results": items}


@dataclass
class Team:
    """The processes of a run: ``peak`` of each role, as one that is let go is kept for the next who needs it."""

    in_use: Counter[str] = field(default_factory=Counter)
    peak: Counter[str] = field(default_factory=Counter)

    def hold(self, role: str, held: set[str]) -> None:
        """Take a process of ``role``, unless it is ``held`` already."""
        if role not in held:
            held.add(role)
            self.in_use[role] += 1
            self.peak |= self.in_use

    def give_back(self, held: set[str]) -> None:
        """Give back the processes that are ``held``."""
        self.in_use.subtract(held)


@dataclass
class Row:
    """Places in the journal; more than ``size`` of them there are not."""

    size: int
    used: int = 0

    def draw(self, number: int) -> None:
        """Use ``number`` places. Raises `AssertionError` if there are not so many left."""
        self.used += number
        assert self.used <= self.size


@dataclass(frozen=True)
class Place:
    """A walk, and what is its own; ``under_way`` are the flows it is in, itself the last.

    ``held``: the roles of which it has a process, alone with the walks it calls.
    """

    state: FlowState
    under_way: tuple[str, ...]
    bound: WalkBound
    row: Row
    held: set[str]


class Simulation:
    """One run of ``flows``. ``bound`` is what its walks must keep to wherever they are; `run` tells what it came to.

    ``bad_luck``: how often a number is the highest it can be; else it is any. ``processes``: the most that are alive at
    once, None for any number.
    """

    def __init__(
        self,
        flows: Mapping[str, FlowSpec],
        terms: Terms,
        chance: Random,
        *,
        bad_luck: float = 0.0,
        processes: int | None = None,
        catalog: RoleSpecCatalog = CATALOG,
    ) -> None:
        self._flows = flows
        self._terms = terms
        self._chance = chance
        self._catalog = catalog
        self._bad_luck = bad_luck
        self._most_processes = processes
        self._clock = Clock(processes)
        self._team = Team()
        self._visits = 0
        self._turns = 0
        self._repair_turns = 0
        self._prompts = 0
        self._worked = 0.0

    def run(self, name: str, bound: WalkBound) -> WorstCase:
        """Walk the flow ``name`` once; what that took."""
        row = Row(bound.effort.records)
        with suppress(TooLong):
            self._clock.run(self._whole(Place(self._state(name, {}), (name,), bound, row, set())))
        needed = self._team.peak.total()
        return WorstCase(
            turns=self._turns,
            repair_turns=self._repair_turns,
            prompts=self._prompts,
            processes=needed if self._most_processes is None else min(needed, self._most_processes),
            seconds=self._clock.now,
            seconds_one_by_one=self._worked,
            records=row.used,
        )

    def _state(self, name: str, inputs: Mapping[str, object]) -> FlowState:
        flow = self._flows[name]
        return new_state(flow, "goal", flow.resolve_inputs(inputs), self._terms.cycles)

    def _lasting(self, kind: type[Pause] | type[Turn], seconds: float) -> Pause | Turn:
        self._worked += seconds
        return kind(seconds)

    def _whole(self, place: Place) -> Work:
        yield from self._walk(place)
        for step in self._flows[place.state.flow].finally_:
            yield from self._unit(step, place, {})

    def _walk(self, place: Place) -> Work:
        flow = self._flows[place.state.flow]
        move: object = GoTo(flow.steps[0])
        while isinstance(move, GoTo):
            self._visits += 1
            if self._visits > MOST_VISITS:
                raise TooLong
            place.state.enter(move.step.id)
            place.row.draw(self._number(0, 2))
            fan_out = move.step.for_each
            yield from self._unit(move.step, place, {}) if fan_out is None else self._fan_out(move.step, fan_out, place)
            place.row.draw(0 if fan_out is not None or move.step.isolate is None else 1)
            place.state.leave(move.step.id, any_result(self._chance))
            move = after(flow, move.step, place.state)

    def _fan_out(self, step: StepSpec, fan_out: ForEach, place: Place) -> Work:
        """Each item begins as soon as there is room for it, with places in the journal that were drawn for it."""
        size = place.bound.unit_records[step.id]
        given: list[Any] = list(range(self._number(0, fan_out.max_items or 0)))
        if isinstance(fan_out.items, list):
            given = fan_out.items
        place.row.draw(len(given) * (size if step.isolate is None else size + 1) + (1 if fan_out.until else 0))
        items = [
            self._item(
                self._chosen(step, item), replace(place, row=Row(size), held=set()), {"item": item, "index": index}
            )
            for index, item in enumerate(given)
        ]
        needs = self._needs(len(items)) if fan_out.needs else ()
        yield Side(items, self._at_once(fan_out, place), needs, lambda: fan_out.until is not None and self._is_lucky())

    def _chosen(self, step: StepSpec, item: object) -> StepSpec:
        """With the role that the item asks."""
        if not step.roles:
            return step
        return step.asking(str(item) if step.asks_at_once else self._chance.choice(step.roles))

    def _needs(self, items: int) -> list[list[int]]:
        """Each may wait for those before it, and at worst does."""
        return [[other for other in range(index) if self._number(0, 1)] for index in range(items)]

    def _item(self, step: StepSpec, place: Place, item: Mapping[str, Any]) -> Work:
        try:
            yield from self._unit(step, place, item)
        finally:
            self._team.give_back(place.held)

    def _at_once(self, fan_out: ForEach, place: Place) -> int:
        unknown = isinstance(fan_out.concurrency, str) and "steps" in fan_out.concurrency
        given = self._number(1, MOST_ITEMS) if unknown else render(fan_out.concurrency, place.state.context(), "")
        return int(given)

    def _unit(self, step: StepSpec, place: Place, item: Mapping[str, Any]) -> Work:
        """Ends with its limit, of which only checks have one here: their pauses wait for nothing else."""
        seconds = step.limits.seconds
        place.row.draw(0 if seconds is None else 2)
        end = math.inf if seconds is None else self._clock.now + seconds
        for wanted in self._tries(step, place, item):
            yield (
                replace(wanted, seconds=min(wanted.seconds, end - self._clock.now))
                if isinstance(wanted, Pause)
                else wanted
            )
            if self._clock.now >= end:
                return

    def _tries(self, step: StepSpec, place: Place, item: Mapping[str, Any]) -> Work:
        """All but the last one fail."""
        pauses = self._number(0, step.retry.attempts - 1) if step.retry else 0
        place.row.draw(pauses)
        yield from self._once(step, place, item)
        for pause in range(pauses):
            yield self._lasting(Pause, (step.retry.backoff_seconds if step.retry else 0.0) * 2.0**pause)
            yield from self._once(step, place, item)

    def _once(self, step: StepSpec, place: Place, item: Mapping[str, Any]) -> Work:
        if step.ask is not None:
            for role in ROLES if step.ask == EVERY_ROLE else [step.ask]:
                yield from self._ask(step, role, place)
        elif step.call is not None:
            yield from self._call(step, place, item)
        else:
            place.row.draw(self._number(1, 2) if step.review else 1)
            after = step.review.after if step.review is not None else None
            longest = CHECK_SECONDS if step.check else after.seconds if after is not None else 0.0
            yield self._lasting(Pause, longest * self._number(0, 2) / 2)

    def _ask(self, step: AskStep, role: str, place: Place) -> Work:
        self._team.hold(role, place.held)
        more_steps = self._catalog.role(role).max_steps
        place.row.draw(self._number(1, STEPS_PER_ASK + more_steps))
        continued = self._number(0, more_steps)
        repairs = self._number(0, self._terms.repair_attempts)
        self._turns += 1 + continued
        self._repair_turns += repairs
        most = step.limits.turn_seconds or ROLES[role]
        for _ in range(1 + continued + repairs):
            yield from self._prompt(most)
        if CATALOG.role(role).may_change_workspace:
            yield self._lasting(Pause, self._terms.test_seconds * self._number(0, 2) / 2)

    def _prompt(self, most: float) -> Work:
        """Sent again until it is answered."""
        failures = self._number(0, ATTEMPTS - 1)
        for pause in PAUSES[:failures]:
            yield self._attempt(most)
            yield self._lasting(Pause, pause)
        yield self._attempt(most)

    def _attempt(self, most: float) -> Pause | Turn:
        self._prompts += 1
        return self._lasting(Turn, most * self._number(1, 10) / 10)

    def _call(self, step: StepSpec, place: Place, item: Mapping[str, Any]) -> Work:
        assert (step.id in place.bound.called) == may_call(step, place.under_way)
        if step.id not in place.bound.called:
            return
        name, bound = str(step.call), place.bound.called[step.id]
        inputs = render(step.with_, {**place.state.context(), **item}, "with")
        row = Row(bound.effort.records)
        try:
            yield from self._walk(Place(self._state(name, inputs), (*place.under_way, name), bound, row, place.held))
        finally:
            place.row.draw(row.used)

    def _number(self, least: int, most: int) -> int:
        return most if self._chance.random() < self._bad_luck else self._chance.randint(least, most)

    def _maybe(self) -> bool:
        return self._chance.random() < 0.5

    def _is_lucky(self) -> bool:
        return self._maybe() and self._chance.random() >= self._bad_luck
