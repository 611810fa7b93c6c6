"""What a role must answer in a step, because the templates of its flow read it.

A field is required if every way onwards reads it without a guard; of any other, only the type is known, by its use.

How one judges this: the templates themselves are evaluated, with values that note what is done with them, once for
each sequence of decisions (`explorations`). What all evaluations read is certain. Along the ways, what is read one
after the other adds up, and of two ways only what both read is left (`Certain`). Loops are walked until nothing
changes: this begins with "everything is read" and can only shrink, so that it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain

from codex_multi_role.catalog.explorations import ITEM, Path, StepName, ValueUse
from codex_multi_role.catalog.flow_spec import FlowSpec, ways_out
from codex_multi_role.catalog.role_spec import RoleSpec
from codex_multi_role.catalog.step_spec import EVERY_ROLE, StepSpec
from codex_multi_role.flow.answer_requirements import COUNTABLE, Contract, FieldRequirement, beside, not_required_by
from codex_multi_role.flow.result_paths import FlowReader, FlowTemplate, ResultRead, StepReads, item_of
from codex_multi_role.flow.template_reads import Certain, Source, Wanted

ANSWERED: Sequence[Mapping[str, object]] = tuple(
    {"visits": visits, "status": status, "error": error}
    for visits in (1, 2, 100)
    for status, error in (("done", ""), ("failed", "an item failed"))
)
"""What the engine may say of a step once a role has answered in it."""


class Contracts:
    """The contracts of the steps of ``flows``, derived when they are first needed. ``name``: the run's own flow.

    ``roles``: those of the catalog. ``added``: fields that an answer gets from elsewhere.
    """

    def __init__(
        self, flows: Mapping[str, FlowSpec], name: str, roles: Sequence[RoleSpec], added: Collection[str] = ()
    ) -> None:
        self.flows, self.name, self.added = flows, name, tuple(added)
        self._roles = [role.name for role in roles]
        self._finishing = {role.name for role in roles if role.behaviors.can_finish}
        self._contracts: dict[tuple[str, str, str], Contract] = {}
        self._readers: dict[str, FlowReader] = {}

    def of(self, flow: str, step_id: str, role: str) -> Contract:
        """What ``role`` must answer in a step of ``flow``."""
        key = (flow, step_id, role)
        if flow in self.flows and key not in self._contracts:
            step = self.flows[flow].step(step_id)
            wanted = self._answer(flow, step, role)
            self._contracts[key] = tuple(
                _requirements(list(self.reads(flow, step, role)), self._always(flow, step_id, wanted))
            )
        return self._contracts.get(key, ())

    def reads(self, flow: str, step: StepSpec, role: str) -> Iterator[ResultRead]:
        """What is read of the answers of ``role``, with paths within an answer."""
        wanted = self._answer(flow, step, role)
        templates = [each for name in self.flows for each in _all_templates(self._reader(name))]
        for template in (*templates, *self._reader(self.name).of_result):
            yield from template.of(wanted)

    def judged(self, flow: str, step: StepSpec, role: RoleSpec) -> Contract:
        """As `of`, without what the schema of the role or the step decides: what its fields may be."""
        return beside(self.of(flow, step.id, role.name), _schema_of(step, role))

    def for_ask(self, flow: str, step: StepSpec, role: RoleSpec) -> Contract:
        """What the role must answer in the step beyond what its schema, or that of the step, requires."""
        return not_required_by(_schema_of(step, role), self.judged(flow, step, role))

    def _answer(self, flow: str, step: StepSpec, role: str) -> Wanted:
        """An answer of ``role``, and what the engine says of its step, its item, and the calls of the flow."""
        of = StepName(flow, step.id)
        item = {"status": "done", "error": "", "bad": False, "role": role}
        calls = [
            StepName(name, each.id) for name, caller in self.flows.items() for each in caller.steps if each.call == flow
        ]
        called = {item_of(call): [item, {**item, "bad": True}] for call in calls} | dict.fromkeys(calls, ANSWERED)
        is_single = step.for_each is None and step.ask != EVERY_ROLE
        own = [each for each in ANSWERED if each["status"] == "done" or not is_single]
        return Wanted(Source(of, role), {**called, of: own, item_of(of): [item]})

    def _reader(self, flow: str) -> FlowReader:
        if flow not in self._readers:
            self._readers[flow] = FlowReader(self.flows[flow], self.flows, self._roles, self.added)
        return self._readers[flow]

    def _always(self, flow: str, step_id: str, wanted: Wanted, calls: tuple[str, ...] = ()) -> Certain:
        """What every way reads that leads onwards from a step."""
        calling = [(name, step.id) for name, each in self.flows.items() for step in each.steps if step.call == flow]
        known = (*calls, flow)
        ends = [self._always(name, call, wanted, known) for name, call in calling if name not in known]
        ends += [Certain()] if flow == self.name or not ends else []
        return self._ways(self._reader(flow), wanted, reduce(Certain.alternatively, ends)).after(step_id)

    def _ways(self, reader: FlowReader, wanted: Wanted, at_end: Certain) -> _Ways:
        def certain(step: StepSpec, reads: Sequence[FlowTemplate], *, calls: bool = False) -> Certain:
            found = reduce(Certain.then, (each.certain(wanted) for each in reads), Certain())
            called = reader.called(step) if calls else None
            return found.then(self._ways(called, wanted, Certain()).from_start()) if called else found

        return _Ways(reader, certain, at_end, self.may_finish)

    def may_finish(self, step: StepSpec) -> bool:
        """Whether a role may end the run in the step, whatever follows it."""
        return bool(self._finishing) if step.ask == EVERY_ROLE else not self._finishing.isdisjoint(step.asked)


def _schema_of(step: StepSpec, role: RoleSpec) -> Mapping[str, object]:
    return (role.output_schema if step.reply is None else step.reply) or {}


NO_CONTRACTS = Contracts({}, "", ())


def _all_templates(reader: FlowReader) -> Iterator[FlowTemplate]:
    """The templates of a flow, and those of the flows that it calls, as they see what its calls give."""
    for step, own in zip(reader.flow.steps, reader.reads.values(), strict=True):
        yield from chain.from_iterable(own.all)
        if (called := reader.called(step)) is not None:
            yield from _all_templates(called)


class _Ways:
    """What every way through a flow certainly reads; ``at_end``: after its end."""

    def __init__(
        self,
        reader: FlowReader,
        certain: Callable[..., Certain],
        at_end: Certain,
        may_finish: Callable[[StepSpec], bool],
    ) -> None:
        self._flow, self._at_end, self._may_finish = reader.flow, at_end, may_finish
        self._steps = {
            step.id: StepReads(
                certain(step, reads.before, calls=True),
                certain(step, reads.after),
                [certain(step, each) for each in reads.whens],
                [certain(step, each) for each in reads.reasons],
            )
            for step, reads in zip(reader.flow.steps, reader.reads.values(), strict=True)
        }
        everything = reduce(Certain.then, (each for step in self._steps.values() for each in step.all), at_end)
        self._onwards = {step.id: Certain(everything.read) for step in self._flow.steps}

    def after(self, step_id: str) -> Certain:
        """What is read from the end of a step's work on, until it is visited again."""
        self._settle(step_id)
        index = [step.id for step in self._flow.steps].index(step_id)
        return self._after(index, is_start=True)

    def from_start(self) -> Certain:
        self._settle("")
        return self._onwards[self._flow.steps[0].id]

    def _settle(self, step_id: str) -> None:
        """Find what is read from the start of each step on; the visit of ``step_id`` ends it."""
        changed = True
        while changed:
            changed = False
            for index in reversed(range(len(self._flow.steps))):
                step = self._flow.steps[index]
                found = self._steps[step.id].before.then(Certain() if step.id == step_id else self._after(index))
                changed = changed or found != self._onwards[step.id]
                self._onwards[step.id] = found

    def _after(self, index: int, *, is_start: bool = False) -> Certain:
        step, routes = self._flow.steps[index], ways_out(self._flow, index)
        own = self._steps[step.id]
        onwards = Certain()
        for number in reversed(range(len(routes))):
            target = routes[number].to
            reason, when = (each[number] if number < len(each) else Certain() for each in (own.reasons, own.whens))
            taken = reason.then(self._at_end) if target is None else self._onwards[target]
            onwards = when.then(taken if number == len(routes) - 1 else taken.alternatively(onwards))
        onwards = own.after.then(onwards)
        return onwards.alternatively(self._at_end) if self._may_finish(step) and not is_start else onwards


