"""What a role must answer in a step, because the templates of its flow read it.

A field is required if every way onwards reads it without a guard; of any other, only the type is known, by its use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from codex_multi_role.catalog.answer_needs import COUNTABLE, Contract, Need, beside, not_required_by
from codex_multi_role.catalog.flow_spec import FlowSpec, ways_out
from codex_multi_role.catalog.reached_values import ITEM, Path
from codex_multi_role.catalog.result_paths import ResultRead, StepReads, reads_of_flow, reads_of_result, sole_askers
from codex_multi_role.catalog.role_spec import RoleSpec
from codex_multi_role.catalog.step_spec import EVERY_ROLE, StepSpec
from codex_multi_role.catalog.value_uses import ValueUse

OF_STEP = frozenset({"visits", "status", "error", "verdict"})
OF_ITEM = frozenset({"index", "status", "error", "bad"})
"""What templates see of a step, or of an item, instead of fields of these names in an answer."""
TAKE_NULL = frozenset({ValueUse.ANY, ValueUse.PASSED, ValueUse.DECIDED})
Element = tuple[Path, bool]
"""A path that is read; and whether null will not do there."""
Accept = Callable[[ResultRead], ResultRead | None]
"""The read with its path within an answer; None if it reads something else."""


class Contracts:
    """The contracts of the steps of ``flows``, derived when they are first needed. ``name``: the run's own flow.

    ``roles``: those of the catalog. ``added``: fields that an answer gets from elsewhere.
    """

    def __init__(
        self, flows: Mapping[str, FlowSpec], name: str, roles: Sequence[RoleSpec], added: Collection[str] = ()
    ) -> None:
        self.flows, self.name, self.added = flows, name, frozenset(added)
        self._roles = [role.name for role in roles]
        self._finishing = {role.name for role in roles if role.behaviors.can_finish}
        self._contracts: dict[tuple[str, str, str], Contract] = {}
        self._reads: dict[str, _FlowReads] = {}

    def of(self, flow: str, step_id: str, role: str) -> Contract:
        """What ``role`` must answer in a step of ``flow``."""
        key = (flow, step_id, role)
        if flow in self.flows and key not in self._contracts:
            step = self.flows[flow].step(step_id)
            always = self._always(flow, step_id, partial(self._in_answer, step, role), ())
            self._contracts[key] = tuple(_needs(list(self.reads(flow, step, role)), always))
        return self._contracts.get(key, ())

    def reads(self, flow: str, step: StepSpec, role: str) -> Iterator[ResultRead]:
        """What is read of the answers of ``role``, with paths within an answer."""
        return self._all(flow, partial(self._in_answer, step, role), ())

    def judged(self, flow: str, step: StepSpec, role: RoleSpec) -> Contract:
        """As `of`, without what the schema of the role or the step decides: what its fields may be."""
        return beside(self.of(flow, step.id, role.name), _schema_of(step, role))

    def for_ask(self, flow: str, step: StepSpec, role: RoleSpec) -> Contract:
        """What the role must answer in the step beyond what its schema, or that of the step, requires."""
        return not_required_by(_schema_of(step, role), self.judged(flow, step, role))

    def _in_answer(self, step: StepSpec, role: str, read: ResultRead) -> ResultRead | None:
        if read.of != step.id or read.role not in ("", role) or (step.ask == EVERY_ROLE and not read.role):
            return None
        path, hidden = read.path, frozenset() if read.role or read.is_called else OF_STEP
        if step.for_each is not None:
            is_own = step.asks_at_once and path[:2] == ("by_role", role)
            if not is_own and path[:2] != ("results", ITEM):
                return None
            path, hidden = path[2:], OF_ITEM
        if hidden and path[:1] == ("handoff",):
            path, hidden = path[1:], frozenset()
        return replace(read, path=path) if path and path[0] not in hidden | self.added else None

    def _reads_of(self, flow: str) -> _FlowReads:
        if flow not in self._reads:
            self._reads[flow] = _FlowReads.of(self.flows[flow], self.flows, self._roles, is_run=flow == self.name)
        return self._reads[flow]

    def _all(self, flow: str, accept: Accept, calls: tuple[str, ...]) -> Iterator[ResultRead]:
        """The reads of ``flow``, and of those that call it."""
        yield from self._reads_of(flow).accepted(accept)
        for caller, _, inner in self._callers(flow, accept, calls):
            yield from self._all(caller, inner, (*calls, flow))

    def _always(self, flow: str, step_id: str, accept: Accept, calls: tuple[str, ...]) -> frozenset[Element]:
        """What every way reads that leads onwards from a step."""
        reads = self._reads_of(flow)
        ends = [_elements(filter(None, map(accept, reads.of_result)))] if flow == self.name else []
        for caller, call, inner in self._callers(flow, accept, calls):
            ends.append(self._always(caller, call, inner, (*calls, flow)))
        at_end = frozenset.intersection(*ends) if ends else frozenset()
        return _Ways(self.flows[flow], reads, accept, at_end, self.may_finish).after(step_id)

    def _callers(self, flow: str, accept: Accept, calls: tuple[str, ...]) -> Iterator[tuple[str, str, Accept]]:
        """The steps that call ``flow``, each with what makes of its reads those of the called flow."""
        for caller in self.flows.values():
            for step in caller.steps:
                if step.call == flow and caller.name not in (*calls, flow):
                    yield caller.name, step.id, partial(_through_call, step, accept)

    def may_finish(self, step: StepSpec) -> bool:
        """Whether a role may end the run in the step, whatever follows it."""
        return bool(self._finishing) if step.ask == EVERY_ROLE else not self._finishing.isdisjoint(step.asked)


def _schema_of(step: StepSpec, role: RoleSpec) -> Mapping[str, object]:
    return (role.output_schema if step.reply is None else step.reply) or {}


NO_CONTRACTS = Contracts({}, "", ())


def _through_call(call: StepSpec, accept: Accept, read: ResultRead) -> ResultRead | None:
    path = read.path
    if read.of != call.id or read.role:
        return None
    if call.for_each is not None:
        path = path[2:] if path[:2] == ("results", ITEM) else ()
    match path:
        case ("steps", str() as step_id, *rest):
            return accept(replace(read, of=step_id, path=tuple(rest), is_called=True))
    return None


class _FlowReads(NamedTuple):
    steps: Mapping[str, StepReads]
    of_result: tuple[ResultRead, ...]

    @classmethod
    def of(cls, flow: FlowSpec, flows: Mapping[str, FlowSpec], roles: Sequence[str], *, is_run: bool) -> _FlowReads:
        askers = sole_askers(flow, flows, roles)
        reads = zip(flow.steps, reads_of_flow(flow, askers), strict=True)
        return cls({step.id: each for step, each in reads}, reads_of_result(flow, askers) if is_run else ())

    def accepted(self, accept: Accept) -> Iterator[ResultRead]:
        for reads in (*(each.all for each in self.steps.values()), self.of_result):
            yield from filter(None, map(accept, reads))


class _Ways:
    """What every way through a flow reads, in the answer that ``accept`` looks for; ``at_end``: after its end."""

    def __init__(
        self,
        flow: FlowSpec,
        reads: _FlowReads,
        accept: Accept,
        at_end: frozenset[Element],
        may_finish: Callable[[StepSpec], bool],
    ) -> None:
        self._flow, self._reads, self._accept, self._at_end = flow, reads, accept, at_end
        self.may_finish = may_finish
        everything = _elements(replace(each, is_certain=True) for each in reads.accepted(accept))
        self._onwards = {step.id: everything | at_end for step in flow.steps}

    def after(self, step_id: str) -> frozenset[Element]:
        """What is read from the end of a step's work on, until it is visited again."""
        before = {step.id: self._certain([self._reads.steps[step.id].before]) for step in self._flow.steps}
        changed = True
        while changed:
            changed = False
            for index in reversed(range(len(self._flow.steps))):
                step = self._flow.steps[index]
                found = before[step.id] | (frozenset() if step.id == step_id else self._after(index))
                changed = changed or found != self._onwards[step.id]
                self._onwards[step.id] = found
        index = [step.id for step in self._flow.steps].index(step_id)
        return self._after(index, is_start=True)

    def _after(self, index: int, *, is_start: bool = False) -> frozenset[Element]:
        step, routes = self._flow.steps[index], ways_out(self._flow, index)
        reads = self._reads.steps[step.id]
        onwards: frozenset[Element] = frozenset()
        for number in reversed(range(len(routes))):
            target = routes[number].to
            taken = (
                self._at_end | self._certain(reads.reasons[number : number + 1])
                if target is None
                else self._onwards[target]
            )
            is_last = number == len(routes) - 1
            onwards = self._certain(reads.whens[number : number + 1]) | (taken if is_last else taken & onwards)
        onwards |= self._certain([reads.after])
        return onwards & self._at_end if self.may_finish(step) and not is_start else onwards

    def _certain(self, reads: Iterable[Iterable[ResultRead]]) -> frozenset[Element]:
        return _elements(filter(None, (self._accept(each) for some in reads for each in some)))


