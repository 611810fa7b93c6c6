"""What the templates of a flow read of the results of its steps, in the order in which a visit evaluates them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from codex_multi_role.catalog.explorations import Exploration, NotedPath, Rule, StepName, explore, unnoted
from codex_multi_role.catalog.flow_expressions import has_expressions
from codex_multi_role.catalog.flow_inputs import InputType
from codex_multi_role.catalog.flow_spec import FlowSpec, step_place
from codex_multi_role.catalog.flow_steps import NEEDED
from codex_multi_role.catalog.shown_fields import OF_COPY, OF_ITEM, OF_STEP
from codex_multi_role.catalog.step_spec import EVERY_ROLE, StepSpec
from codex_multi_role.catalog.template_reads import Certain, Source, Wanted, certain_reads, plain_path
from codex_multi_role.catalog.templates import value_of, value_of_text
from codex_multi_role.catalog.unknown_values import UnknownValue, elements_of, path_of, use
from codex_multi_role.catalog.value_uses import ITEM, Path, ValueUse, path_text
from codex_multi_role.reading.places import Place

RESULT = "the flow's result"
INPUTS = "inputs"
MAX_CALLS = 3
"""How deep the results of called flows are seen."""
MAX_ITEMS = 20
"""Of how many items of a written list the templates are evaluated."""
Context = Mapping[str, Any]
_INPUT_KINDS: Mapping[InputType, tuple[str, ValueUse]] = {
    "list": ("array", ValueUse.ITEMS),
    "mapping": ("object", ValueUse.MAPPING),
    "string": ("string", ValueUse.TEXT),
    "path": ("string", ValueUse.TEXT),
    "integer": ("number", ValueUse.NUMBER),
    "number": ("number", ValueUse.NUMBER),
    "boolean": ("boolean", ValueUse.EQUAL_BOOLEAN),
}


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


class TemplateReads(NamedTuple):
    """What one template reads. ``input``: which part of the inputs of the called flow it gives, if that."""

    explorations: Sequence[Exploration]
    reader: str
    place: Place
    input: Path = ()
    most: int | None = None
    choices: tuple[str, ...] = ()

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

    def given(self) -> Iterator[tuple[Path, NotedPath, bool]]:
        """The parts of results that the template gives as they are, as which input, and whether it always does."""
        if not self.input:
            return
        found = [dict(_parts(each.value)) for each in self.explorations if not each.failed]
        for at, path in dict.fromkeys(each for parts in found for each in parts.items()):
            yield (*self.input, *at), path, all(parts.get(at) == path for parts in found)


def _parts(value: object) -> Iterator[tuple[Path, NotedPath]]:
    if path := path_of(value):
        yield (), plain_path(path)
    elif isinstance(value, UnknownValue):
        yield from (((ITEM,), plain_path(path_of(each))) for each in elements_of(value) if path_of(each))


class StepReads(NamedTuple):
    """``before`` a visit's work, ``after`` it, and with each route: its condition, and the reason of its end."""

    before: Sequence[TemplateReads]
    after: Sequence[TemplateReads]
    whens: Sequence[Sequence[TemplateReads]]
    reasons: Sequence[Sequence[TemplateReads]]

    @property
    def all(self) -> Iterator[TemplateReads]:
        for each in (self.before, self.after, *self.whens, *self.reasons):
            yield from each


