"""The fields that templates can see of a step (``steps.<id>.<field>``), and values that no run can make right."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import get_type_hints

from jinja2 import TemplateSyntaxError

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, RoleSpec, RoleSpecCatalog, StepSpec, render
from codex_multi_role.catalog.definition import closed_properties
from codex_multi_role.catalog.flow_expressions import has_expressions
from codex_multi_role.catalog.flow_spec import step_place
from codex_multi_role.catalog.flow_steps import TEMPLATE_NAMES
from codex_multi_role.catalog.shown_fields import OF_COPY, OfStep
from codex_multi_role.catalog.step_spec import ForEach, Review
from codex_multi_role.catalog.unknown_values import UnknownValue, tries
from codex_multi_role.flow.conditions import may_be_met
from codex_multi_role.flow.references import item_types, template_types
from codex_multi_role.flow.result_reads import fields_read
from codex_multi_role.flow.routing import ends
from codex_multi_role.flow.template_types import type_of_value
from codex_multi_role.reading.places import Place, Problems
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
    type_of_schema,
)

OWN_FIGURES: Fields = {name: type_of_annotation(each) for name, each in get_type_hints(OfStep).items()}
"""What a step has beside its output. ``verdict`` is the output's, otherwise its ``status``."""
NO_VERDICT = one_of("")


@dataclass(frozen=True)
class KnownCheck:
    """What a check declares of its results. ``result``: what steps see of them; ``bad``: their verdicts that are bad.

    ``is_only_read``: it changes nothing and never decides how the run ends. ``repeats_itself``: it gives the same
    result again while its files stay the same.
    """

    result: ValueType = MAPPING
    bad: Collection[str] = ()
    is_only_read: bool = False
    repeats_itself: bool = False


@dataclass(frozen=True)
class KnownFields:
    """What is known of the results of steps before a run of ``flows``: all flows that are called, by name.

    ``checks``: those that exist, by name. ``added``: the fields that an answer may get from elsewhere.
    """

    flows: Mapping[str, FlowSpec]
    catalog: RoleSpecCatalog
    checks: Mapping[str, KnownCheck]
    added: Collection[str]

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
            met = {"met": BOOLEAN} if step.for_each.until is not None else {}
            return {"results": LIST, "failed": NUMBER, **by_role, **met}
        match step.kind:
            case "check":
                result = self.checks.get(step.check or "", KnownCheck()).result
                return None if result.is_open else result.fields
            case "review":
                return {} if step.review is None else _of_review(step.review)
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
        return None if known.is_open else {**known.fields, **fields_named((*self.added, *_of_copy(step)))}


def _of_review(review: Review) -> Fields:
    option: Fields = {"option": one_of(*review.options)} if review.options else {}
    given = {name: type_of_schema(schema) for name, schema in review.fields.items()}
    return {**given, **option, "approved": BOOLEAN, "comment": TEXT, "comments": LIST, "by": TEXT, "at": TEXT}


def _outcomes(flow: FlowSpec) -> ValueType:
    """How a walk of the flow can end; a role may say DONE, and a step may fail, or its result be bad."""
    declared = [end.outcome for end in ends(flow)]
    return one_of(*declared, "success", "done", "failed", *(f"{step.id}_failed" for step in flow.steps))


def _of_copy(step: StepSpec) -> tuple[str, ...]:
    """The fields of a step that works in a copy of the workspace."""
    return OF_COPY[: 1 if step.isolate.merge == "none" else 2] if step.isolate is not None else ()


OF_ANY_ANSWER = frozenset({"status", "error"})
"""What an answer may have whatever its schema says."""
SCHEMA_HINT = "Add it to the properties of the schema, or leave it out of the other."


def known_types(
    flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog, checks: Mapping[str, KnownCheck], added: Collection[str]
) -> dict[str, Fields]:
    """By flow, the type of each name that all its templates can use; see `KnownFields`."""
    of_step = KnownFields(flows, catalog, checks, added).of_step
    return {name: template_types(flow, catalog, of_step) for name, flow in flows.items()}


def values_of_options(step: StepSpec, types: Fields) -> tuple[dict[str, object], Fields]:
    """The options of the step's check that are known before a run, and what is known of the others."""
    seen = item_types(step, types)
    computed = {name: type_of_value(each, seen) for name, each in step.with_.items() if has_expressions(each)}
    return {name: each for name, each in step.with_.items() if name not in computed}, computed


