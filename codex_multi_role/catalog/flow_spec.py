"""A flow: its inputs and variables, its steps in order, and all routes between them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, JsonValue, model_validator

from codex_multi_role.catalog.definition import Definition, ProtectedGlobs
from codex_multi_role.catalog.flow_inputs import GoalSpec, InputSpec, resolve_inputs
from codex_multi_role.catalog.step_spec import Route, StateName, StepSpec, VariableName
from codex_multi_role.reading.places import Place


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


def step_place(flow: FlowSpec, index: int) -> Place:
    """The place of the step at ``index`` in the flow's file."""
    return Place(flow.source, ("steps", index))


AFTER_THE_LAST_STEP = "success"


def ways_out(flow: FlowSpec, index: int) -> tuple[Route, ...]:
    """The ``next`` of the step at ``index``, and the implicit route unless the last entry has no condition.

    The implicit route leads to the following step, or from the last one to the end ``success``.
    """
    routes = flow.steps[index].next
    if routes and routes[-1].when is None:
        return routes
    following = flow.steps[index + 1 : index + 2]
    return (*routes, Route(to=following[0].id) if following else Route(end=AFTER_THE_LAST_STEP))


def never_reached(flow: FlowSpec) -> tuple[str, ...]:
    """The steps that no route from the first one leads to, in the flow's order."""
    indexes = {step.id: index for index, step in enumerate(flow.steps)}
    reached: set[str] = set()
    waiting = [flow.steps[0].id]
    while waiting:
        step_id = waiting.pop()
        if step_id not in reached:
            reached.add(step_id)
            waiting += [route.to for route in ways_out(flow, indexes[step_id]) if route.to is not None]
    return tuple(step_id for step_id in indexes if step_id not in reached)
