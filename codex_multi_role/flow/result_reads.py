"""Where a flow reads the result of one of its steps: a bad one counts by itself unless its own ``next`` reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from codex_multi_role.catalog.definition import Definition
from codex_multi_role.catalog.flow_expressions import has_expressions, paths_of
from codex_multi_role.catalog.flow_spec import FlowSpec, reached_from, step_place
from codex_multi_role.catalog.step_spec import EVERY_ROLE, Step, StepSpec
from codex_multi_role.host.spelling import texts_in
from codex_multi_role.reading.places import Problems

FIGURES = frozenset({"visits", "status", "error", "comment"})
"""What a template sees of a step beside its result, and a person's comment, which decides nothing."""


def fields_read(value: object, step_id: str) -> set[str]:
    """The fields of ``steps.<step_id>`` that the templates in ``value`` read; an empty name for all of them at once."""
    return {path[2] if len(path) > 2 else "" for path in paths_in(value) if path[:2] == ("steps", step_id)}


def routes_on_result(step: StepSpec) -> bool:
    """Whether a ``when`` of the step's own ``next`` names a field of its result: its author has decided on it."""
    return bool(fields_read({"next": [{"when": route.when} for route in step.next]}, step.id) - FIGURES - {""})


def reads_result(value: object, step_id: str) -> bool:
    """Whether a template or a condition in ``value``, such as a dumped step, reads the result of the step."""
    return bool(fields_read(value, step_id) - FIGURES)


def templates_of(part: Definition) -> Mapping[str, object]:
    """The values of a flow, or of a part of it, that can have templates in them; descriptions and schemas cannot."""
    steps = getattr(part, "steps", [part])
    plain = part.model_dump(exclude=_PLAIN | {key: {"__all__": _PLAIN} for key in ("steps", "finally_")})
    return {**plain, "defaults": [each.template("defaults") for each in steps if isinstance(each, Step)]}


_PLAIN: dict[str, Any] = dict.fromkeys(("description", "goal", "inputs", "states", "reply"), True) | {
    "review": {"fields": True}
}


def uses_cycles(flow: FlowSpec) -> bool:
    """Whether a template or a condition reads ``cycle`` or ``cycles``."""
    return any(path[0] in ("cycle", "cycles") for path in paths_in(templates_of(flow)))


def steps_read(value: object) -> set[str]:
    """The steps whose results the templates in ``value`` read."""
    paths = (path for path in paths_in(value) if path[0] == "steps" and len(path) > 2)
    return {path[1] for path in paths if path[2] not in FIGURES}


def check_measured(flows: Mapping[str, FlowSpec]) -> None:
    """Check that something reads the result of each step with ``allow: [bad]``: its flow, or one that calls it.

    ``flows``: a flow and those that it calls. Raises one ``DefinitionError`` for all mistakes.
    """
    problems = Problems()
    for flow in flows.values():
        for index, step in enumerate(flow.steps):
            measures = step.allow == ("bad",) and (step.ask is None or step.for_each is not None)
            if measures and not (_is_read(flow, index) or _callers_read(flow, step, flows)):
                problems.add(
                    (step_place(flow, index) / "allow").error(
                        f"[bad], but nothing after the step reads steps.{step.id}",
                        "Read it in a later step or in the flow's result, or route on it in the step's next.",
                    )
                )
    problems.raise_found()


def _is_read(flow: FlowSpec, index: int) -> bool:
    step = flow.steps[index]
    later = [*reached_from(flow, index), flow.result]
    is_passed_on = any(map(_takes_what_is_passed_on, reached_from(flow, index, before=_answers)))
    return (
        is_passed_on
        or reads_result(step.set, step.id)
        or any(reads_result(templates_of(each), step.id) for each in later)
    )


def is_used(flow: FlowSpec, index: int) -> bool:
    """Whether anything in the flow uses what the step at ``index`` leaves, its own ``next`` and ``roles`` included."""
    step = flow.steps[index]
    following = reached_from(flow, index, before=_answers)
    is_given = step.ask is not None and any(
        each.ask == EVERY_ROLE or _takes_what_is_passed_on(each) for each in following
    )
    own = reads_result({"next": templates_of(step)["next"]}, step.id)
    roles = {path[1] for path in paths_in(templates_of(flow)) if path[0] == "roles" and len(path) > 1}
    return is_given or own or _is_read(flow, index) or not roles.isdisjoint(step.asked)


def _callers_read(flow: FlowSpec, step: StepSpec, flows: Mapping[str, FlowSpec]) -> bool:
    """Whether a calling flow sees the step, and reads the result of its call; unknown callers do."""
    calls = [
        (caller, index)
        for caller in flows.values()
        for index, call in enumerate(caller.steps)
        if call.call == flow.name and caller is not flow
    ]
    return flow.shows(step.id) and (any(_is_read(*call) for call in calls) if calls else flow.internal)


def _answers(step: StepSpec) -> bool:
    """Whether a role answers in the step; only the results since then are passed on."""
    return step.ask is not None or step.call is not None


def _takes_what_is_passed_on(step: StepSpec) -> bool:
    return step.ask not in (None, EVERY_ROLE) and not step.with_ and (step.for_each is None or step.items_are_roles)


def paths_in(value: object) -> Iterator[tuple[str, ...]]:
    """What the templates and conditions anywhere in ``value`` read."""
    for text, keys in texts_in(value):
        if keys[-3::2] == ("next", "when"):
            yield from paths_of(f"{{{{ {text} }}}}")
        elif has_expressions(text):
            yield from paths_of(text)
