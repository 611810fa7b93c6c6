"""The goal and the inputs that a flow requires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, GetJsonSchemaHandler, JsonValue, StrictBool, TypeAdapter, ValidationError, model_validator
from pydantic_core import CoreSchema

from codex_multi_role.catalog.definition import NUMBER, WHOLE_NUMBER, Definition
from codex_multi_role.errors import UsageError
from codex_multi_role.reading.nearest import no_such
from codex_multi_role.reading.places import WrongKey
from codex_multi_role.reading.value_types import ValueType, one_of, type_of_annotation
from codex_multi_role.reading.yaml_loader import parse_yaml

InputType = Literal["string", "integer", "number", "boolean", "path", "list", "mapping"]
_PYTHON_TYPES: dict[InputType, type] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "path": str,
    "list": list,
    "mapping": dict,
}
NUMBERS: frozenset[InputType] = frozenset({"integer", "number"})
_YAML_EXAMPLES: dict[InputType, str] = {"list": "[a, b]", "mapping": "{a: 1}"}


class InputSpec(Definition):
    """One input. ``max_iterations: 5`` is short for a default and its type, ``question:`` for a required text.

    ``choices``: the allowed values; ``minimum`` and ``maximum``: the bounds of a number. The text of a ``list`` or a
    ``mapping`` is YAML. A default that is a mapping needs the long form. ``required``: unless stated, an input without
    a default is. An optional one without a default is None. ``must_exist``: a run starts only if the workspace has the
    file or folder.
    """

    type: InputType = Field(
        default="string", description="Values of a `list` or `mapping` are YAML on the command line."
    )
    default: JsonValue = Field(default=None, description="The value if none is given.")
    required: StrictBool = Field(
        default=False, description="Whether it must be given; by default, if there is no default."
    )
    description: str = Field(default="", description="One line for people.")
    choices: tuple[JsonValue, ...] = Field(default=(), description="The values that it accepts.")
    minimum: Annotated[float, NUMBER] | None = Field(default=None, description="The least number that it accepts.")
    maximum: Annotated[float, NUMBER] | None = Field(default=None, description="The greatest number that it accepts.")
    must_exist: StrictBool = Field(
        default=False, description="Whether a run starts only if the workspace has the file or folder."
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        whole = super().__get_pydantic_json_schema__(core_schema, handler)
        return {"anyOf": [whole, {"type": ["string", "number", "boolean", "array", "null"]}]}

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, data: object) -> object:
        if data is None:
            return {"required": True}
        if isinstance(data, bool | int | float | str | list):
            return {"type": _type_of(data), "default": data}
        if isinstance(data, dict) and data.get("default") is None:
            return {"required": True} | data
        return data

    @model_validator(mode="after")
    def _check_default(self) -> Self:
        if self.type not in NUMBERS and (self.minimum is not None or self.maximum is not None):
            key = "minimum" if self.minimum is not None else "maximum"
            raise WrongKey("minimum and maximum belong to a number", key)
        if self.must_exist and self.type != "path":
            raise WrongKey("must_exist belongs to a path", "must_exist")
        if self.default is None:
            return self
        if self.required:
            raise WrongKey("a required input has no use for a default", "default")
        try:
            _convert(self.type, self.default, strict=True)
        except ValidationError as error:
            raise WrongKey(f"the default {self.default!r} is not of type {self.type}", "default") from error
        if not self.takes(self.default):
            raise WrongKey(f"the default {self.default!r} must be {self.wanted}", "default")
        return self

    @property
    def wanted(self) -> str:
        """The accepted values, in words; empty if it accepts any of its type."""
        if self.choices:
            return f"one of {', '.join(map(str, self.choices))}"
        bounds = [(self.minimum, "at least"), (self.maximum, "at most")]
        return " and ".join(f"{word} {bound:g}" for bound, word in bounds if bound is not None)

    @property
    def plain_type(self) -> ValueType:
        """What a given value is, whatever the choices are."""
        return type_of_annotation(_PYTHON_TYPES[self.type])

    @property
    def value_type(self) -> ValueType:
        """What its values can be."""
        known = one_of(*self.choices) if self.choices else self.plain_type
        return known if self.required or self.default is not None else known | one_of(None)

    def takes(self, value: Any) -> bool:  # noqa: ANN401 - of this input's type
        """Whether ``value`` is one of the choices, or within the bounds."""
        least, most = self.minimum, self.maximum
        bounded = (least is None or value >= least) and (most is None or value <= most)
        return bounded and (not self.choices or value in self.choices)


class GoalSpec(Definition):
    """The length of the goals that a flow accepts, in characters; ``default``: its own goal, if none is given."""

    default: str = Field(default="", description="The goal if none is given.")
    min_length: Annotated[int, Field(ge=1), WHOLE_NUMBER] = Field(default=1, description="Characters, at least.")
    max_length: Annotated[int, Field(ge=1), WHOLE_NUMBER] | None = Field(
        default=None, description="Characters, at most."
    )

    @property
    def wanted(self) -> str:
        """The accepted number of characters, in words; empty if any number will do."""
        if self.max_length is not None:
            return f"{self.min_length} to {self.max_length}"
        return f"{self.min_length} or more" if self.min_length > 1 else ""

    def resolve(self, flow: str, given: str) -> str:
        """``given``, or the flow's own. Raises ``UsageError`` if both are empty, or if its length is not accepted."""
        goal = given if given.strip() else self.default
        length = len(goal.strip())
        if not length:
            raise UsageError("missing goal", 'Set it with --goal "…" or --goal-file FILE.')
        if length < self.min_length or (self.max_length is not None and length > self.max_length):
            raise UsageError(
                f"flow {flow}: the goal has {length} characters, but {self.wanted} are required",
                "Set another goal with --goal.",
            )
        return goal


def resolve_inputs(flow: str, specs: Mapping[str, InputSpec], given: Mapping[str, object]) -> dict[str, Any]:
    """Every input's value: the given one, converted to its type, otherwise its default.

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
            hint = _example(name, spec.type) or f"Set --input {name}=<{spec.type}>."
            raise UsageError(f'flow {flow}: the input "{name}" is missing', hint)
        return spec.default
    try:
        value = _convert(spec.type, _read(spec.type, given[name]))
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "a character that YAML forbids"
        raise UsageError(
            f'flow {flow}: the input "{name}" is not valid YAML: {problem}', _example(name, spec.type)
        ) from error
    except ValidationError as error:
        raise UsageError(
            f'flow {flow}: the input "{name}" is not of type {spec.type}: {given[name]!r}', _example(name, spec.type)
        ) from error
    if not spec.takes(value):
        raise UsageError(f'flow {flow}: the input "{name}" must be {spec.wanted}, not {given[name]!r}')
    return value


def _read(kind: InputType, value: object) -> object:
    return parse_yaml(value) if kind in _YAML_EXAMPLES and isinstance(value, str) else value


def _example(name: str, kind: InputType) -> str:
    return f"Set --input '{name}={_YAML_EXAMPLES[kind]}'." if kind in _YAML_EXAMPLES else ""


def _convert(kind: InputType, value: object, *, strict: bool = False) -> object:
    return TypeAdapter(_PYTHON_TYPES[kind], config={"allow_inf_nan": False}).validate_python(value, strict=strict)


def _type_of(value: bool | float | str | list[Any]) -> InputType:
    return next(kind for kind, python_type in _PYTHON_TYPES.items() if type(value) is python_type)
