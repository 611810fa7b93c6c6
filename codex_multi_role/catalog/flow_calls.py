"""Flows that call flows: the inputs of a call, and circles of calls."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from codex_multi_role.catalog.flow_expressions import has_expressions
from codex_multi_role.catalog.flow_inputs import resolve_inputs
from codex_multi_role.catalog.flow_spec import FlowSpec
from codex_multi_role.catalog.step_spec import StepSpec
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.reading.nearest import no_such


def check_calls(flows: Mapping[str, FlowSpec]) -> None:
    """Check that every call gives the called flow's inputs, and that every circle of calls has a ``max_depth``.

    ``flows`` includes every called one. Raises ``DefinitionError`` with file and key path.
    """
    for flow in flows.values():
        for index, step in enumerate(flow.steps):
            if step.call is not None:
                _check_inputs(step, f"{flow.source}: steps[{index}].with", flows[step.call])
    _check_circles(flows)


def _check_inputs(step: StepSpec, place: str, called: FlowSpec) -> None:
    for name, value in step.with_.items():
        if name not in called.inputs:
            message, hint = no_such("input", name, called.inputs)
            raise DefinitionError(f"{place}.{name}: flow {called.name}: {message}", hint)
        if not has_expressions(value):
            try:
                resolve_inputs(called.name, {name: called.inputs[name]}, {name: value})
            except UsageError as error:
                raise DefinitionError(f"{place}.{name}: {error}") from error
    for name, spec in called.inputs.items():
        if spec.required and name not in step.with_:
            raise DefinitionError(
                f'{place}: flow {called.name}: the input "{name}" is missing', f"Give it here: {name}: <{spec.type}>."
            )


def _check_circles(flows: Mapping[str, FlowSpec]) -> None:
    """Every circle has a limited call exactly if no circle is left without the limited calls."""
    unlimited = {
        name: [step.call for step in flow.steps if step.call is not None and step.max_depth is None]
        for name, flow in flows.items()
    }
    try:
        TopologicalSorter(unlimited).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1][:-1][::-1]  # it begins with the called one
        start = circle.index(min(circle, key=list(flows).index))
        named = [*circle[start:], *circle[: start + 1]]
        last = flows[named[-2]]
        index = next(index for index, step in enumerate(last.steps) if step.call == named[0] and step.max_depth is None)
        raise DefinitionError(
            f"{last.source}: steps[{index}].call: nothing bounds the circle of calls {' -> '.join(named)}",
            "Give the step a max_depth: how often a flow may run within itself.",
        ) from error