def _elements(reads: Iterable[ResultRead]) -> frozenset[Element]:
    """What reading it certainly needs: the value, and what it is a part of, within the same item of a list."""
    found: set[Element] = set()
    for read in reads:
        if read.is_certain:
            found |= {(read.path, False)} | (set() if read.use in TAKE_NULL else {(read.path, True)})
            within = max((number for number, part in enumerate(read.path) if part is ITEM), default=0)
            for length in range(within + 1, len(read.path)):
                found |= {(read.path[:length], False), (read.path[:length], True)}
    return frozenset(found)


def _needs(reads: Sequence[ResultRead], always: frozenset[Element]) -> Iterator[Need]:
    """The needs by path, in the order in which the flow reads them."""
    uses: dict[Path, list[tuple[ValueUse, ResultRead]]] = {}
    for read in reads:
        for length, part in enumerate(read.path[1:], 1):
            inside = ValueUse.MAPPING if isinstance(part, str) else ValueUse.WALKED
            uses.setdefault(read.path[:length], []).append((inside, read))
        uses.setdefault(read.path, []).append((read.use, read))
    for path, found in uses.items():
        need = _need(path, [use for use, _ in found], tuple(dict.fromkeys(read for _, read in found)), always)
        if need.says_something:
            yield need


def _need(path: Path, uses: Sequence[ValueUse], reads: tuple[ResultRead, ...], always: frozenset[Element]) -> Need:
    types = {use.type for use in uses} - {""}
    is_counted = not types and ValueUse.COUNTED in uses and ValueUse.ANY not in uses
    certain = types.pop() if len(types) == 1 and ValueUse.ANY not in uses else COUNTABLE if is_counted else ""
    most = [each.most for each in reads if each.path == path and each.most is not None]
    chosen = [set(each.choices) for each in reads if each.path == path and each.choices]
    return Need(
        path,
        reads,
        is_required=(path, False) in always and path[-1] is not ITEM,
        takes_null=(path, True) not in always,
        type=certain,
        is_decided=not types and certain in ("", COUNTABLE) and ValueUse.DECIDED in uses and ValueUse.ANY not in uses,
        most=min(most, default=None) if certain == "array" else None,
        choices=tuple(sorted(set.intersection(*chosen))) if chosen else (),
    )
