"""Walking a run's past again from what its journal holds, to see that it leads where a fork is to begin.

Nothing is done: where anything would be, the flow, its inputs or the roles no longer fit that past.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count

from codex_multi_role.engine.askers import Asker
from codex_multi_role.engine.flow_walk import Flows, FlowWalk
from codex_multi_role.engine.halt import RunHalted
from codex_multi_role.engine.journal_fork import Recorded
from codex_multi_role.engine.leases import Instances
from codex_multi_role.engine.library import StepOptions
from codex_multi_role.engine.step_ids import StepIds
from codex_multi_role.errors import UsageError
from codex_multi_role.flow import FlowState
from codex_multi_role.steps import Json, RunResources

HINT = "Up to there the flow, its inputs and cycles, and the roles' names and order must be as they were."


class _Left(BaseException):
    """The walk has come to the place, or would do what the past did not; ``problem`` says what."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class _RecordedPlace:
    """A place of the journal where what is recorded is read, and nothing is done."""

    def __init__(self, number: int, past: Mapping[int, Recorded], seen: set[int]) -> None:
        self._number = number
        self._past = past
        self._seen = seen

    @property
    def step_id(self) -> int:
        return self._number

    def run(self, options: StepOptions | None, _work: Callable[[], Json], /) -> Json:
        recorded, name = self._past.get(self._number), (options or {}).get("name")
        if recorded is None or recorded.name != name:
            was = f'"{recorded.name}"' if recorded else "nothing"
            raise _Left(f'"{name}" would be done at place {self._number} of the journal, where {was} was')
        self._seen.add(self._number)
        return recorded.output


class _PastIds(StepIds):
    """The places up to ``end``, where the mark of a visit is to be."""

    def __init__(self, past: Mapping[int, Recorded], end: int) -> None:
        self.seen: set[int] = set()
        self._end = end
        super().__init__(lambda: None, self._places(past))

    def _places(self, past: Mapping[int, Recorded]) -> Iterator[_RecordedPlace]:
        return (_RecordedPlace(number, past, self.seen) for number in count(1))

    def mark(self) -> int:
        number = super().mark()
        if number >= self._end:
            raise _Left("" if number == self._end else "steps before it would record more")
        return number


def rehearse(
    flows: Flows, state: FlowState, run: RunResources, past: Mapping[int, Recorded], start: tuple[str, int, int]
) -> None:
    """Bring ``state`` to where the visit of ``start`` (step, visit, its place in the journal) begins.

    Raises `UsageError` where the past does not lead there, `DefinitionError` for a template that fails on the way.
    """
    step, visit, place = start
    ids = _PastIds(past, place)
    walk = FlowWalk(run, flows, state, ids, Asker(run, Instances()))
    try:
        problem = f"the flow would end before, with {walk.walk().outcome}"
    except _Left as left:
        problem = left.problem
    except RunHalted as halted:
        problem = halted.ending.reason
    problem = problem or _what_differs(state, ids.seen, past, step, visit)
    if problem:
        raise UsageError(f"the flow {state.flow} does not lead to {step}:{visit} as the run did: {problem}", HINT)


def _what_differs(state: FlowState, seen: set[int], past: Mapping[int, Recorded], step: str, visit: int) -> str:
    there = next(each for each, known in state.steps.items() if known.status == "running")
    if there != step or state.steps[step].visits != visit:
        return f"it would be at {there}:{state.steps[there].visits} there"
    left = [past[number].name for number in sorted(past.keys() - seen)]
    return f'"{left[0]}" would be left out' if left else ""
