"""What a flow is: steps in order, and after each the way to the next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, StringConstraints, model_validator

from codex_multi_role.catalog.definition import Definition
from codex_multi_role.catalog.flow_inputs import InputSpec, resolve_inputs
from codex_multi_role.catalog.roles import check_name

EVERY_ROLE = "*"
# The keys that say what a step does, exactly one a step; a new kind is one more field of StepSpec, named here.
STEP_KINDS = ("ask", "check")

Text = Annotated[str, StringConstraints(min_length=1)]
InputName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Route(Definition):
    """One entry of ``next``: taken when ``when`` holds, or always without one.

    Leads ``to`` a step, or to the ``end`` of the run with that outcome; ``exit`` is the exit code then (None: 0).
    """

    when: Text | None = None
    to: str | None = None
    end: Text | None = None
    exit: Literal[0, 1] | None = None

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if (self.to is None) == (self.end is None):
            raise ValueError("give either to or end")
        if self.exit is not None and self.end is None:
            raise ValueError("exit belongs to end")
        return self


class StepSpec(Definition):
    """One step. ``ask`` names a role, or is ``*``: every role of the catalog, ordered by its ``dependencies()``.

    ``check`` names a check and ``with`` its arguments (templates). ``id`` is the role's or check's name unless given.
    ``next``: the first entry that holds is taken; when none does, the following step. ``max_visits``: a bound.
    """

    ask: Text | None = None
    check: Text | None = None
    id: Annotated[str, AfterValidator(check_name)]
    with_: dict[str, JsonValue] = Field(default_factory=dict, alias="with")
    next: tuple[Route, ...] = ()
    max_visits: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_id(cls, data: object) -> object:
        if not isinstance(data, dict) or data.get("id") is not None:
            return data
        if data.get("ask") == EVERY_ROLE:
            raise ValueError('a step that asks "*" needs an id')
        return data | {"id": next((data[kind] for kind in STEP_KINDS if isinstance(data.get(kind), str)), None)}

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in STEP_KINDS) != 1:
            raise ValueError(f"give exactly one of {', '.join(STEP_KINDS)}")
        if self.with_ and self.check is None:
            raise ValueError("with belongs to check")
        return self

    @property
    def kind(self) -> str:
        """The one of ``STEP_KINDS`` that is given."""
        return next(kind for kind in STEP_KINDS if getattr(self, kind) is not None)


class FlowFile(Definition):
    """A flow file as written."""

    name: str | None = None
    description: str = ""
    inputs: dict[InputName, InputSpec] = Field(default_factory=dict)
    steps: Annotated[tuple[StepSpec, ...], Field(min_length=1)]


class FlowSpec(FlowFile):
    """A flow. ``source`` is the file it was read from, whose name is the flow's."""

    name: str
    source: Path = Path()

    def step(self, step_id: str) -> StepSpec:
        """The step of that id. Raises ``KeyError``; a loaded flow routes to its own steps only."""
        return {step.id: step for step in self.steps}[step_id]

    def resolve_inputs(self, given: Mapping[str, object]) -> dict[str, Any]:
        """The value of every input; see `flow_inputs.resolve_inputs`. Raises ``UsageError``."""
        return resolve_inputs(self.name, self.inputs, given)
