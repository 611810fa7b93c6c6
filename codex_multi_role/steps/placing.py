"""Called flows that workers walk, if an extension lets them. Two steps of the journal: which run, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from codex_multi_role.errors import StorageError
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder.states import IN_PROGRESS
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.unit import StepOutcome, Unit

CALL_FILE = "call.json"
"""In the folder of a run that another run called: its `StepOutcome`, once its flow has ended."""


class CallPlacer(Protocol):
    """Lets workers walk called flows, each as a run of its own. Threads may share it."""

    def submit(self, run: RunResources, unit: Unit, inputs: Mapping[str, Any], number: int, /) -> str:
        """Submit the flow that ``unit`` calls, unless that was done already; returns the ID of its run.

        ``number``: of this attempt in the journal. Raises `StorageError`, `BudgetUsedUp`, `RunInterrupted`.
        """

    def outcome(self, run: RunResources, unit: Unit, run_id: str, /) -> Json:
        """Wait for the `StepOutcome` of that run. Raises what a call in this process raises.

        And `ReviewWaiting`, `BudgetUsedUp` or `QuotaUsedUp` if the run is parked.
        """


def placed_outcome(run: RunResources, unit: Unit, inputs: Mapping[str, Any]) -> StepOutcome | None:
    """The outcome of a called flow that a worker walks.

    None if no worker executes this run, or its workspace is a copy, so that the flow is walked here.
    """
    placer = run.services.placer if run.within in ("", unit.key) else None

    def submit(number: int) -> Json:
        run.after_baseline()
        return {"run": "" if placer is None else placer.submit(run, unit, inputs, number)}

    def wait(_: int) -> Json:
        if placer is None:
            raise StorageError(
                f"{unit.where}: workers walk the flow {unit.step.call}, and this process is none",
                "Resume the run on workers, or fork it from an earlier step.",
            )
        return placer.outcome(run, unit, run_id)

    run_id = unit.record(f"place {unit.key}", submit)["run"]
    if not run_id:
        return None
    unit.set_state(IN_PROGRESS, f"run {run_id} on workers")
    return StepOutcome.of(unit.record(f"run {unit.key}", wait))
