"""What the templates of a flow read of the results of its steps, in the order in which a visit evaluates them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from codex_multi_role.catalog.flow_expressions import name_or_constant, parse_expression, whole_expression
from codex_multi_role.catalog.flow_inputs import NUMBERS
from codex_multi_role.catalog.flow_spec import FlowSpec, step_place
from codex_multi_role.catalog.flow_steps import NEEDED
from codex_multi_role.catalog.reached_values import (
    UNKNOWN,
    Path,
    ReachedValue,
    TemplateScope,
    elements_of,
    path_text,
    sized_by,
)
from codex_multi_role.catalog.step_spec import EVERY_ROLE, StepSpec
from codex_multi_role.catalog.template_reads import Read, reads_of, reads_of_condition
from codex_multi_role.catalog.value_uses import ValueUse
from codex_multi_role.reading.places import Place

RESULT = "the flow's result"


@dataclass(frozen=True)
class ResultRead:
    """One read of a result. ``path``: within the result of the step ``of``, as templates see it.

    ``role``: if the path is within the latest answer of that role. ``most``: a fan-out over the list takes no more.
    ``is_called``: a flow that calls the step's flow reads it. ``written``: the whole path, as a template has it.
    ``compared``: as in `Read`. ``choices``: what the value must be one of.
    """

    of: str
    path: Path
    use: ValueUse
    is_certain: bool
    reader: str
    place: Place
    most: int | None = None
    role: str = ""
    is_called: bool = False
    written: str = ""
    compared: tuple[object, ...] = ()
    choices: tuple[str, ...] = ()


class StepReads(NamedTuple):
    """``before`` a visit's work, ``after`` it, and with each route: its condition, and the reason of its end."""

    before: tuple[ResultRead, ...]
    after: tuple[ResultRead, ...]
    whens: tuple[tuple[ResultRead, ...], ...]
    reasons: tuple[tuple[ResultRead, ...], ...]

    @property
    def all(self) -> Iterator[ResultRead]:
        for each in (self.before, self.after, *self.whens, *self.reasons):
            yield from each


def reads_of_flow(flow: FlowSpec, sole_askers: Mapping[str, str]) -> list[StepReads]:
    """The reads of each step, in the flow's order. ``sole_askers``: by role, the only step that asks it."""
    return [_StepReader(flow, index, sole_askers).reads() for index in range(len(flow.steps))]


def reads_of_result(flow: FlowSpec, sole_askers: Mapping[str, str]) -> tuple[ResultRead, ...]:
    """The reads of what a run shows at its end."""
    found: list[ResultRead] = []
    for key in ("title", "text", "file", "figures"):
        for read in reads_of(getattr(flow.result, key), TemplateScope(numbers=numbers_of(flow))):
            found += _located(read, RESULT, Place(flow.source, ("result", key)), sole_askers)
    return tuple(found)


def numbers_of(flow: FlowSpec) -> frozenset[object]:
    """The names that are always numbers, as `name_or_constant` gives them."""
    inputs = {("inputs", name) for name, spec in flow.inputs.items() if spec.type in NUMBERS}
    return frozenset({("cycle",), ("cycles",), *inputs, *(("steps", step.id, "visits") for step in flow.steps)})


