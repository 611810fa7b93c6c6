"""Called flows: whether a call is carried out, and what is known of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codex_multi_role.catalog import FlowSpec, StepSpec
from codex_multi_role.catalog.flow_inputs import resolve_inputs
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.flow.conditions import UNKNOWN, Meanings, known_value


def may_call(step: StepSpec, call_stack: Sequence[str]) -> bool:
    """Whether the ``call`` of ``step`` is carried out while the flows ``call_stack`` run, the caller included.

    ``max_depth``: how often a flow may run within a run of itself. Its first run has depth 0.
    """
    return step.max_depth is None or list(call_stack).count(step.call or "") <= step.max_depth


def known_inputs(step: StepSpec, called: FlowSpec, meanings: Meanings, place: str) -> dict[str, Any]:
    """The inputs of ``called`` with values known before the run: constants, known names of the caller, defaults.

    Raises ``DefinitionError`` that starts with ``place`` for a value of the wrong type.
    """
    known = {name: spec.default for name, spec in called.inputs.items() if name not in step.with_ and not spec.required}
    for name, value in step.with_.items():
        if (given := known_value(value, meanings)) is not UNKNOWN:
            try:
                known |= resolve_inputs(called.name, {name: called.inputs[name]}, {name: given})
            except UsageError as error:
                raise DefinitionError(f"{place}.with.{name}: {error}") from error
    return known


def with_called(flows: Mapping[str, FlowSpec], name: str) -> tuple[FlowSpec, ...]:
    """The flow ``name`` and each flow that it calls, directly or indirectly, once; nearer ones first."""
    found: dict[str, FlowSpec] = {}
    waiting = [name]
    while waiting:
        if (each := waiting.pop(0)) not in found:
            found[each] = flows[each]
            waiting += [step.call for step in flows[each].steps if step.call is not None]
    return tuple(found.values())
