"""Walk a flow without a model: turns are taken over, what checks and people said is read from an earlier run's journal.

Every path of the walk ends at its first turn that would be asked, or at work whose result nobody knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count

from codex_multi_role.engine.askers import Asker, Instances, Scope
from codex_multi_role.engine.flow_walk import CallableFlows, FlowWalk
from codex_multi_role.engine.journal_slots import JournalSlots, Past, RunHalted
from codex_multi_role.engine.rehearsal import RecordedSlot, walk_past
from codex_multi_role.flow import FlowState
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps import RunResources, Unit, Work

DONE_HERE = re.compile(r"apply files|.+: reserve|(copy|merge) .+|.+ (repair |continued )?turn( \d+)?")
"""The names of work that a forecast really does, in its own workspace. No check has such a name."""
CHECK = "check "
ROUTING = {"next", "max_visits", "set"}
"""The fields of a step that its result does not depend on."""


def _is_done_here(name: str) -> bool:
    return DONE_HERE.fullmatch(name) is not None and not name.startswith(CHECK)


@dataclass(frozen=True)
class _ForecastSlot(RecordedSlot):
    """``assumed`` returns a recorded result as it would be here."""

    assumed: Callable[[Json], Json]

    def run(self, name: str, work: Callable[[], Json], /) -> Json:
        return work() if _is_done_here(name) else self.assumed(super().run(name, work))


def past_with_units(flows: CallableFlows, state: FlowState, run: RunResources, past: Past) -> Past:
    """The ``past``, in which the name of a result also says which unit had it, and from which rendered options.

    ``flows``, ``state`` and ``run`` are those of the earlier run.
    """
    units = walk_past(flows, state, run, past, _given)
    names = {id(each): _identity(key, given) for key, (given, all_) in units.units.items() for each in all_}
    return {
        number: step if _is_done_here(step.name) else replace(step, name=step.name + names.get(id(step.output), ""))
        for number, step in past.items()
    }


def _given(unit: Unit) -> Json:
    """What the result of a check or review depends on besides the workspace; of an ask, the turn knows it itself."""
    step = unit.step
    if step.ask:
        return {}
    rendered = unit.filled(("with", "review", "show"))
    return {**step.model_dump(mode="json", exclude={*ROUTING, *rendered, "with_"}), **rendered}


def _identity(key: str, given: Json) -> str:
    return f" of {key} {json.dumps(given, sort_keys=True, default=str)}"


def _identified(unit: Unit) -> Unit:
    """The unit with the names of `past_with_units` for its results."""

    def record(name: str, work: Work) -> Json:
        return unit.record(name if _is_done_here(name) else name + _identity(unit.key, _given(unit)), work)

    return replace(unit, record=record)


def walk_forecast(
    flows: CallableFlows,
    state: FlowState,
    run: RunResources,
    past: Past,
    assumed: Callable[[Json], Json],
) -> bool:
    """Walk until every path has ended; return whether the walk reached the end of the flow.

    ``past``: that of `past_with_units`, with the paths of this run in its names. ``assumed`` returns a result of the
    past as it would be here. Raises `DefinitionError` for a template that fails on the way.
    """

    def slots() -> Iterator[_ForecastSlot]:
        return (_ForecastSlot(number, past, set(), assumed) for number in count(1))

    walk = FlowWalk(flows, Scope(run, JournalSlots(lambda: None, slots()), Asker(run, Instances()), state, _identified))
    with suppress(RunHalted):
        walk.walk()
        return True
    return False
