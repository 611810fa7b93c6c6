"""What the templates of a flow read of the results of its steps, in the order in which a visit evaluates them.

A reader makes the values that a template sees: each result is unknown and has a path, beginning with whose it is (its
`Source`), so that what is done with it can be told from what is done with others. What the engine says of a step has
a rule instead, by which decisions of one evaluation that no state of the step allows are recognized. A called flow is
read at each of its calls, with the templates of the call as its inputs: what it reads of them is read of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from codex_multi_role.catalog.explorations import (
    Exploration,
    Path,
    Rule,
    StepName,
    ValueUse,
    explore,
    path_text,
    unnoted,
    use_as,
)
from codex_multi_role.catalog.flow_spec import FlowSpec, step_place, steps_below
from codex_multi_role.catalog.flow_steps import NEEDED, filled_in
from codex_multi_role.catalog.shown_fields import OF_COPY, OF_ITEM, OF_STEP
from codex_multi_role.catalog.step_spec import EVERY_ROLE, ForEach, StepSpec
from codex_multi_role.catalog.templates import filled, render, templates_in, value_of_text
from codex_multi_role.catalog.unknown_values import UnknownValue, elements_of, path_of, tries, use
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.result_reads import paths_in
from codex_multi_role.flow.template_reads import Certain, Source, Wanted, certain_reads, plain_path
from codex_multi_role.reading.places import Place
from codex_multi_role.reading.value_types import BOOLEAN, NUMBER, TEXT

T = TypeVar("T")
RESULT = "the flow's result"
NOT_VISITED = {"visits": 0, "status": "not_started", "error": "", "verdict": ""}
MAX_CALLS = 3
"""How deep called flows are followed."""
MAX_ITEMS = 20
"""Of how many items the templates are evaluated."""
Context = Mapping[str, Any]
NO_FAN_OUT = ForEach.model_construct(items=None)


@dataclass(frozen=True)
class ResultRead:
    """One read of a result. ``path``: within the result of the step ``of``, as templates see it.

    ``most``: a fan-out over the list takes no more. ``written``: the whole path, as a template has it. ``compared``:
    the constants with which the value is compared. ``choices``: what the value must be one of.
    """

    of: str
    path: Path
    use: ValueUse
    is_certain: bool
    reader: str
    place: Place
    most: int | None = None
    written: str = ""
    compared: tuple[object, ...] = ()
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class FlowTemplate:
    """A template of a flow, and what it reads in all of its ``contexts``. ``then``: what is done with its value."""

    text: str
    reader: str
    place: Place
    contexts: Callable[[], Iterator[Context]]
    then: Callable[[object], object]
    decides: bool = False
    most: int | None = None
    choices: tuple[str, ...] = ()

    def evaluate(self, fill: Callable[[str, Context], object] = value_of_text) -> object:
        value = None
        for context in self.contexts():
            value = self.then(fill(self.text, context))
        return value

    @cached_property
    def explorations(self) -> Sequence[Exploration]:
        return explore(self.evaluate, decides=self.decides)

    @property
    def failure(self) -> DefinitionError | None:
        """Why it can never be filled in."""
        return tries(lambda: self.evaluate(lambda text, context: render(text, context, self.place))).failure

    def certain(self, wanted: Wanted) -> Certain:
        return certain_reads(self.explorations, wanted)

    def of(self, wanted: Wanted) -> Iterator[ResultRead]:
        """The reads of the wanted source."""
        certain = self.certain(wanted).read
        given = {plain_path(path_of(each.value)) for each in self.explorations}
        notes = dict.fromkeys(
            (note.path[0], plain_path(note.path[1:]), note.use, note.compared)
            for each in self.explorations
            for note in each.notes
            if wanted.source.includes(note.path[0])
        )
        for source, path, as_, compared in notes:
            yield ResultRead(
                source.step.id,
                path,
                as_,
                (path, False) in certain and as_ is not ValueUse.ANY,
                self.reader,
                self.place,
                self.most if as_ is ValueUse.ITEMS else None,
                path_text((source.name, *path)),
                compared,
                self.choices if (source, *path) in given else (),
            )


class StepReads(NamedTuple, Generic[T]):
    """What is read ``before`` a visit's work, ``after`` it, and with each route: its condition, its end's reason."""

    before: T
    after: T
    whens: Sequence[T]
    reasons: Sequence[T]

    @property
    def all(self) -> Iterator[T]:
        yield from (self.before, self.after, *self.whens, *self.reasons)


class FlowReader:
    """Reads the templates of ``flow``, one of ``flows``. ``added``: fields that an answer gets from elsewhere.

    ``callers``: the flows that lead to the call that is read; ``given``: its inputs, as the call's templates, which see
    ``around``, that of each item.
    """

    def __init__(
        self,
        flow: FlowSpec,
        flows: Mapping[str, FlowSpec],
        roles: Sequence[str] = (),
        added: Sequence[str] = (),
        callers: tuple[str, ...] = (),
        given: Mapping[str, object] = {},
        around: Callable[[], Iterator[Context]] = lambda: iter([{}]),
    ) -> None:
        self.flow, self._flows, self._roles, self._added = flow, flows, roles, added
        self._callers, self._given, self._around = callers, given, around
        self._scope = "".join(f"{caller} > " for caller in callers)
        self._called: dict[str, FlowReader | None] = {}
        asked = {
            role: self._answer(Source(self._name(flow, step), role, f"roles.{role}"), given=True)
            for role, step in sole_askers(flow, flows, roles).items()
        }
        self._context: Context = {
            "goal": UnknownValue("goal", type=TEXT),
            **{name: UnknownValue(name, type=NUMBER) for name in ("cycle", "cycles", "index")},
            "vars": UnknownValue(f"{self._scope}vars"),
            "roles": UnknownValue(f"{self._scope}roles", asked, path=(Source(self._name(flow, "")),)),
            "steps": {step.id: self._seen(flow, step, f"{self._scope}steps.{step.id}") for step in flow.steps},
        }
        self._results = {step.id: self._context["steps"][step.id]["results"] for step in flow.steps}

    def _name(self, flow: FlowSpec, step_id: str) -> StepName:
        """A step; those of a called flow are other ones than where it runs alone."""
        return StepName(f"{self._scope}{flow.name}", step_id)

    @cached_property
    def reads(self) -> dict[str, StepReads[Sequence[FlowTemplate]]]:
        """By step, in the flow's order."""
        return {step.id: self.of_step(index) for index, step in enumerate(self.flow.steps)}

    @cached_property
    def of_result(self) -> list[FlowTemplate]:
        """The reads of what a run shows at its end."""
        place, names = Place(self.flow.source), {name: UnknownValue(name) for name in ("files", "tests")}
        reading = _Reading(RESULT, self._reads_results, lambda: ({**each, **names} for each in self._contexts()))
        keys = ("title", "text", "file", "figures")
        return [each for key in keys for each in reading.of(getattr(self.flow.result, key), place / "result" / key)]

    def called(self, step: StepSpec) -> FlowReader | None:
        """Reads the flow that the step calls with parts of results, as it is called there."""
        if step.id not in self._called:
            self._called[step.id] = None
            flow, callers = self._flows.get(step.call or ""), (*self._callers, self.flow.name)
            given = {name: value for name, value in step.with_.items() if self._reads_results(value, step)}
            if flow is not None and flow.name not in callers and given:
                around = partial(self._item_contexts, step)
                reader = FlowReader(flow, self._flows, self._roles, self._added, callers, given, around)
                self._called[step.id] = reader
        return self._called[step.id]

    def _reads_results(self, value: object, step: StepSpec | None = None) -> bool:
        """Whether the templates in ``value`` may read results; in a called flow, those that the call gives."""
        sources: set[tuple[str, ...]] = {("inputs", name) for name in self._given}
        sources |= set() if self._callers else {("steps",), ("roles",), ("results",)}
        if step is not None and step.for_each is not None and self._reads_results(step.for_each.items):
            sources |= {("item",), (step.for_each.as_,), (NEEDED,)}
        return any(path[: len(each)] == each[: len(path)] for path in paths_in(value) for each in sources)

    def without(self, steps: Collection[str]) -> FlowReader:
        """The same before the ``steps`` have been visited."""
        reader = copy(self)
        reader._context = {**self._context, "steps": {**self._context["steps"], **dict.fromkeys(steps, NOT_VISITED)}}
        return reader

    def of_step(self, index: int) -> StepReads[Sequence[FlowTemplate]]:
        step = self.flow.steps[index]
        place, reader = step_place(self.flow, index), f"step {step.id}"
        is_read = partial(self._reads_results, step=step)
        once = _Reading(reader, is_read, self._contexts)
        per_item = _Reading(reader, is_read, lambda: self._item_contexts(step))
        until = _Reading(
            reader, is_read, lambda: ({**each, "results": self._results[step.id]} for each in self._contexts())
        )
        fan_out, around = step.for_each or NO_FAN_OUT, place / "for_each"
        called = self._flows.get(step.call or "")
        inputs = {name: spec.plain_type for name, spec in called.inputs.items()} if called else {}
        before = [
            *once.of(fan_out.items, around / "items", ValueUse.ITEMS, decides=True, most=fan_out.max_items),
            *once.of(fan_out.concurrency, around / "concurrency", ValueUse.NUMBER, decides=True),
            *per_item.of(fan_out.needs, around / "needs", ValueUse.WALKED, decides=True),
            *(per_item.of(step.ask, place / "ask", decides=True, choices=step.roles) if step.roles else ()),
            *(
                each
                for value, at, wanted in filled_in(step, place, inputs)
                for each in per_item.of(value, at, use_as(wanted))
            ),
        ]
        routes = [(route, place / "next" / number) for number, route in enumerate(step.next)]
        return StepReads(
            before,
            [*until.of_condition(fan_out.until, around / "until"), *once.of(step.set, place / "set", decides=True)],
            [once.of_condition(route.when, at / "when") for route, at in routes],
            [once.of(route.reason, at / "reason") for route, at in routes],
        )

    @cached_property
    def _inputs(self) -> Mapping[str, object]:
        unknown = {
            name: UnknownValue(f"{self._scope}inputs.{name}", type=spec.plain_type)
            for name, spec in self.flow.inputs.items()
        }
        return {**unknown, **self._given}

    def _contexts(self) -> Iterator[Context]:
        for around in self._around():
            yield {**self._context, "inputs": UnknownValue("inputs", _Inputs(self._inputs, around))}

    def _item_contexts(self, step: StepSpec) -> Iterator[Context]:
        """What the templates see that are filled in once per item, if the step has some."""
        for context in self._contexts():
            yield from [context] if step.for_each is None else self._items(step, step.for_each, context)

    def _items(self, step: StepSpec, fan_out: ForEach, context: Context) -> Iterator[Context]:
        with unnoted():
            items = [*islice(filled(fan_out.items, context), MAX_ITEMS)]
        needed = []
        if fan_out.needs is not None:
            if isinstance(fan_out.items, list) and not UnknownValue("an item starts"):
                return
            results = elements_of(self._results[step.id])
            needed = [each for each in results if UnknownValue("needed")][:1]
        for index, item in enumerate(items):
            own = {fan_out.as_: item, "item": item, "index": index}
            yield {**context, **own, NEEDED: UnknownValue(NEEDED, elements=needed)}

    def _seen(self, flow: FlowSpec, step: StepSpec, name: str, depth: int = 0) -> UnknownValue:
        """The step as templates see it."""
        of = self._name(flow, step.id)
        fields = {} if depth else _engine_fields(of, name, OF_STEP)
        if step.for_each is None and step.ask != EVERY_ROLE:
            return self._unit(flow, step, name, fields, depth)
        items = [
            self._unit(flow, step, f"{name}.results[]", _item_fields(of, step, name, number), depth)
            for number in (0, 1)
        ]
        by_role = {
            role: self._unit(flow, step, f"{name}.by_role.{role}", _item_fields(of, step, name, 0), depth, role)
            for role in (step.roles if step.asks_at_once else ())
        }
        source = Source(of, EVERY_ROLE, name)
        rule = Rule(of, lambda state: state["visits"])
        if step.ask != EVERY_ROLE:
            fields["results"] = UnknownValue(f"{name}.results", path=(source, "results"), elements=items, rule=rule)
        fields |= {"by_role": UnknownValue(f"{name}.by_role", by_role, path=(source, "by_role"))} if by_role else {}
        return UnknownValue(name, fields, path=(source,))

    def _unit(
        self, flow: FlowSpec, step: StepSpec, name: str, fields: dict[str, Any], depth: int, role: str = ""
    ) -> UnknownValue:
        """What a step or an item leaves, beside the ``fields`` that the engine adds."""
        of = self._name(flow, step.id)
        elsewhere = Source(of, EVERY_ROLE, name)
        fields |= {
            each: UnknownValue(f"{name}.{each}", path=(elsewhere, each)) for each in (OF_COPY if step.isolate else ())
        }
        if step.call is not None:
            called = self._flows.get(step.call) if depth < MAX_CALLS else None
            shown = [each for each in called.steps if called.shows(each.id)] if called else []
            inner = {
                each.id: self._seen(called, each, f"{name}.steps.{each.id}", depth + 1) for each in shown if called
            }
            steps = UnknownValue(f"{name}.steps", inner, path=(elsewhere, "steps"))
            return UnknownValue(name, {**fields, **({"steps": steps} if called else {})}, path=(elsewhere,))
        if step.ask is not None:
            fields["handoff"] = self._answer(Source(of, role, f"{name}.handoff"))
        return self._answer(Source(of, role, name), fields)

    def _answer(self, source: Source, fields: Mapping[str, Any] = {}, *, given: bool = False) -> UnknownValue:
        """``given``: it is the latest of its role, if there is one."""
        added = {each: UnknownValue(each, path=(source._replace(role=EVERY_ROLE), each)) for each in self._added}
        rule = Rule(source.step, lambda state: state["visits"]) if given else None
        return UnknownValue(source.name, {**added, **fields}, path=(source,), rule=rule)


