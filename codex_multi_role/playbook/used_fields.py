"""The shape of an answer, read from how a flow uses it: for roles without a JSON Schema.

A field that is compared with values may have those values, one that decides by itself is a boolean, one that is
iterated is a list, and any other is a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from jinja2 import nodes

from codex_multi_role.catalog import FlowSpec, StepSpec
from codex_multi_role.catalog.flow_expressions import (
    attribute_paths,
    has_expressions,
    name_or_constant,
    parse_expression,
    parse_template,
    whole_expression,
)
from codex_multi_role.catalog.templates import MAX_CACHED

Name = tuple[str, ...]
Uses = Iterator[tuple[Name, dict[str, Any]]]

OTHER = "automatic"
"""A text that no condition names."""
OWN_FIGURES = ("visits", "status", "error")
"""What a step shows beside the answer, so that it is not a field of it."""
_LIST_FILTERS = frozenset(
    ("length", "count", "list", "first", "last", "map", "select", "selectattr", "reject", "rejectattr", "join", "sort")
)


def schema_from_use(flows: Iterable[FlowSpec], role: str, reply_of: str = "") -> dict[str, Any]:
    """A JSON Schema with the fields of the role's answer that ``flows`` use, all of them required.

    ``reply_of``: the step whose ``reply`` it is; otherwise it is the answer of the role itself.
    """
    schema: dict[str, Any] = {"type": "object"}
    for flow in flows:
        asking = {step.id for step in flow.steps if step.ask == role and reply_of == (step.id if step.reply else "")}
        asking -= {step.id for step in flow.steps if step.for_each is not None}
        for path, shape in _uses_in(flow):
            match path:
                case ("steps", step_id, "handoff", name, *rest) if step_id in asking:
                    _add(schema, (name, *rest), shape)
                case ("steps", step_id, name, *rest) if step_id in asking and name not in ("handoff", *OWN_FIGURES):
                    _add(schema, (name, *rest), shape)
                case ("roles", owner, name, *rest) if owner == role and not reply_of:
                    _add(schema, (name, *rest), shape)
    return schema


def _add(schema: dict[str, Any], path: Name, shape: Mapping[str, Any]) -> None:
    """Add a field to an object's schema. Of two uses the more specific one counts."""
    for name in path:
        schema.setdefault("required", [])
        if name not in schema["required"]:
            schema["required"].append(name)
        schema = schema.setdefault("properties", {}).setdefault(name, {})
    known = schema.get("enum", [])
    values = {"enum": known + [value for value in shape["enum"] if value not in known]} if "enum" in shape else {}
    schema |= {**shape, **schema, **values}


def _uses_in(flow: FlowSpec) -> Uses:
    for step in flow.steps:
        own = [use for text in _texts(step) for use in _uses(text)]
        yield from own
        listed = _whole_path(step.for_each)
        if listed:
            items: dict[str, Any] = {}
            for (first, *rest), shape in own:
                if first in (step.as_, "item") and rest:
                    _add(items, tuple(rest), shape)
            yield listed, {"type": "array", "items": items}


def _texts(step: StepSpec) -> Iterator[str]:
    """All templates of a step; a condition as a template of its own."""
    values = [step.prompt, step.review, step.show, step.needs, step.for_each, step.with_, step.set]
    values += [route.reason for route in step.next]
    values += [f"{{% if {route.when} %}}{{% endif %}}" for route in step.next if route.when]
    yield from (text for value in values for text in _strings(value) if has_expressions(text))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(each)


@lru_cache(maxsize=MAX_CACHED)
def _uses(template: str) -> tuple[tuple[Name, dict[str, Any]], ...]:
    return tuple(_find_uses(template))


def _find_uses(template: str) -> Uses:
    """Every dotted name in the template, with the schema of a value that fits its use."""
    syntax = parse_template(template)
    yield from ((path, {}) for path in attribute_paths(syntax))
    for compared in syntax.find_all(nodes.Compare):
        yield from _compared(compared)
    iterated = [loop.iter for loop in syntax.find_all(nodes.For)]
    iterated += [used.node for used in syntax.find_all(nodes.Filter) if used.node and used.name in _LIST_FILTERS]
    yield from ((path, {"type": "array"}) for path in map(_path, iterated) if path)
    tests = [each.test for each in syntax.find_all(nodes.If)] + [each.test for each in syntax.find_all(nodes.CondExpr)]
    for test in tests:
        yield from ((path, {"type": "boolean"}) for path in _deciding(test))


def _compared(comparison: nodes.Compare) -> Uses:
    """The name in ``name == constant``, the other way round, or in ``name in [constants]``."""
    left, right = comparison.expr, comparison.ops[0].expr
    options = right.items if isinstance(right, nodes.List | nodes.Tuple) else [right]
    for name, constants in ((left, options), (right, [left])):
        values = [each.value for each in constants if isinstance(each, nodes.Const)]
        if (path := _path(name)) and values:
            yield path, {"enum": [*_others(values[0]), *values]}


def _others(value: object) -> list[object]:
    """Values beside ``value``, for the other outcome of a comparison."""
    if isinstance(value, bool):
        return [not value]
    return [value - 1, value + 1] if isinstance(value, int | float) else [OTHER]


def _deciding(test: nodes.Node) -> Iterator[Name]:
    """The names that are true or false by themselves in a condition."""
    match test:
        case nodes.Not(node=inner):
            yield from _deciding(inner)
        case nodes.And(left=left, right=right) | nodes.Or(left=left, right=right):
            yield from (*_deciding(left), *_deciding(right))
        case _ if path := _path(test):
            yield path


def _path(node: nodes.Node) -> Name:
    """The parts of a dotted name; empty for anything else."""
    found = name_or_constant(node)
    return found if isinstance(found, tuple) and all(isinstance(part, str) for part in found) else ()


def _whole_path(template: object) -> Name:
    """The parts of the name in a template that is one whole ``{{ a.b }}``; otherwise empty."""
    whole = whole_expression(template) if isinstance(template, str) else None
    return _path(parse_expression(whole)) if whole else ()
