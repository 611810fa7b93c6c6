"""The shape of an answer, read from how a flow uses it: for roles without a JSON Schema.

A field that is compared with values may have those values, one that decides by itself is a boolean, one that is
iterated is a list, and any other is a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec
from codex_multi_role.catalog.contracts import Contracts
from codex_multi_role.catalog.result_paths import ResultRead
from codex_multi_role.catalog.value_uses import Path, ValueUse

OTHER = "automatic"
"""A text that no condition names."""


def schema_from_use(
    contracts: Contracts, flows: Mapping[str, FlowSpec], role: str, reply_of: str = ""
) -> dict[str, Any]:
    """A JSON Schema with the fields of the role's answer that ``flows`` use, all of them required.

    ``reply_of``: the step whose ``reply`` it is; otherwise it is the answer of the role itself.
    """
    schema: dict[str, Any] = {"type": "object"}
    for flow in flows.values():
        for step in flow.steps:
            if {role, EVERY_ROLE} & {*step.asked} and reply_of == ("" if step.reply is None else step.id):
                for read in contracts.reads(flow.name, step, role):
                    _add(schema, read.path, _shape(read))
    return schema


def _add(schema: dict[str, Any], path: Path, shape: Mapping[str, Any]) -> None:
    """Add a field to an object's schema. Of two uses the more specific one counts."""
    if not (shape or isinstance(path[-1], str)):
        path, shape = path[:-1], {"type": "array"}
    for name in path:
        if not isinstance(name, str):
            schema.setdefault("type", "array")
            schema = schema.setdefault("items", {})
            continue
        schema["required"] = [*dict.fromkeys([*schema.get("required", []), name])]
        schema = schema.setdefault("properties", {}).setdefault(name, {})
    known = schema.get("enum", [])
    values = {"enum": known + [value for value in shape["enum"] if value not in known]} if "enum" in shape else {}
    schema |= {**shape, **schema, **values}


def _shape(read: ResultRead) -> dict[str, Any]:
    """The schema of a value that fits its use, with values for both outcomes of a comparison."""
    if read.compared:
        return {"enum": [*_others(read.compared[0]), *read.compared]}
    kind = {ValueUse.DECIDED: "boolean", ValueUse.COUNTED: "array"}.get(read.use, read.use.type)
    return {"type": kind} if kind not in ("", "string") else {}


def _others(value: object) -> list[object]:
    """Values beside ``value``, for the other outcome of a comparison."""
    if isinstance(value, bool):
        return [not value]
    return [value - 1, value + 1] if isinstance(value, int | float) else [OTHER]
