"""The items of a fan-out: which they are, how many run at once, and which of them wait for others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, RoleSpecCatalog, StepSpec, render
from codex_multi_role.catalog.flow_spec import step_place
from codex_multi_role.catalog.step_spec import ForEach
from codex_multi_role.catalog.templates import render_text, template_failed
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.effort import MOST_AT_ONCE
from codex_multi_role.flow.state import FlowState
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.places import Place
from codex_multi_role.reading.value_types import ValueType

TITLES = ("title", "name", "task", "question", "file", "path", "content")
"""The fields of an item that say what it is about."""
TITLE_WORDS = 10
SHORT_TEXT = re.compile(r"\S([^\n\r\t]{0,58}\S)?")


def items_of(fan_out: ForEach, context: Mapping[str, Any], place: Place) -> tuple[list[Any], int]:
    """The items of the fan-out at ``place``, and how many run at once. Raises `TemplateFailed` for invalid ones."""
    items = render(fan_out.items, context, place / "items")
    if not isinstance(items, list):
        problem = f"must be a list, not {ValueType.of_constant(items).kinds_in_words}"
        raise template_failed(place / "items", problem, fan_out.items, context)
    if fan_out.max_items is not None and len(items) > fan_out.max_items:
        problem = f"{len(items)} items, max_items is {fan_out.max_items}"
        raise template_failed(place / "items", problem, fan_out.items, context)
    concurrency = render(fan_out.concurrency, context, place / "concurrency")
    if not isinstance(concurrency, int) or not 1 <= concurrency <= MOST_AT_ONCE:
        problem = f"must be a number from 1 to {MOST_AT_ONCE}, not {concurrency!r}"
        raise template_failed(place / "concurrency", problem, fan_out.concurrency, context)
    return items, concurrency


def name_of(item: object, index: int) -> str:
    """An item's name: its ``id``, a short text itself, otherwise its number in the list, counted from 1."""
    if isinstance(item, Mapping) and "id" in item:
        return str(item["id"])
    return item if isinstance(item, str) and SHORT_TEXT.fullmatch(item) else str(index + 1)


def title_of(step: StepSpec, context: Mapping[str, Any], item: object = None) -> str:
    """What people call the step, or an ``item`` of it: as its author says, otherwise by the first words of the item.

    A title that cannot be filled in is left out: nobody works with it.
    """
    told = next((item[key] for key in TITLES if item.get(key)), "") if isinstance(item, Mapping) else item
    if step.title is not None:
        with suppress(DefinitionError):
            told = render_text(step.title, context, Place(Path()))
    words = told.split() if isinstance(told, str) else []
    return " ".join(words) if len(words) <= TITLE_WORDS else f"{' '.join(words[:TITLE_WORDS])} …"


def needs_of(fan_out: ForEach, items: Sequence[Any], context: Mapping[str, Any], place: Place) -> list[list[int]]:
    """For each item, the indices of those it waits for.

    Raises `TemplateFailed` for items without a unique ``id``, an unknown id, and a cycle.
    """
    if fan_out.needs is None:
        return [[] for _ in items]
    where = place / "needs"
    try:
        return _needs(fan_out, items, context, where)
    except ValueError as problem:
        raise template_failed(where, str(problem), fan_out.items, context) from problem


def _needs(fan_out: ForEach, items: Sequence[Any], context: Mapping[str, Any], where: Place) -> list[list[int]]:
    """As `needs_of`. Raises `ValueError` for items that do not fit together."""
    ids = [str(item.get("id")) if isinstance(item, Mapping) and "id" in item else "" for item in items]
    if "" in ids or len(set(ids)) < len(ids):
        raise ValueError(f"every item must have a unique id, but the ids are: {', '.join(ids)}")
    needs = []
    for index, item in enumerate(items):
        named = render(fan_out.needs, {**context, fan_out.as_: item, "item": item, "index": index}, where)
        if not isinstance(named, list) or not {*map(str, named)} <= {*ids}:
            raise ValueError(f"{ids[index]} needs {named!r}: must be a list of item ids")
        needs.append([ids.index(str(name)) for name in named])
    try:
        TopologicalSorter(dict(enumerate(needs))).prepare()
    except CycleError as error:
        circle = " -> ".join(ids[index] for index in reversed(error.args[1]))
        raise ValueError(f"items depend on each other: {circle}") from error
    return needs


def step_of_item(step: StepSpec, seen: Mapping[str, Any], place: Place) -> StepSpec:
    """The step as one item takes it: with the role that it asks. Raises `TemplateFailed` for none of its roles."""
    if not step.roles:
        return step
    role = render(step.ask, seen, place / "ask")
    if role not in step.roles:
        problem = f"must be one of {', '.join(step.roles)}, not {role!r}"
        raise template_failed(place / "ask", problem, step.ask, seen)
    return step.asking(role)


def content_of_item(step: StepSpec, item: object) -> Json | None:
    """What an item's ask starts from, by its name; None if the item has nothing of its own that the ask could.

    It may only name the role, or be for a called flow, whose asks start from its inputs.
    """
    is_given = step.call is None and not step.items_are_roles
    return {step.for_each.as_: item} if is_given and step.for_each is not None else None


def first_asked(flow: FlowSpec, catalog: RoleSpecCatalog, state: FlowState) -> tuple[str, int]:
    """The role that the flow's first step asks, and how many of its processes at once; ``("", 0)`` if it is not one.

    ``state``: the state before the run. An invalid list is not reported here, but by its step during the run.
    """
    step = flow.steps[0]
    if step.ask == EVERY_ROLE:
        first = [role for role, needs in catalog.dependencies().items() if not needs]
        return (first[0], 1) if len(first) == 1 else ("", 0)
    if step.roles:
        return "", 0
    if step.ask is None or step.for_each is None:
        return (step.ask, 1) if step.ask else ("", 0)
    context = {**state.context(), "cycle": 1}
    try:
        place = step_place(flow, 0) / "for_each"
        items, concurrency = items_of(step.for_each, context, place)
        needs = needs_of(step.for_each, items, context, place)
    except DefinitionError:
        return "", 0
    return step.ask, min(concurrency, needs.count([]))
