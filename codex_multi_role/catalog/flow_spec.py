"""A flow: its inputs and variables, and its steps in order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, JsonValue, model_validator

from codex_multi_role.catalog.definition import Definition
from codex_multi_role.catalog.flow_inputs import GoalSpec, InputSpec, resolve_inputs
from codex_multi_role.catalog.protected_globs import ProtectedGlobs
from codex_multi_role.catalog.step_spec import StateName, StepSpec, VariableName


class FlowStates(Definition):
    """The states of a run besides those of its steps: before the first, and at its end."""

    begin: StateName
    success: StateName
    failure: StateName


class FlowFile(Definition):
    """A flow file as written. ``vars``: the run variables and their first values (templates).

    ``goal``: which goals it accepts. ``protect``: files that no role of a run may change. ``states``: those of a run of
    this flow, besides the ``state`` of its steps; a called flow has none. ``outputs``: the steps that a calling flow
    sees, by default all; it always sees the ``vars``.
    """

    name: str | None = None
    description: str = ""
    goal: GoalSpec = GoalSpec()
    inputs: dict[VariableName, InputSpec] = Field(default_factory=dict)
    vars: dict[VariableName, JsonValue] = Field(default_factory=dict)
    protect: ProtectedGlobs = ()
    states: FlowStates | None = None
    outputs: tuple[str, ...] | None = None
    steps: Annotated[tuple[StepSpec, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_states(self) -> Self:
        if self.states is None and (stray := [step.id for step in self.steps if step.state is not None]):
            raise ValueError(f"the state of {stray[0]} needs states: {{begin, success, failure}} beside the steps")
        return self


class FlowSpec(FlowFile):
    """A flow. ``source`` is the file it was read from, whose name is the flow's."""

    name: str
    source: Path = Path()

    def step(self, step_id: str) -> StepSpec:
        """The step with that id. Raises ``KeyError``; a loaded flow routes to its own steps only."""
        return {step.id: step for step in self.steps}[step_id]

    def shows(self, step_id: str) -> bool:
        """Whether a calling flow sees the result of that step."""
        return self.outputs is None or step_id in self.outputs

    def resolve_inputs(self, given: Mapping[str, object]) -> dict[str, Any]:
        """The value of every input; see `flow_inputs.resolve_inputs`. Raises ``UsageError``."""
        return resolve_inputs(self.name, self.inputs, given)
