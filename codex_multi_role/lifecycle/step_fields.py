"""The fields that templates can see of a step: ``steps.<id>.<field>``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_type_hints

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, RoleSpecCatalog, StepSpec
from codex_multi_role.catalog.contracts import Contracts
from codex_multi_role.catalog.shown_fields import OF_COPY, OfStep
from codex_multi_role.checks import find_check
from codex_multi_role.checks.contract import COULD_NOT_RUN
from codex_multi_role.errors import UsageError
from codex_multi_role.flow.routing import ends
from codex_multi_role.reading.value_types import (
    ANY,
    BOOLEAN,
    LIST,
    MAPPING,
    NUMBER,
    TEXT,
    Fields,
    ValueType,
    fields_named,
    one_of,
    type_of_annotation,
    type_of_model,
    type_of_schema,
)
from codex_multi_role.run_folder.turn_folder import ANALYSIS_PATH
from codex_multi_role.steps.protection import TOLD
from codex_multi_role.steps.turn_record import WEB_SEARCHES

ADDED = (ANALYSIS_PATH, TOLD, WEB_SEARCHES)
"""The fields that an answer may get from elsewhere."""
OWN_FIGURES: Fields = {name: type_of_annotation(each) for name, each in get_type_hints(OfStep).items()}
"""What a step has beside its output. ``verdict`` is the output's, otherwise its ``status``."""
NO_VERDICT = one_of("")


def contracts_of(flows: Mapping[str, FlowSpec], name: str, catalog: RoleSpecCatalog) -> Contracts:
    """What roles must answer in a run of the flow ``name``."""
    return Contracts(flows, name, catalog.roles, ADDED)


@dataclass(frozen=True)
class KnownFields:
    """What is known of the results of steps before a run of ``flows``: all flows that are called, by name."""

    flows: Mapping[str, FlowSpec]
    catalog: RoleSpecCatalog

    def of_step(self, step: StepSpec) -> ValueType:
        """What templates see of the step: the fields of its results and its own figures, if not any."""
        output = self._output(step)
        if output is None:
            return ValueType.of_fields({**OWN_FIGURES, "verdict": ANY}, is_open=True)
        handoff = {"handoff": ValueType.of_fields(output)} if step.ask else {}
        verdict = output.get("verdict") or output.get("status") or NO_VERDICT
        return ValueType.of_fields({**output, **handoff, **OWN_FIGURES, "verdict": verdict | NO_VERDICT})

    def _output(self, step: StepSpec, *, in_called_flow: bool = False) -> Fields | None:
        if step.ask == EVERY_ROLE:
            return {"results": LIST, "declined": LIST}
        if step.for_each is not None:
            by_role = {"by_role": ValueType.of_fields(fields_named(step.roles))} if step.asks_at_once else {}
            met = {"met": BOOLEAN} if step.until is not None else {}
            return {"results": LIST, "failed": NUMBER, **by_role, **met}
        match step.kind:
            case "check":
                return _result(step)
            case "review":
                return _of_review(step)
            case "call":
                return self._end_of_call(step, in_called_flow=in_called_flow)
        return self._handoff(step)

    def _end_of_call(self, step: StepSpec, *, in_called_flow: bool) -> Fields:
        """The fields of a call; those of calls within it stay unknown, because a flow may call itself."""
        end: Fields = {"outcome": TEXT, "exit_code": NUMBER, "vars": MAPPING, "steps": MAPPING}
        if in_called_flow:
            return end
        called = self.flows[step.call or ""]
        inner = {each.id: self._output(each, in_called_flow=True) for each in called.steps if called.shows(each.id)}
        steps = {name: MAPPING if output is None else ValueType.of_fields(output) for name, output in inner.items()}
        own = {"vars": ValueType.of_fields(fields_named(called.vars)), "steps": ValueType.of_fields(steps)}
        return {**end, "outcome": _outcomes(called), **own, **fields_named(_of_copy(step))}

    def _handoff(self, step: StepSpec) -> Fields | None:
        role = next((each for each in self.catalog.roles if each.name == step.ask), None)
        if role is None or role.tools:  # a tool may add anything
            return None
        schema = role.output_schema if step.reply is None else step.reply
        known = type_of_schema(schema)
        return None if known.is_open else {**known.fields, **fields_named((*ADDED, *_of_copy(step)))}


def _of_review(step: StepSpec) -> Fields:
    option: Fields = {"option": one_of(*step.options)} if step.options else {}
    given = {name: type_of_schema(schema) for name, schema in step.fields.items()}
    return {**given, **option, "approved": BOOLEAN, "comment": TEXT, "by": TEXT, "at": TEXT}


def _outcomes(flow: FlowSpec) -> ValueType:
    """How a walk of the flow can end; a role may say DONE, and a step may fail, or its result be bad."""
    declared = [end.outcome for end in ends(flow)]
    return one_of(*declared, "success", "done", "failed", *(f"{step.id}_failed" for step in flow.steps))


def _of_copy(step: StepSpec) -> tuple[str, ...]:
    """The fields of a step that works in a copy of the workspace."""
    return OF_COPY[: 2 if step.merge == "all" else 1] if step.isolate else ()


def _result(step: StepSpec) -> Fields | None:
    """The fields of a check's result, and those that its step adds to it or has if the check could not run."""
    try:
        check = find_check(step.check or "")
    except UsageError:  # reported with its place by whoever looks up the checks
        return None
    result = type_of_model(check.result) if check.result else MAPPING
    if result.is_open:
        return None
    declared = result.fields
    added = (TOLD, "reason", *(["number"] if step.check == "tests" else []))
    status = declared.get("status", ANY) | one_of(COULD_NOT_RUN)
    return {**fields_named(added), **declared, "status": status}
