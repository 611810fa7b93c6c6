"""A flow: its inputs and variables, its steps in order, and all routes between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, JsonValue, StrictBool, model_validator

from codex_multi_role.catalog.definition import Definition, Items, Named, Nested, ProtectedGlobs, Takes, Texts, optional
from codex_multi_role.catalog.flow_inputs import GoalSpec, InputSpec, resolve_inputs
from codex_multi_role.catalog.step_spec import (
    STEP_KINDS,
    RouteSpec,
    StateName,
    Step,
    StepSpec,
    Text,
    VariableName,
    WrittenStep,
)
from codex_multi_role.reading.places import Place, WrongKey


class FlowStates(Definition):
    """The states of a run besides those of its steps: before the first, and at its end."""

    begin: StateName = Field(description="The state before the first step.")
    success: StateName = Field(description="The state after exit code 0.")
    failure: StateName = Field(description="The state after any other end.")


_CHANGED_FILES = """\
{% for file in files %}{{ file.path }}  {{ 'binary' if file.added is none else '+%d -%d' % (file.added, file.removed) }}
{% endfor %}"""


class ResultSpec(Definition):
    """What a run of the flow is about, shown first at its end. All but ``format`` are templates.

    They see what a ``when`` sees, ``files`` ({path, added, removed} of each file that the run changed: its lines, null
    in binary files) and ``tests``, the latest test result or null. What cannot be rendered, because its step was not
    reached, is left out.
    """

    title: Text = Field(description="The heading.")
    text: str = Field(default=_CHANGED_FILES, description="The result itself; by default the changed files.")
    file: str = Field(default="", description="A file with the result, relative to the run folder or the workspace.")
    format: Literal["text", "markdown"] = Field(default="text", description="What the text or the file contains.")
    figures: dict[str, JsonValue] = Field(default_factory=dict, description="A few values by name.")


CHANGED_FILES = ResultSpec(title="Changed files")


class WorkspaceNeeds(Definition):
    """What every new worktree or copy of the workspace needs. It replaces the settings of the same names.

    None of it belongs to the result: it is in no snapshot, patch or merge.
    """

    copy_: ProtectedGlobs | None = Field(
        default=None, description="Globs of files or folders of the workspace to copy into it: `[.env]`."
    )
    setup: Text | None = Field(
        default=None, description="A shell command to run in it, in the sandbox of the tests: `uv sync --offline`."
    )


OF_FINAL_CHECKS = ("id", "check", "with", "limits", "once")


def _final_check(step: object) -> object:
    """The step as written, unless it has a known key that a check at the end of a run does not take."""
    given = step.model_dump(by_alias=True, exclude_unset=True) if isinstance(step, Step) else step
    if not isinstance(given, Mapping):
        return step
    known = ", ".join(OF_FINAL_CHECKS)
    for key in (*STEP_KINDS, *sorted(set[str]().union(*(each.known_keys() for each in STEP_KINDS.values())))):
        if given.get(key) is not None and key not in OF_FINAL_CHECKS:
            raise WrongKey(f"{key} does not belong there: finally takes checks only ({known})", key)
    limits = given.get("limits")
    if isinstance(limits, Mapping) and limits.get("visits") is not None:
        raise WrongKey("visits does not belong there: a check at the end of a run runs once", "limits", "visits")
    return step


class FlowFile(Definition):
    """A flow file as written. A called flow has no ``states``; its caller always sees its ``vars``."""

    name: str | None = Field(default=None, description="The flow's name, which is that of its file.")
    description: str = Field(default="", description="One line for `flows list`.")
    internal: StrictBool = Field(
        default=False, description="Whether only other flows call it; lists of flows leave it out."
    )
    goal: Nested[GoalSpec] = optional(GoalSpec(), "Which goals it accepts.")
    inputs: Named[VariableName, InputSpec] = optional(
        {}, "Inputs by name: a default value, or a mapping of the keys below."
    )
    vars: Named[VariableName, JsonValue] = optional({}, "Run variables and their first values (templates).")
    allow_removed_tests: Takes[tuple[str, ...], Texts] = optional(
        (), "Globs of tests, by pytest's ids, that passed before the run and may be gone at its end."
    )
    protect: Takes[ProtectedGlobs, Texts] = optional((), "Globs of files that no role of a run may change.")
    workspace: Nested[WorkspaceNeeds] = optional(
        WorkspaceNeeds(), "What every new worktree or copy of the workspace of a run needs."
    )
    states: Nested[FlowStates | None] = optional(None, "States of a run besides the `state` of its steps.")
    outputs: Takes[tuple[str, ...] | None, Texts | None] = optional(
        None, "The steps that a calling flow sees; all of them by default."
    )
    result: Nested[ResultSpec] = optional(
        CHANGED_FILES, "What a run shows first at its end; by default the changed files."
    )
    steps: Items[WrittenStep] = Field(min_length=1, description="The steps, in order.")
    finally_: Items[Annotated[WrittenStep, BeforeValidator(_final_check)]] = optional(
        (),
        "Checks at the end of a run, unless it is parked; a bad result turns a success into a failure.",
    )

    @model_validator(mode="after")
    def _check_finally(self) -> Self:
        ids = [step.id for step in (*self.steps, *self.finally_)]
        for index, step in enumerate(self.finally_):
            if ids.count(step.id) > 1:
                raise WrongKey(f"the id {step.id} is given twice", "finally", index, "id")
        return self

    @model_validator(mode="after")
    def _check_states(self) -> Self:
        for index, step in enumerate(self.steps):
            if step.state is not None and self.states is None:
                problem = f"the state of {step.id} needs states: {{begin, success, failure}} beside the steps"
                raise WrongKey(problem, "steps", index, "state")
        return self


class FlowSpec(FlowFile):
    """A flow. ``source`` is the file it was read from, whose name is the flow's; ``former_keys``: those it has."""

    name: str
    source: Path = Path()
    former_keys: tuple[str, ...] = ()

    def step(self, step_id: str) -> StepSpec:
        """The step with that id. Raises ``KeyError``; a loaded flow routes to its own steps only."""
        return {step.id: step for step in self.steps}[step_id]

    @property
    def all_steps(self) -> Iterator[tuple[StepSpec, Place]]:
        """The steps, then the checks at the end of a run, each with its place in the flow's file."""
        for index, step in enumerate(self.steps):
            yield step, step_place(self, index)
        yield from self.final_checks

    @property
    def final_checks(self) -> Iterator[tuple[StepSpec, Place]]:
        """The checks at the end of a run, each with its place in the flow's file."""
        for index, step in enumerate(self.finally_):
            yield step, Place(self.source, ("finally", index))

    def shows(self, step_id: str) -> bool:
        """Whether a calling flow sees the result of that step."""
        return self.outputs is None or step_id in self.outputs

    def known_inputs(self, given: Mapping[str, object]) -> dict[str, Any]:
        """The inputs with values that are known before a run: ``given``, or their defaults. Raises ``UsageError``."""
        specs = {name: spec for name, spec in self.inputs.items() if name in given or not spec.required}
        return resolve_inputs(self.name, specs, given)

    def resolve_inputs(self, given: Mapping[str, object]) -> dict[str, Any]:
        """The value of every input; see `flow_inputs.resolve_inputs`. Raises ``UsageError``."""
        return resolve_inputs(self.name, self.inputs, given)


