"""The fields that templates can see of a step: ``steps.<id>.<field>``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, RoleSpecCatalog, StepSpec
from codex_multi_role.checks import find_check
from codex_multi_role.checks.contract import field_names
from codex_multi_role.errors import UsageError
from codex_multi_role.run_folder import Answer
from codex_multi_role.run_folder.turn_folder import ANALYSIS_PATH
from codex_multi_role.steps.protection import TOLD
from codex_multi_role.steps.turn_record import WEB_SEARCHES

# Each field with its own fields as in `catalog.templates.Names`, None if it may have any.
Fields = Mapping[str, Collection[str] | None]
OWN_FIGURES = ("visits", "status", "error", "verdict")


@dataclass(frozen=True)
class KnownFields:
    """What is known of the results of steps before a run of ``flows``: all flows that are called, by name."""

    flows: Mapping[str, FlowSpec]
    catalog: RoleSpecCatalog

    def of_step(self, step: StepSpec) -> Fields | None:
        """The fields of the step's results and of its own figures; None if it may have any."""
        output = self._output(step)
        if output is None:
            return None
        handoff = {"handoff": output} if step.ask else {}
        return {**output, **handoff, **dict.fromkeys(OWN_FIGURES)}

    def _output(self, step: StepSpec, *, in_called_flow: bool = False) -> Fields | None:
        if step.ask == EVERY_ROLE:
            return dict.fromkeys(("results", "declined"))
        if step.for_each is not None:
            return dict.fromkeys(("results", "failed"))
        match step.kind:
            case "check":
                return _result(step)
            case "review":
                return dict.fromkeys(each.name for each in fields(Answer))
            case "call":
                return self._end_of_call(step, in_called_flow=in_called_flow)
        return self._handoff(step)

    def _end_of_call(self, step: StepSpec, *, in_called_flow: bool) -> Fields:
        """The fields of a call; those of calls within it stay unknown, because a flow may call itself."""
        end: Fields = dict.fromkeys(("outcome", "exit_code", "vars", "steps"))
        if in_called_flow:
            return end
        called = self.flows[step.call or ""]
        steps = {each.id: self._output(each, in_called_flow=True) for each in called.steps if called.shows(each.id)}
        return {**end, "vars": called.vars.keys(), "steps": steps, **dict.fromkeys(_of_copy(step))}

    def _handoff(self, step: StepSpec) -> Fields | None:
        role = next((each for each in self.catalog.roles if each.name == step.ask), None)
        if role is None or role.tools:  # a tool may add anything
            return None
        schema = role.output_schema if step.reply is None else step.reply
        listed = None if schema is None else _listed(schema)
        if listed is None:
            return None
        return dict.fromkeys((*listed, ANALYSIS_PATH, TOLD, WEB_SEARCHES, *_of_copy(step)))


def _of_copy(step: StepSpec) -> tuple[str, ...]:
    """The fields of a step that works in a copy of the workspace."""
    merge = ("merge",) if step.merge == "all" else ()
    return ("copy", *merge) if step.isolate else ()


def _result(step: StepSpec) -> Fields | None:
    """The fields of a check's result, and those that its step adds to it or has if the check could not run."""
    try:
        check = find_check(step.check or "")
    except UsageError:  # reported with its place by whoever looks up the checks
        return None
    declared = field_names(check.result) if check.result else None
    added = (TOLD, "reason", *(["number"] if step.check == "tests" else []))
    return None if declared is None else {**dict.fromkeys(added), **declared}


def _listed(schema: Mapping[str, object]) -> Collection[str] | None:
    """The fields of an object with that JSON Schema; None if it may have others."""
    properties = schema.get("properties")
    is_closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    return properties if is_closed and isinstance(properties, dict) else None