def check_keys(flow: FlowSpec, problems: Problems) -> None:
    """Find keys of steps that have no effect, and values in them that no result can have."""
    for index, step in enumerate(flow.steps):
        place = step_place(flow, index)
        for key, problem, hint in _without_effect(step):
            problems.add(place.key(*key).error(problem, hint))
        if (fan_out := step.for_each) is None:
            continue
        with problems.collected(), suppress(TemplateSyntaxError):  # reported with its place by `check_template`
            _check_until(step.id, fan_out, place / "for_each" / "until")
        for number, item in enumerate(fan_out.items if isinstance(fan_out.items, list) else ()):
            with problems.collected():
                names = {fan_out.as_: item, "item": item, "index": number}
                _check_role_of(step, names, place / "for_each" / "items" / number)


def _without_effect(step: StepSpec) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Each such key, why, and what to do."""
    fan_out, may_be_bad = step.for_each, step.ask is None
    if step.retry is not None and step.review is not None:
        hint = "Ask again with an entry of `next` that leads back to the step."
        yield ("retry",), "retry has no effect on a review: a person's answer is final", hint
    if fan_out is not None:
        if "on_failure" in fan_out.model_fields_set and ("failed" in fan_out.allow or fan_out.until is not None):
            beside = "until" if fan_out.until is not None else "allow: [failed]"
            problem = f"on_failure has no effect beside {beside}: no item ends the run"
            yield ("for_each", "on_failure"), problem, "Leave it out."
        if "failed" in step.allow:
            problem = "allow: [failed] has no effect on a fan-out, which fails with an item only"
            yield ("allow",), problem, "Say it of the items: `for_each: {allow: [failed]}`."
        if "bad" in fan_out.allow and not may_be_bad:
            hint = "Judge the answers with a `when` in the step's `next`."
            yield ("for_each", "allow"), "bad has no effect on an ask: an answer is never bad by itself", hint
        may_be_bad = may_be_bad or fan_out.until is not None or bool(fan_out.allow)
    if "bad" in step.allow and not may_be_bad:
        hint = "Judge the answer with a `when` in the step's `next`."
        yield ("allow",), "allow: [bad] has no effect on an ask: an answer is never bad by itself", hint


def _check_until(step_id: str, fan_out: ForEach, place: Place) -> None:
    if fan_out.until is None:
        return
    if fields_read(f"{{{{ {fan_out.until} }}}}", step_id) - {"visits"}:
        raise place.error(
            f"steps.{step_id} has no results of this visit yet", "Read `results`, which are those of the items so far."
        )
    most = fan_out.most_items
    if not may_be_met(fan_out.until, most):
        raise place.error(f"cannot be met: the step has at most {most} items", "`results` has one entry per item.")


def _check_role_of(step: StepSpec, names: Mapping[str, object], place: Place) -> None:
    """Raise `DefinitionError` if an item that is known before a run asks a role that its step does not list."""
    if not step.roles or has_expressions(names["item"]):
        return
    unknown = {name: UnknownValue(name) for name in TEMPLATE_NAMES}
    role = tries(partial(render, step.ask, {**unknown, **names}, place))
    if role.failure is not None:
        raise role.failure
    if isinstance(role.only, str) and role.only not in step.roles:
        raise place.unknown("role", role.only, step.roles)


def check_closed_schemas(catalog: RoleSpecCatalog, problems: Problems) -> None:
    """Find schemas without the fields that ``apply_files`` takes or that the role's schema hint shows."""
    for index, role in enumerate(catalog.roles):
        in_catalog = role.source == catalog.source
        place = Place(role.source, ("roles", index) if in_catalog else ()) / "output_schema"
        problems.collect(_check_closed_schema, role, place)


def _check_closed_schema(role: RoleSpec, place: Place) -> None:
    listed = closed_properties(role.output_schema or {})
    if listed is None:
        return
    if role.behaviors.apply_files and "files" not in listed:
        raise place.error("forbids files, which behaviors.apply_files writes into the workspace", SCHEMA_HINT)
    if forbidden := sorted(_fields_in_example(role.schema_hint) - listed.keys() - OF_ANY_ANSWER):
        raise place.error(f"forbids {', '.join(forbidden)}, which the schema hint of the role shows", SCHEMA_HINT)


def _fields_in_example(hint: str) -> set[str]:
    """The keys of the JSON object in a schema hint; nothing if it has none, or is a schema itself."""
    try:
        example, _ = json.JSONDecoder().raw_decode(hint[hint.index("{") :])
    except ValueError:
        return set()
    return set(example) if "properties" not in example else set()
