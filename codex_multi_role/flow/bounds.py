"""What a run can come to at most, and whether its flows end at all. Nothing is run: the definitions are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.calls import known_inputs, may_call
from codex_multi_role.flow.conditions import Meanings, meanings_of
from codex_multi_role.flow.effort import Effort
from codex_multi_role.flow.step_effort import unit_effort, visit_effort
from codex_multi_role.flow.visits import most_visits

MOST_RECORDS = 10**12
"""A flow that may need more journal steps is as good as unbounded."""
MOST_DEPTH = 100
MOST_SITUATIONS = 10_000
"""How many different ways for a flow to be called are looked at."""


@dataclass(frozen=True)
class WorstCase:
    """``turns`` without repairs; ``processes`` at once; ``records``: steps of the journal, all flows together.

    ``seconds``: every turn and review times out, and only a fan-out's items are done side by side. Checks, and reviews
    without a time limit, are not in it.
    """

    turns: int
    repair_turns: int
    processes: int
    seconds: float
    records: int


@dataclass(frozen=True)
class WalkBound:
    """What one walk of a flow comes to at most, from where it is called.

    ``unit_records``: by step id, the most journal steps of the step, or of one item of its fan-out. ``called``: by step
    id, the walk that the step's call starts; it is missing where its ``max_depth`` is reached, and nothing is started.
    """

    effort: Effort
    unit_records: Mapping[str, int]
    called: Mapping[str, WalkBound]


def worst_case(
    flows: Mapping[str, FlowSpec],
    name: str,
    catalog: RoleSpecCatalog,
    *,
    cycles: int,
    repair_attempts: int,
    inputs: Mapping[str, object] | None = None,
) -> WorstCase:
    """Upper bounds for a run of the flow ``name`` of ``flows`` (see `load_flows`); raises as `walk_bound`."""
    bound = walk_bound(flows, name, catalog, cycles=cycles, repair_attempts=repair_attempts, inputs=inputs)
    return WorstCase(
        turns=bound.effort.turns,
        repair_turns=bound.effort.turns * repair_attempts,
        processes=bound.effort.processes.total(),
        seconds=bound.effort.seconds,
        records=bound.effort.records,
    )


def walk_bound(
    flows: Mapping[str, FlowSpec],
    name: str,
    catalog: RoleSpecCatalog,
    *,
    cycles: int,
    repair_attempts: int,
    inputs: Mapping[str, object] | None = None,
) -> WalkBound:
    """The bound of a run of ``name``, and within it that of every walk it can start.

    ``inputs``: the values the run is given; the others have their defaults, and no known value without one. Raises
    ``DefinitionError`` naming the loop when one is not bounded, or the call when calls never end.
    """
    known = {key: spec.default for key, spec in flows[name].inputs.items() if not spec.required}
    return _Walks(flows, catalog, cycles, 1 + repair_attempts).bound(name, known | dict(inputs or {}), (), "")


class _Walks:
    """Bounds of walks, each worked out once: they depend on the flow, its known inputs, and how deep it is called."""

    def __init__(self, flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog, cycles: int, prompts: int) -> None:
        self._flows = flows
        self._catalog = catalog
        self._cycles = cycles
        self._prompts = prompts
        self._counted = {step.call for flow in flows.values() for step in flow.steps if step.call and step.max_depth}
        self._found: dict[object, WalkBound] = {}

    def bound(self, name: str, inputs: Mapping[str, object], callers: Sequence[str], place: str) -> WalkBound:
        """The walk of ``name``, called by the last of ``callers`` at ``place``; without callers it is the run's own."""
        under_way = (*callers, name)
        depths = {each: under_way.count(each) for each in sorted(self._counted & {*under_way})}
        situation = (name, repr(sorted(inputs.items())), repr(depths))
        if situation not in self._found:
            if len(under_way) > MOST_DEPTH or len(self._found) >= MOST_SITUATIONS:
                raise DefinitionError(f"{place}: the calls go too deep to be counted", "Lower max_depth.")
            self._found[situation] = self._bound(self._flows[name], inputs, under_way, place)
        return self._found[situation]

    def _bound(self, flow: FlowSpec, inputs: Mapping[str, object], under_way: Sequence[str], place: str) -> WalkBound:
        meanings = meanings_of(flow, self._cycles, inputs)
        visits = _visits(flow, meanings, place)
        whole = Effort()
        records: dict[str, int] = {}
        called: dict[str, WalkBound] = {}
        for index, step in enumerate(flow.steps):
            here = f"{flow.source}: steps[{index}]"
            if step.call is not None and may_call(step, under_way):
                given = known_inputs(step, self._flows[step.call], meanings, here)
                called[step.id] = self.bound(step.call, given, under_way, here)
            inner = called[step.id].effort if step.id in called else None
            unit = unit_effort(step, self._catalog, self._prompts, inner)
            records[step.id] = unit.records
            whole = whole.then(visit_effort(step, unit, meanings, here).repeated(visits[step.id]))
        return WalkBound(_within_reason(whole, flow), records, called)


def _visits(flow: FlowSpec, meanings: Meanings, place: str) -> dict[str, int]:
    try:
        return most_visits(flow, meanings)
    except DefinitionError as error:
        raise DefinitionError(f"{error} (called at {place})" if place else str(error), error.hint) from error


def _within_reason(effort: Effort, flow: FlowSpec) -> Effort:
    if effort.records > MOST_RECORDS:
        raise DefinitionError(
            f"{flow.source}: steps: a run may need more than {MOST_RECORDS:,} recorded steps",
            "Lower max_items, max_depth, max_visits or attempts.",
        )
    return effort
