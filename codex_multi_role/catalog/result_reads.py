"""Where a flow reads the result of one of its steps: a bad one counts by itself unless its own ``next`` reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from codex_multi_role.catalog.flow_expressions import attribute_paths, has_expressions, name_or_constant, parse_template
from codex_multi_role.catalog.flow_spec import FlowSpec, reached_from, step_place
from codex_multi_role.catalog.step_spec import EVERY_ROLE, StepSpec
from codex_multi_role.reading.places import Problems

FIGURES = frozenset({"visits", "status", "error", "comment"})
"""What a template sees of a step beside its result, and a person's comment, which decides nothing."""


@lru_cache(maxsize=1024)
def fields_read(text: str, step_id: str) -> frozenset[str]:
    """The fields of ``steps.<step_id>`` that a template reads; an empty name for all of them at once."""
    paths = [path[2:] for path in attribute_paths(parse_template(text)) if path[:2] == ("steps", step_id)]
    fields = [path[0] for path in paths if len(path) == 1]
    wholes = paths.count(()) - len(fields)  # each field is taken from one mention of the step
    return frozenset(fields) | ({""} if wholes else set())


def routes_on_result(step: StepSpec) -> bool:
    """Whether a ``when`` of the step's own ``next`` names a field of its result: its author has decided on it."""
    return any(_is_result(f"{{{{ {route.when} }}}}", step.id) for route in step.next if route.when)


def reads_result(value: object, step_id: str) -> bool:
    """Whether a template or a condition in ``value``, such as a dumped step, reads the result of the step."""
    read = [fields_read(text, step_id) for text in _templates(value)]
    return any(fields - FIGURES for fields in read)


@lru_cache(maxsize=1024)
def shown_whole(text: str) -> frozenset[object]:
    """The names whose whole values a template always shows: ``("inputs", "task")`` for ``{{ inputs.task }}``."""
    from jinja2 import nodes

    outputs = (each for each in parse_template(text).body if isinstance(each, nodes.Output))
    found = (name_or_constant(part) for each in outputs for part in each.nodes)
    return frozenset(each for each in found if isinstance(each, tuple))


def steps_read(value: object) -> set[str]:
    """The steps whose results the templates in ``value`` read."""
    paths = (path for text in _templates(value) for path in attribute_paths(parse_template(text)))
    return {path[1] for path in paths if path[0] == "steps" and len(path) > 2 and path[2] not in FIGURES}


def check_measured(flows: Mapping[str, FlowSpec]) -> None:
    """Check that something reads the result of each step with ``on_bad: continue``: its flow, or one that calls it.

    ``flows``: a flow and those that it calls. Raises one ``DefinitionError`` for all mistakes.
    """
    problems = Problems()
    for flow in flows.values():
        for index, step in enumerate(flow.steps):
            measures = step.on_bad == "continue" and (step.ask is None or step.for_each is not None)
            if measures and not (_is_read(flow, index) or _callers_read(flow, step, flows)):
                with problems.collected():
                    raise (step_place(flow, index) / "on_bad").error(
                        f"continue, but nothing after the step reads steps.{step.id}",
                        "Read it in a later step or in the flow's result, or route on it in the step's next.",
                    )
    problems.raise_found()


def _is_read(flow: FlowSpec, index: int) -> bool:
    step = flow.steps[index]
    later = [*reached_from(flow, index), flow.result]
    is_passed_on = any(map(_takes_what_is_passed_on, reached_from(flow, index, before=_answers)))
    return is_passed_on or reads_result(step.set, step.id) or any(reads_result(e.model_dump(), step.id) for e in later)


def is_used(flow: FlowSpec, index: int) -> bool:
    """Whether anything in the flow uses what the step at ``index`` leaves, its own ``next`` and ``roles`` included."""
    step = flow.steps[index]
    following = reached_from(flow, index, before=_answers)
    is_given = step.ask is not None and any(
        each.ask == EVERY_ROLE or _takes_what_is_passed_on(each) for each in following
    )
    own = reads_result([route.model_dump() for route in step.next], step.id)
    return is_given or own or _is_read(flow, index) or any(_reads_role(flow, role) for role in step.asked)


def _reads_role(flow: FlowSpec, role: str) -> bool:
    paths = (path for text in _templates(flow.model_dump()) for path in attribute_paths(parse_template(text)))
    return ("roles", role) in {path[:2] for path in paths}


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


def _is_result(text: str, step_id: str) -> bool:
    return bool(fields_read(text, step_id) - FIGURES - {""})


def _templates(value: object, key: str = "") -> Iterator[str]:
    """The templates anywhere in ``value``, and the conditions as such; ``key``: its own in what contains it."""
    if isinstance(value, str):
        yield from [f"{{{{ {value} }}}}"] if key == "when" else [value] if has_expressions(value) else []
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _templates(each, str(name))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _templates(each, key)
