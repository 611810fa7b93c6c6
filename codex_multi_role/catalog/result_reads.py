"""Where a flow reads the result of one of its steps: a bad one counts by itself unless its own ``next`` reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from codex_multi_role.catalog.flow_expressions import attribute_paths, has_expressions, parse_template
from codex_multi_role.catalog.flow_spec import FlowSpec, step_place, ways_out
from codex_multi_role.catalog.step_spec import EVERY_ROLE, StepSpec

FIGURES = frozenset({"visits", "status", "error", "comment"})
"""What a template sees of a step beside its result, and a person's comment, which is no verdict."""


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
    """Whether a template or a condition in ``value``, a structure of texts, reads the result of the step."""
    marked = (text if has_expressions(text) else f"{{{{ {text} }}}}" for text in _texts(value) if step_id in text)
    return any(_is_result(text, step_id) or "" in fields_read(text, step_id) for text in marked)


def check_measured(flow: FlowSpec) -> None:
    """Check that something reads the result of each step with ``on_bad: continue``. Raises one ``DefinitionError``.

    What a calling flow sees counts as read, because its steps decide on it.
    """
    for index, step in enumerate(flow.steps):
        if step.on_bad == "continue" and not _is_read(flow, index):
            raise (step_place(flow, index) / "on_bad").error(
                f"continue, but nothing after the step reads steps.{step.id}",
                "Read it in a later step or in the flow's result, or route on it in the step's next.",
            )


def _is_read(flow: FlowSpec, index: int) -> bool:
    step = flow.steps[index]
    if flow.internal and flow.shows(step.id):
        return True
    later = [*_reached_from(flow, index), flow.result]
    is_handed_on = any(map(_takes_what_is_handed_on, _reached_from(flow, index, before=_answers)))
    return is_handed_on or reads_result(step.set, step.id) or any(reads_result(e.model_dump(), step.id) for e in later)


def _answers(step: StepSpec) -> bool:
    """Whether a role answers in the step; only the results since then are handed on."""
    return step.ask is not None or step.call is not None


def _takes_what_is_handed_on(step: StepSpec) -> bool:
    return step.ask not in (None, EVERY_ROLE) and step.for_each is None and not step.with_


def _reached_from(
    flow: FlowSpec, index: int, before: Callable[[StepSpec], bool] = lambda _: False
) -> Iterator[StepSpec]:
    """The steps that may follow the one at ``index``, directly or ``before`` another one of that kind has."""
    places = {step.id: number for number, step in enumerate(flow.steps)}
    waiting, seen = [index], set[int]()
    while waiting:
        for route in ways_out(flow, waiting.pop()):
            if route.to is not None and (place := places[route.to]) not in seen:
                seen.add(place)
                waiting += [] if before(flow.steps[place]) else [place]
                yield flow.steps[place]


def _is_result(text: str, step_id: str) -> bool:
    return bool(fields_read(text, step_id) - FIGURES - {""})


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