def _requirements(reads: Sequence[ResultRead], always: Certain) -> Iterator[FieldRequirement]:
    """The requirements by path, in the order in which the flow reads them."""
    uses: dict[Path, list[tuple[ValueUse, ResultRead]]] = {}
    for read in reads:
        for length, part in enumerate(read.path[1:], 1):
            inside = ValueUse.MAPPING if isinstance(part, str) else ValueUse.WALKED
            uses.setdefault(read.path[:length], []).append((inside, read))
        uses.setdefault(read.path, []).append((read.use, read))
    for path, found in uses.items():
        requirement = _requirement(
            path, [use for use, _ in found], tuple(dict.fromkeys(read for _, read in found)), always
        )
        if requirement.says_something:
            yield requirement


def _requirement(
    path: Path, uses: Sequence[ValueUse], reads: tuple[ResultRead, ...], always: Certain
) -> FieldRequirement:
    types = {use.type for use in uses} - {""}
    is_counted = not types and ValueUse.COUNTED in uses and ValueUse.ANY not in uses
    certain = types.pop() if len(types) == 1 and ValueUse.ANY not in uses else COUNTABLE if is_counted else ""
    most = [each.most for each in reads if each.path == path and each.most is not None]
    chosen = [set(each.choices) for each in reads if each.path == path and each.choices]
    return FieldRequirement(
        path,
        reads,
        is_required=(path, False) in always.read and path[-1] is not ITEM,
        takes_null=(path, True) not in always.read,
        type=certain,
        is_decided=not types and certain in ("", COUNTABLE) and ValueUse.DECIDED in uses and ValueUse.ANY not in uses,
        most=min(most, default=None) if certain == "array" else None,
        choices=tuple(sorted(set.intersection(*chosen))) if chosen else (),
    )