def step_place(flow: FlowSpec, index: int) -> Place:
    """The place of the step at ``index`` in the flow's file."""
    return Place(flow.source, ("steps", index))


AFTER_THE_LAST_STEP = "success"


def ways_out(flow: FlowSpec, index: int) -> tuple[RouteSpec, ...]:
    """The ``next`` of the step at ``index``, and the implicit route unless the last entry has no condition.

    The implicit route leads to the following step, or from the last one to the end ``success``.
    """
    routes = flow.steps[index].next
    if routes and routes[-1].when is None:
        return routes
    following = flow.steps[index + 1 : index + 2]
    return (*routes, RouteSpec(to=following[0].id) if following else RouteSpec(end=AFTER_THE_LAST_STEP))


Node = TypeVar("Node", bound=Hashable)


def reached(start: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """Those at the ``start`` and all that follow them, directly or indirectly, once; nearer ones first."""
    found = dict.fromkeys(start)
    waiting = deque(found)
    while waiting:
        new = [each for each in following(waiting.popleft()) if each not in found]
        found |= dict.fromkeys(new)
        waiting.extend(dict.fromkeys(new))
    return [*found]


def reached_from(
    flow: FlowSpec, index: int, before: Callable[[StepSpec], bool] = lambda _: False
) -> Iterator[StepSpec]:
    """The steps that may follow the one at ``index``, directly or ``before`` another one of that kind has."""
    places = {step.id: number for number, step in enumerate(flow.steps)}

    def following(place: int) -> list[int]:
        is_last = place != index and before(flow.steps[place])
        return [] if is_last else [places[route.to] for route in ways_out(flow, place) if route.to is not None]

    return (flow.steps[place] for place in reached(following(index), following))


def never_reached(flow: FlowSpec) -> tuple[str, ...]:
    """The steps that no route from the first one leads to, in the flow's order."""
    found = {flow.steps[0].id, *(step.id for step in reached_from(flow, 0))}
    return tuple(step.id for step in flow.steps if step.id not in found)


def with_called(flows: Mapping[str, FlowSpec], name: str) -> tuple[FlowSpec, ...]:
    """The flow ``name`` and each of ``flows`` that it calls, directly or indirectly, once; nearer ones first."""

    def called(name: str) -> list[str]:
        return [step.call for step in flows[name].steps if step.call and step.call in flows]

    return tuple(flows[each] for each in reached([name] if name in flows else [], called))


def steps_below(flows: Mapping[str, FlowSpec], name: str) -> list[StepSpec]:
    """The steps of the flow ``name`` and of all that it calls."""
    return [step for flow in with_called(flows, name) for step in flow.steps]