def _engine_fields(of: StepName, name: str, declared: Collection[str]) -> dict[str, Any]:
    types = {"visits": NUMBER, "bad": BOOLEAN}
    return {
        each: UnknownValue(f"{name}.{each}", type=types.get(each, TEXT), rule=Rule(of, itemgetter(each)))
        for each in declared
    }


def _item_fields(of: StepName, step: StepSpec, name: str, index: int) -> dict[str, Any]:
    fields = _engine_fields(item_of(of), name, OF_ITEM) | {"index": index}
    return fields if step.roles else {each: value for each, value in fields.items() if each != "role"}


def item_of(step: StepName) -> StepName:
    """The items of a step, of which the engine says something else."""
    return StepName(step.flow, f"{step.id}[]")


class _Inputs(dict[str, object]):
    """The inputs of a called flow, each filled in when it is first read.

    ``context``: what the templates of the call see.
    """

    def __init__(self, given: Mapping[str, object], context: Context) -> None:
        super().__init__(given)
        self._context, self._filled = context, dict[str, object]()

    def __getitem__(self, name: str) -> object:
        if name not in self._filled:
            with unnoted():
                self._filled[name] = filled(super().__getitem__(name), self._context)
        return self._filled[name]


class _Reading(NamedTuple):
    """Reads the templates that satisfy ``is_read`` in each of the ``contexts`` of one evaluation."""

    reader: str
    is_read: Callable[[object], bool]
    contexts: Callable[[], Iterator[Context]]

    def of(
        self,
        value: object,
        place: Place,
        as_: ValueUse = ValueUse.PASSED,
        *,
        decides: bool = False,
        most: int | None = None,
        choices: tuple[str, ...] = (),
    ) -> list[FlowTemplate]:
        """The templates in ``value``, also inside of lists and mappings."""
        then = partial(use, as_=as_ if isinstance(value, str) else ValueUse.PASSED)
        return [
            FlowTemplate(text, self.reader, at, self.contexts, then, decides, most, choices)
            for text, at in templates_in(value, place)
            if self.is_read(text)
        ]

    def of_condition(self, when: str | None, place: Place) -> list[FlowTemplate]:
        text = f"{{{{ {when} }}}}"
        template = FlowTemplate(text, self.reader, place, self.contexts, bool, decides=True)
        return [template] if when is not None and self.is_read(text) else []


def sole_askers(flow: FlowSpec, flows: Mapping[str, FlowSpec], roles: Sequence[str]) -> dict[str, str]:
    """By role, the only step of ``flow`` that can make its latest handoff; other roles are left out."""
    askers: dict[str, list[str]] = {role: [] for role in roles}
    for step in flow.steps:
        for role in _asked(step, flows, roles):
            askers.setdefault(role, []).append("" if step.call or step.for_each is not None else step.id)
    return {role: steps[0] for role, steps in askers.items() if len(steps) == 1 and steps[0]}


def _asked(step: StepSpec, flows: Mapping[str, FlowSpec], roles: Sequence[str]) -> set[str]:
    """The roles that a step asks, or those of the flow that it calls."""
    asking = (step, *steps_below(flows, step.call or ""))
    return {role for each in asking for role in (roles if each.ask == EVERY_ROLE else each.asked)}
