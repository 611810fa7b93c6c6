"""Walk a flow without a model: turns are taken over, what checks and people said is read from an earlier run's journal.

Every path of the walk ends at its first turn that would be asked, or at work whose result nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

from codex_multi_role.engine.askers import Asker, Scope
from codex_multi_role.engine.flow_walk import CallableFlows, FlowWalk
from codex_multi_role.engine.journal_slots import JournalSlots, RunHalted
from codex_multi_role.engine.leases import Instances
from codex_multi_role.engine.recorded_step import Past
from codex_multi_role.errors import ReviewWaiting, ending_for
from codex_multi_role.flow import FlowState
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps import RunResources

DONE_HERE = re.compile(r"apply files|.+: reserve|(copy|merge) .+|.+ (repair |continued )?turn( \d+)?")
"""The names of work that a forecast really does, in its own workspace. No check has such a name."""
CHECK = "check "


class PathEnded(RunHalted):
    """One path of the walk ends. As with a person's missing answer, the other items of a fan-out continue."""

    def __init__(self, why: str) -> None:
        super().__init__(ending_for(ReviewWaiting(why)))


class _ForecastSlot:
    def __init__(self, number: int, past: Past, assumed: Callable[[Json], Json]) -> None:
        self._number = number
        self._past = past
        self._assumed = assumed

    @property
    def step_id(self) -> int:
        return self._number

    def run(self, name: str, work: Callable[[], Json], /) -> Json:
        if DONE_HERE.fullmatch(name) and not name.startswith(CHECK):
            return work()
        recorded = self._past.get(self._number)
        if recorded is None or recorded.name != name:
            raise PathEnded(f"the result of {name} is unknown")
        return self._assumed(recorded.output)


def walk_forecast(
    flows: CallableFlows,
    state: FlowState,
    run: RunResources,
    past: Past,
    assumed: Callable[[Json], Json],
) -> bool:
    """Walk until every path has ended; return whether the walk reached the end of the flow.

    ``assumed`` returns a result of the past as it would be here. Raises `DefinitionError` for a template that fails on
    the way.
    """

    def slots() -> Iterator[_ForecastSlot]:
        return (_ForecastSlot(number, past, assumed) for number in count(1))

    walk = FlowWalk(flows, Scope(run, JournalSlots(lambda: None, slots()), Asker(run, Instances()), state))
    with suppress(RunHalted):
        walk.walk()
        return True
    return False
