"""Where a fork begins: a recorded visit (``STEP[:VISIT]``), or one item of a fan-out to repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codex_multi_role.catalog.flow_spec import step_place
from codex_multi_role.errors import UsageError
from codex_multi_role.flow import FlowState, items_of, name_of, needs_of
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.reading.nearest import did_you_mean
from codex_multi_role.run_folder import Beginning, RunEvent, RunFolder, beginnings, inherit_turn
from codex_multi_role.run_folder.events import StepStarted
from codex_multi_role.run_folder.items import ItemResults, find_task
from codex_multi_role.run_folder.states import COMPLETED, FAILED, SKIPPED

MOST_NAMED = 30


def find_start(events: Sequence[RunEvent], start: str | None, run_id: str) -> Beginning:
    """The visit that ``start`` names, by default the step's last one; ``events`` are all events of the run.

    Raises `UsageError` with a list of the existing visits.
    """
    known = beginnings(events)
    if not known:
        raise UsageError(f"the run {run_id} has not started any step to fork from", "Start another run.")
    if not start:
        raise UsageError("missing --from STEP[:VISIT]", f"Steps of this run: {_in_words(known)}.")
    step, _, visit = start.partition(":")
    visits = [each for each in known if each.step == step]
    if not visits:
        raise _no_such_step(step, known, events, run_id)
    found = [each for each in visits if not visit or str(each.visit) == visit]
    if not found:
        raise UsageError(f"the run {run_id} has not started {start}", f"It has started {_in_words(visits)}.")
    return found[-1]


def _no_such_step(step: str, known: Sequence[Beginning], events: Sequence[RunEvent], run_id: str) -> UsageError:
    calls = _calls_of(step, known, events)
    if calls:
        return UsageError(
            f'the step "{step}" is in a called flow; a fork starts with a step of the run\'s own flow',
            f"Fork before the call: --from {_in_words(calls)}.",
        )
    nearest = did_you_mean(step, {each.step for each in known})
    return UsageError(
        f'the run {run_id} has not started a step "{step}"{nearest}', f"It has started {_in_words(known)}."
    )


def _calls_of(step: str, known: Sequence[Beginning], events: Sequence[RunEvent]) -> list[Beginning]:
    """The visits in which a called flow entered the step, which events name ``<key of the call>/<step>``."""
    began = {each.position: each for each in known}
    found: dict[str, Beginning] = {}
    here = known[0]
    for position, event in enumerate(events):
        here = began.get(position, here)
        if isinstance(event, StepStarted) and event.step.endswith(f"/{step}"):
            found[here.key] = here
    return list(found.values())


def _in_words(known: Sequence[Beginning]) -> str:
    earlier = f"{len(known) - MOST_NAMED} more and " if len(known) > MOST_NAMED else ""
    return earlier + ", ".join(f"{each.step}:{each.visit}" for each in known[-MOST_NAMED:])


@dataclass(frozen=True)
class Again:
    """The item ``name`` of the fan-out ``step``:``visit``; ``unit`` is the item's unit key."""

    name: str
    unit: str
    step: str
    visit: str

    @classmethod
    def of(cls, parent: RunFolder, task: str) -> Again:
        """The ended task of a run called ``task``. Raises `UsageError`."""
        ended = find_task(parent, task)
        unit, state = str(ended["unit"]), ended["state"]
        if "/" in unit:
            outer = unit.partition("/")[0]
            raise UsageError(
                f"the task {task} is in a called flow; only tasks of the run's own flow can be redone",
                f"`{parent.command('fork', '--task', outer)}` if that is one.",
            )
        if state not in (COMPLETED, FAILED, SKIPPED):
            raise UsageError(
                f"the task {task} of the run {parent.run_id} is {state}: it has not ended",
                f"`{parent.command('resume')}` continues it.",
            )
        visit = unit.rpartition(".")[0]
        return cls(str(ended["item"]), unit, *visit.rsplit(".", 1))

    def give(self, parent: RunFolder, fork: RunFolder, definitions: Definitions, state: FlowState) -> int:
        """Give the fork, whose ``state`` is where the step begins, the results to keep; returns how many.

        The item, what needs it, and items with changed values are done again. Raises `UsageError`, `StorageError`.
        """
        step = definitions.flow.step(self.step)
        if step.isolate or (
            definitions.changes_workspace
            and (not step.asked or any(definitions.catalog.role(each).may_change_workspace for each in step.asked))
        ):
            raise UsageError(
                f"the tasks of {self.step} may change the workspace; the changes of the other tasks would be missing",
                f"`{parent.command('fork', '--from', f'{self.step}:{self.visit}')}` redoes all of them.",
            )
        context, place = state.context(), step_place(definitions.flow, definitions.flow.steps.index(step))
        items, _ = items_of(step, context, place)
        needs = needs_of(step, items, context, place)
        again = {index for index, item in enumerate(items) if name_of(item, index) == self.name}
        again |= {int(self.unit.rpartition(".")[2])} & set(range(len(items)))  # under its name in an earlier version
        for _ in items:
            again |= {index for index, needed in enumerate(needs) if again & {*needed}}
        return sum(self._give_one(parent, fork, index, item) for index, item in enumerate(items) if index not in again)

    def _give_one(self, parent: RunFolder, fork: RunFolder, index: int, value: object) -> bool:
        unit = f"{self.step}.{self.visit}.{index}"
        outcome = ItemResults(parent.path).find(unit, value)
        if outcome is None:
            return False
        ItemResults(fork.path, given=True).write(unit, value, outcome)
        if (turn := outcome["turn"]) is not None and turn["number"]:
            inherit_turn(parent, fork, turn["instance"], turn["number"])
        return True