class FlowReader:
    """Reads the templates of ``flow``, one of ``flows``. ``added``: fields that an answer gets from elsewhere."""

    def __init__(
        self, flow: FlowSpec, flows: Mapping[str, FlowSpec], roles: Sequence[str] = (), added: Sequence[str] = ()
    ) -> None:
        self._flow, self._flows, self._added = flow, flows, added
        own = StepName(flow.name, "")
        inputs = {
            name: UnknownValue(
                f"inputs.{name}", path=(Source(own, INPUTS, INPUTS), name), kind=_INPUT_KINDS[spec.type][0]
            )
            for name, spec in flow.inputs.items()
        }
        asked = {
            role: self._answer(Source(StepName(flow.name, step), role, f"roles.{role}"), given=True)
            for role, step in sole_askers(flow, flows, roles).items()
        }
        self._context: Context = {
            "goal": UnknownValue("goal", kind="string"),
            INPUTS: UnknownValue(INPUTS, inputs),
            **{name: UnknownValue(name, kind="number") for name in ("cycle", "cycles", "index")},
            "vars": UnknownValue("vars"),
            "roles": UnknownValue("roles", asked, path=(Source(own, EVERY_ROLE, "roles"),)),
            "steps": {step.id: self._seen(flow, step, f"steps.{step.id}") for step in flow.steps},
        }

    def reads(self) -> dict[str, StepReads]:
        """By step, in the flow's order."""
        return {step.id: self._of_step(index, step) for index, step in enumerate(self._flow.steps)}

    def reads_of_result(self) -> list[TemplateReads]:
        """The reads of what a run shows at its end."""
        place, names = Place(self._flow.source), {name: UnknownValue(name) for name in ("files", "tests")}
        reading = _Reading(RESULT, lambda: iter([{**self._context, **names}]))
        keys = ("title", "text", "file", "figures")
        return [each for key in keys for each in reading.of(getattr(self._flow.result, key), place / "result" / key)]

    def _of_step(self, index: int, step: StepSpec) -> StepReads:
        place, reader = step_place(self._flow, index), f"step {step.id}"
        once = _Reading(reader, lambda: iter([self._context]))
        per_item = _Reading(reader, lambda: self._item_contexts(step))
        results = {"results": self._context["steps"][step.id]["results"]} if step.until is not None else {}
        until = _Reading(reader, lambda: iter([{**self._context, **results}]))
        before = [
            *once.of(step.for_each, place / "for_each", ValueUse.ITEMS, decides=True, most=step.max_items),
            *once.of(step.concurrency, place / "concurrency", ValueUse.NUMBER, decides=True),
            *per_item.of(step.needs, place / "needs", ValueUse.WALKED, decides=True),
            *(per_item.of(step.ask, place / "ask", decides=True, choices=step.roles) if step.roles else ()),
            *(each for key in ("prompt", "review", "show") for each in per_item.of(getattr(step, key), place / key)),
            *self._given(step, place / "with", per_item),
        ]
        routes = [(route, place / "next" / number) for number, route in enumerate(step.next)]
        return StepReads(
            before,
            [*until.of_condition(step.until, place / "until"), *once.of(step.set, place / "set", decides=True)],
            [once.of_condition(route.when, at / "when") for route, at in routes],
            [once.of(route.reason, at / "reason") for route, at in routes],
        )

    def _given(self, step: StepSpec, place: Place, reading: _Reading) -> Iterator[TemplateReads]:
        """Of ``with``: of what a role or a check gets, or the inputs of the flow that the step calls."""
        called = self._flows.get(step.call or "")
        for name, value in step.with_.items():
            spec = called.inputs.get(name) if called else None
            found = reading.of(value, place / name, _INPUT_KINDS[spec.type][1] if spec else ValueUse.PASSED)
            for each in found:
                yield each._replace(input=each.place.path[len(place.path) :]) if spec else each

    def _item_contexts(self, step: StepSpec) -> Iterator[Context]:
        """What the templates see that are filled in once per item, if the step has some."""
        if step.for_each is None:
            yield self._context
            return
        with unnoted():
            items = [*islice(_filled(step.for_each, self._context), MAX_ITEMS)]
        needed = []
        if step.needs is not None:
            if isinstance(step.for_each, list) and not UnknownValue("an item starts"):
                return
            results = elements_of(self._context["steps"][step.id]["results"])
            needed = [each for each in results if UnknownValue("needed")][:1]
        for index, item in enumerate(items):
            own = {step.as_: item, "item": item, "index": index}
            yield {**self._context, **own, NEEDED: UnknownValue(NEEDED, elements=needed)}

    def _seen(self, flow: FlowSpec, step: StepSpec, name: str, depth: int = 0) -> UnknownValue:
        """The step as templates see it."""
        of = StepName(flow.name, step.id)
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
        of = StepName(flow.name, step.id)
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
    kinds = {"visits": "number", "bad": "boolean"}
    return {
        each: UnknownValue(f"{name}.{each}", kind=kinds.get(each, "string"), rule=Rule(of, itemgetter(each)))
        for each in declared
    }


def _item_fields(of: StepName, step: StepSpec, name: str, index: int) -> dict[str, Any]:
    fields = _engine_fields(item_of(of), name, OF_ITEM) | {"index": index}
    return fields if step.roles else {each: value for each, value in fields.items() if each != "role"}


def item_of(step: StepName) -> StepName:
    """The items of a step, of which the engine says something else."""
    return StepName(step.flow, f"{step.id}[]")


class _Reading(NamedTuple):
    """Reads templates in each of the ``contexts`` of one evaluation."""

    reader: str
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
    ) -> list[TemplateReads]:
        """The reads of the templates in ``value``, also inside of lists and mappings."""
        if isinstance(value, str) and has_expressions(value):
            found = self._explored(lambda context: use(value_of_text(value, context), as_), decides=decides)
            return [TemplateReads(found, self.reader, place, (), most, choices)]
        inner = (
            value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
        )
        return [each for key, part in inner for each in self.of(part, place / key, decides=decides)]

    def of_condition(self, when: str | None, place: Place) -> list[TemplateReads]:
        if when is None:
            return []
        found = self._explored(lambda context: bool(value_of(when, context)), decides=True)
        return [TemplateReads(found, self.reader, place)]

    def _explored(self, evaluate: Callable[[Context], object], *, decides: bool) -> list[Exploration]:
        def in_all() -> object:
            value = None
            for context in self.contexts():
                value = evaluate(context)
            return value

        return explore(in_all, decides=decides)


def _filled(value: object, context: Context) -> Any:  # noqa: ANN401 - the author's
    if isinstance(value, str):
        return value_of_text(value, context) if has_expressions(value) else value
    if isinstance(value, Mapping):
        return {key: _filled(each, context) for key, each in value.items()}
    return [_filled(each, context) for each in value] if isinstance(value, list | tuple) else value


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
