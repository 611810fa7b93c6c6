"""Dry runs: render every prompt of the first pass, with placeholders such as ``<planner.summary>`` for results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, RoleSpec, StepSpec, build_prompt
from codex_multi_role.catalog.step_spec import ForEach
from codex_multi_role.catalog.template_preview import Unknown, preview
from codex_multi_role.flow import FlowState
from codex_multi_role.flow.fan_out_items import content_of_item
from codex_multi_role.flow.state import StepState
from codex_multi_role.lifecycle.definitions import Definitions, load_definitions
from codex_multi_role.lifecycle.readiness import require_paths
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import Record
from codex_multi_role.run_options import RunOptions
from codex_multi_role.steps.ask import payload_from, role_for, told_what_is_required

REST = "…"
TEST_RESULT: Json = {"status": "<test result>", REST: REST}


def dry_run(options: RunOptions) -> list[Record]:
    """What a run of ``options`` would ask and check, without doing it. Raises what a run raises before it starts.

    Each step appears once, in file order, as if everything succeeded: a fan-out with its first item, a called flow with
    its first call. Each record starts with ``{type, step, item}``: the kind, the step's ID below those of the calls,
    and which item it is (None without a fan-out). An ask adds ``role`` and ``prompt``; a check ``check`` and ``with``;
    a review ``question``, ``show``, ``time_limit_seconds`` and ``default``; a call ``flow``, ``with`` and ``first``.
    What a run warns of at its start stands before the steps: ``warning`` with ``message``.
    """
    definitions = load_definitions(options)
    require_paths(definitions)
    records: list[Record] = [
        {"type": "warning", "step": "", "item": None, "message": each} for each in definitions.warnings
    ]
    walk = _FirstPass(definitions, definitions.flow, definitions.inputs, records)
    walk.walk()
    return records


@dataclass
class _FirstPass:
    """The first pass through one flow. ``prefix``: where it was called."""

    definitions: Definitions
    flow: FlowSpec
    inputs: Mapping[str, Any]
    records: list[Record]
    prefix: str = ""

    def __post_init__(self) -> None:
        options, steps = self.definitions.options, {step.id: StepState() for step in self.flow.steps}
        first = self.flow.steps[0].id
        self.state = FlowState(self.flow.name, options.goal, self.inputs, options.cycles, first, steps)
        self.state.vars = preview(self.flow.vars, self._context())

    def walk(self) -> None:
        for step in self.flow.steps:
            self.state.enter(step.id)
            if step.for_each is not None:
                self._add_first_item(step, step.for_each)
            elif step.ask == EVERY_ROLE:
                self._add_every_role(step)
            else:
                self._add_unit(step, self._context(), None, None)
            self.state.leave(step.id, {})
            self.state.vars |= preview(step.set, self._context())

    def _add_first_item(self, step: StepSpec, fan_out: ForEach) -> None:
        context = self._context()
        items = preview(fan_out.items, context)
        if isinstance(items, list) and not items:
            return
        if step.asks_at_once:
            for number, role in enumerate(step.roles):
                own, which = {"item": role, "index": number}, f"{number + 1} of {len(step.roles)}"
                self._add_unit(step.asking(role), {**context, **own}, None, which)
            return
        if isinstance(items, list):
            own, which = {fan_out.as_: items[0], "item": items[0], "index": 0}, f"1 of {len(items)}"
        else:
            item = Unknown(fan_out.as_)
            own, which = {fan_out.as_: item, "item": item, "index": Unknown("index")}, f"each of {items}"
        content = content_of_item(step, own[fan_out.as_])
        for each in [step.asking(role) for role in step.roles] or [step]:  # the item's data choose one of them
            self._add_unit(each, {**context, **own}, content, which)

    def _add_unit(self, step: StepSpec, context: Mapping[str, Any], item: Json | None, which: str | None) -> None:
        """Record one unit of ``step``, whatever its kind."""
        if step.ask is not None:
            role, task = role_for(
                self.definitions.catalog.role(step.ask), step, str(preview(step.prompt or "", context))
            )
            given: Json = preview(step.with_, context)
            self._add_ask(step, role, given or self.state.input_handoff(item, step.prompt), which, task)
        elif step.check is not None:
            self._add("check", step, which, {"check": step.check, "with": preview(step.with_, context)})
            self.state.latest_tests = TEST_RESULT if step.check == "tests" else self.state.latest_tests
        elif step.review is not None:
            review, after = step.review, step.review.after
            texts = {"question": preview(review.question, context), "show": preview(review.show or "", context)}
            limits = {"time_limit_seconds": after and after.seconds, "default": after and after.answer}
            self._add("review", step, which, texts | limits)
        elif step.call is not None:
            self._add_call(step, step.call, preview(step.with_, context), which)
        else:
            self._add(step.kind, step, which, {"with": preview(step.with_, context)})

    def _add_every_role(self, step: StepSpec) -> None:
        dependencies = self.definitions.catalog.dependencies()
        before = self.definitions.catalog.not_waited_for(self.state.latest_handoffs)
        for name in self.definitions.catalog.in_order():
            handoffs = {each: self.state.latest_handoffs[each] for each in dependencies[name]}
            self._add_ask(step, self.definitions.catalog.role(name), payload_from(handoffs or before), None)

    def _add_ask(self, step: StepSpec, role: RoleSpec, payload: Json | None, which: str | None, task: str = "") -> None:
        texts, contracts = self.definitions.catalog.general_prompts, self.definitions.contracts
        told = told_what_is_required(role, texts, contracts.for_ask(self.flow.name, step, role))
        prompt = build_prompt(texts, told, self.state.goal, payload, self.state.latest_tests, task=task)
        self._add("ask", step, which, {"role": role.name, "prompt": prompt})
        self.state.absorb_handoff(role.name, role.name, 0, _example_handoff(role), shown=self.flow.shows(step.id))
        if self.definitions.options.tests.run_tests and role.may_change_workspace:
            self.state.latest_tests = TEST_RESULT

    def _add_call(self, step: StepSpec, name: str, given: Json, which: str | None) -> None:
        first = all(record.get("flow") != name for record in self.records) and name != self.definitions.flow.name
        self._add("call", step, which, {"flow": name, "with": given, "first": first})
        if first:
            called = self.definitions.flows[name]
            inputs = {each: given.get(each, spec.default) for each, spec in called.inputs.items()}
            prefix = f"{self.prefix}{step.id}/"
            inner = _FirstPass(self.definitions, called, inputs, self.records, prefix)
            inner.walk()
            self.state.take_handoffs(inner.state.shown_handoffs, shown=self.flow.shows(step.id))
            self.state.latest_tests = inner.state.latest_tests or self.state.latest_tests

    def _add(self, kind: str, step: StepSpec, which: str | None, fields: Json) -> None:
        self.records.append({"type": kind, "step": f"{self.prefix}{step.id}", "item": which, **fields})

    def _context(self) -> dict[str, Any]:
        """What templates see, with `Unknown` values for the results of steps and roles, present or still missing."""
        known = self.state.context()
        told = self.state.latest_handoffs
        roles = {role.name: Unknown(role.name, has_value=role.name in told) for role in self.definitions.catalog.roles}
        steps = {
            name: Unknown(name, fields, has_value=fields["status"] == "done") for name, fields in known["steps"].items()
        }
        return {**known, "roles": roles, "steps": steps}


def _example_handoff(role: RoleSpec) -> Json:
    """A placeholder handoff: the fields that the role's reply schema names, or a summary and more."""
    named = (role.output_schema or {}).get("properties")
    if isinstance(named, Mapping):
        return {name: Unknown(f"{role.name}.{name}") for name in named}
    return {"summary": Unknown(f"{role.name}.summary"), REST: REST}
