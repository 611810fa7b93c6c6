"""Do one item of a fan-out again: a fork from before its step that keeps the results of the other items."""

from __future__ import annotations

from dataclasses import dataclass

from codex_multi_role.errors import UsageError
from codex_multi_role.flow import FlowState, items_of, name_of, needs_of
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.run_folder import RunFolder, inherit_turn
from codex_multi_role.run_folder.items import ItemResults, find_task
from codex_multi_role.run_folder.states import COMPLETED, FAILED, SKIPPED


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
                f"the task {task} is in a flow that was called; a task of the run's own flow can be restarted",
                f"`codex-multi-role restart {parent.run_id} --task {outer}`, where that is one.",
            )
        if state not in (COMPLETED, FAILED, SKIPPED):
            raise UsageError(
                f"the task {task} of the run {parent.run_id} is {state}: it has not ended",
                f"`codex-multi-role resume {parent.run_id}` goes on with it.",
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
            and (step.ask is None or definitions.catalog.role(step.ask).may_change_workspace)
        ):
            raise UsageError(
                f"the tasks of {self.step} may change the workspace, and what the others changed would be missing",
                f"`codex-multi-role fork {parent.run_id} --from {self.step}:{self.visit}` does all of them again.",
            )
        context = state.context()
        items, _ = items_of(step, context)
        needs = needs_of(step, items, context)
        again = {index for index, item in enumerate(items) if name_of(item, index) == self.name}
        for _ in items:
            again |= {index for index, needed in enumerate(needs) if again & {*needed}}
        return sum(self._give_one(parent, fork, index, item) for index, item in enumerate(items) if index not in again)

    def _give_one(self, parent: RunFolder, fork: RunFolder, index: int, value: object) -> bool:
        unit = f"{self.step}.{self.visit}.{index}"
        outcome = ItemResults(parent.path).find(unit, value)
        if outcome is None:
            return False
        ItemResults(fork.path).write(unit, value, outcome)
        if (turn := outcome["turn"]) is not None and turn["number"]:
            inherit_turn(parent, fork, turn["instance"], turn["number"])
        return True