class _StepReader:
    def __init__(self, flow: FlowSpec, index: int, sole_askers: Mapping[str, str]) -> None:
        self._step = flow.steps[index]
        self._place = step_place(flow, index)
        self._scope = TemplateScope(numbers=numbers_of(flow))
        self._locate = partial(_located, reader=f"step {self._step.id}", sole_askers=sole_askers)

    def reads(self) -> StepReads:
        step, routes = self._step, self._place / "next"
        return StepReads(
            (*self._of_items(), *self._of_work()),
            self._at("set", reads_of(step.set, self._scope)),
            tuple(
                self._located(
                    reads_of_condition(route.when, self._scope) if route.when else (), routes / number / "when"
                )
                for number, route in enumerate(step.next)
            ),
            tuple(
                self._located(reads_of(route.reason, self._scope), routes / number / "reason")
                for number, route in enumerate(step.next)
            ),
        )

    def _of_items(self) -> Iterator[ResultRead]:
        """Of the list of a fan-out, and how many items run at once."""
        step = self._step
        if isinstance(step.for_each, str):
            is_whole = sized_by(step.for_each, self._scope)
            for read in self._at("for_each", reads_of(step.for_each, self._scope, ValueUse.ITEMS)):
                is_list = is_whole and read.use is ValueUse.ITEMS
                yield replace(read, most=step.max_items) if is_list else read
        elif step.for_each is not None:
            yield from self._at("for_each", reads_of(step.for_each, self._scope))
        yield from self._at("concurrency", reads_of(step.concurrency, self._scope, ValueUse.NUMBER))

    def _of_work(self) -> Iterator[ResultRead]:
        """Of what is filled in for the work, once per item if there are some."""
        scope = self._scope_of_work()
        yield from self._at("needs", reads_of(self._step.needs, scope, ValueUse.WALKED))
        if self._step.needs is not None:
            needed = ReachedValue(("steps", self._step.id, "results"), is_certain=False)
            scope = scope._replace(names={**scope.names, NEEDED: needed})
        yield from self._of_choice(scope)
        for key in ("prompt", "review", "show", "with_"):
            yield from self._at(key.rstrip("_"), reads_of(getattr(self._step, key), scope))

    def _of_choice(self, scope: TemplateScope) -> Iterator[ResultRead]:
        """Of the role that an item asks, which is one of a closed list."""
        if self._step.roles and self._step.ask is not None:
            is_path = isinstance(name_or_constant(parse_expression(whole_expression(self._step.ask) or "''")), tuple)
            for read in self._at("ask", reads_of(self._step.ask, scope)):
                yield replace(read, choices=self._step.roles) if is_path else read

    def _scope_of_work(self) -> TemplateScope:
        step = self._step
        if step.for_each is None:
            return self._scope
        is_certain = isinstance(step.for_each, list) and bool(step.for_each) and step.needs is None
        element = elements_of(step.for_each, self._scope) or UNKNOWN
        return self._scope._replace(names=dict.fromkeys((step.as_, "item"), element), is_certain=is_certain)

    def _at(self, key: str, reads: Iterator[Read]) -> tuple[ResultRead, ...]:
        return self._located(reads, self._place / key)

    def _located(self, reads: Iterator[Read] | Sequence[Read], place: Place) -> tuple[ResultRead, ...]:
        return tuple(each for read in reads for each in self._locate(read, place=place))


def _located(read: Read, reader: str, place: Place, sole_askers: Mapping[str, str]) -> Iterator[ResultRead]:
    place = replace(place, path=(*place.path, *read.at))
    found = partial(
        ResultRead, use=read.use, is_certain=read.is_certain, reader=reader, place=place, compared=read.compared
    )
    match read.path:
        case ("steps", str() as step_id, *rest):
            yield found(step_id, tuple(rest), written=path_text(read.path))
        case ("roles", str() as role, *rest) if role in sole_askers:
            yield found(sole_askers[role], tuple(rest), role=role, written=path_text(read.path))


def sole_askers(flow: FlowSpec, flows: Mapping[str, FlowSpec], roles: Sequence[str]) -> dict[str, str]:
    """By role, the only step of ``flow`` that can make its latest handoff; other roles are left out."""
    askers: dict[str, list[str]] = {role: [] for role in roles}
    for step in flow.steps:
        for role in _asked(step, flows, roles, set()):
            askers.setdefault(role, []).append("" if step.call or step.for_each is not None else step.id)
    return {role: steps[0] for role, steps in askers.items() if len(steps) == 1 and steps[0]}


def _asked(step: StepSpec, flows: Mapping[str, FlowSpec], roles: Sequence[str], seen: set[str]) -> set[str]:
    """The roles that a step asks, or those of the flow that it calls."""
    if step.call is not None and step.call in flows and step.call not in seen:
        seen.add(step.call)
        return {role for each in flows[step.call].steps for role in _asked(each, flows, roles, seen)}
    return set(roles) if step.ask == EVERY_ROLE else {*step.asked}
