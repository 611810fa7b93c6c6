"""What a flow wants to be told before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import JsonValue, TypeAdapter, ValidationError, model_validator

from codex_multi_role.catalog.definition import Definition
from codex_multi_role.catalog.nearest import no_such
from codex_multi_role.errors import UsageError

InputType = Literal["string", "integer", "number", "boolean", "path"]
_PYTHON_TYPES: dict[InputType, type] = {"string": str, "integer": int, "number": float, "boolean": bool, "path": str}


class InputSpec(Definition):
    """One input. ``max_iterations: 5`` is short for a default and the type it has, ``question:`` for a required text.

    ``required``: unless said otherwise, an input without a default is. An optional one without a default is None.
    """

    type: InputType = "string"
    default: JsonValue = None
    required: bool = False
    description: str = ""

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, data: object) -> object:
        if data is None:
            return {"required": True}
        if isinstance(data, bool | int | float | str):
            return {"type": _type_of(data), "default": data}
        if isinstance(data, dict) and data.get("default") is None:
            return {"required": True} | data
        return data

    @model_validator(mode="after")
    def _check_default(self) -> Self:
        if self.default is None:
            return self
        if self.required:
            raise ValueError("a required input has no use for a default")
        try:
            _convert(self.type, self.default, strict=True)
        except ValidationError as error:
            raise ValueError(f"the default {self.default!r} is not of type {self.type}") from error
        return self


def resolve_inputs(flow: str, specs: Mapping[str, InputSpec], given: Mapping[str, object]) -> dict[str, Any]:
    """Every input's value: what was given, converted to its type, else its default.

    Raises ``UsageError`` for an unknown input (with the nearest), a missing one, or a value of another type.
    """
    for name in given:
        if name not in specs:
            message, hint = no_such("input", name, specs)
            raise UsageError(f"flow {flow}: {message}", hint)
    return {name: _resolve(flow, name, spec, given) for name, spec in specs.items()}


def _resolve(flow: str, name: str, spec: InputSpec, given: Mapping[str, object]) -> object:
    if name not in given:
        if spec.required:
            raise UsageError(f'flow {flow}: the input "{name}" is missing', f"Give --input {name}=<{spec.type}>.")
        return spec.default
    try:
        return _convert(spec.type, given[name])
    except ValidationError as error:
        raise UsageError(f'flow {flow}: the input "{name}" is not of type {spec.type}: {given[name]!r}') from error


def _convert(kind: InputType, value: object, *, strict: bool = False) -> object:
    return TypeAdapter(_PYTHON_TYPES[kind], config={"allow_inf_nan": False}).validate_python(value, strict=strict)


def _type_of(value: bool | float | str) -> InputType:
    by_type: dict[type, InputType] = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return by_type[type(value)]
