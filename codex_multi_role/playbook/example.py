"""A small valid answer for a JSON Schema (draft 2020-12), derived from the schema alone.

Fields that are required are filled, or all of them if none is required. A list gets one item if it may have one. What
the schema states itself is preferred: ``const``, ``enum``, ``examples``, ``default``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from codex_multi_role.errors import how_to_add
from codex_multi_role.reading.schema_validation import describe_mismatch

Schema = Mapping[str, Any]

FILLER = "automatic"
"""The text of every field whose schema states none."""
NOTHING: Mapping[str, Any] = {"files": [], "error": None}
"""What these fields of an answer are if their schemas allow it: it submits no files, and declines nothing."""
MAX_DEPTH = 24
DEPTH_WITHOUT_EXTRAS = 6
"""Below this depth only what is required is filled, so that a schema that contains itself ends."""
_KEYWORDS = {
    "object": ("properties", "required", "minProperties", "additionalProperties"),
    "array": ("items", "prefixItems", "minItems", "contains"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


class NoExample(ValueError):
    """No valid value was derived. The message starts with the JSON path."""


def example(schema: Schema, number: int = 0) -> Any:  # noqa: ANN401 - whatever JSON the schema describes
    """A valid value. ``number`` (from 0) selects among the values of every ``enum`` and boolean, in turn.

    Raises `NoExample`.
    """
    return _Derivation(schema, number).value


def count_variants(schema: Schema) -> int:
    """How many numbers lead to different values of ``example``, at most. Raises `NoExample`."""
    return _Derivation(schema, 0).variants


def is_valid(schema: Schema, value: object) -> bool:
    return Draft202012Validator(schema, registry=Registry()).is_valid(value)


class _Derivation:
    """One value for the whole schema. ``variants``: the most values that any place in it can select from."""

    def __init__(self, schema: Schema, number: int) -> None:
        self.variants = 1
        self._number = number
        resource = DRAFT202012.create_resource(schema)
        registry: Registry[Any] = Registry().with_resource(resource.id() or "", resource)
        self._resolver = registry.resolver(resource.id() or "")
        self._validator = Draft202012Validator(schema, registry=Registry())
        try:
            self.value = self._derive(schema, "$", 0, 0)
            error = best_match(self._validator.iter_errors(self.value))
        except (Unresolvable, re.error, RecursionError) as problem:
            raise NoExample(f"$: {problem}") from problem
        if error is not None:
            raise NoExample(describe_mismatch(error))

    def _derive(self, schema: Schema | bool, path: str, depth: int, position: int) -> Any:  # noqa: ANN401
        """A value for ``schema``, which is at ``path``. ``position`` tells the items of one list apart."""
        if schema is False or depth > MAX_DEPTH:
            problem = "nothing is allowed here" if schema is False else "the schema contains itself without an end"
            raise NoExample(f"{path}: {problem}")
        schema = self._merged(schema if isinstance(schema, Mapping) else {})
        stated = list(self._stated(schema, position))
        fitting = [value for value in stated if self._validator.evolve(schema=schema).is_valid(value)]
        if fitting or "const" in schema or "enum" in schema:
            return self._first_valid(schema, fitting or stated, path)
        for key in ("oneOf", "anyOf"):
            if schema.get(key):
                return self._alternative(schema, key, path, depth, position)
        return self._of_type(schema, path, depth, position)

    def _merged(self, schema: Schema) -> dict[str, Any]:
        """``schema`` with everything that it refers to or that applies together with it."""
        merged = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        parts = list(schema.get("allOf", ()))
        if "$ref" in schema:
            parts.append(self._resolver.lookup(schema["$ref"]).contents)
        for part in parts:
            inner = self._merged(part) if isinstance(part, Mapping) else {}
            required = list(dict.fromkeys([*inner.get("required", ()), *merged.get("required", ())]))
            properties = {**inner.get("properties", {}), **merged.get("properties", {})}
            merged = {**inner, **merged}
            merged |= {"required": required} if required else {}
            merged |= {"properties": properties} if properties else {}
        return merged

    def _stated(self, schema: Schema, position: int) -> Iterator[Any]:
        """The values that the schema itself gives, the one to prefer first."""
        if "const" in schema:
            yield schema["const"]
        values = schema.get("enum", ())
        self.variants = max(self.variants, len(values))
        for index in range(len(values)):
            yield values[(self._number + position + index) % len(values)]
        yield from schema.get("examples", ())
        if "default" in schema:
            yield schema["default"]

    def _alternative(self, schema: Schema, key: str, path: str, depth: int, position: int) -> Any:  # noqa: ANN401
        """A value for the first of the schemas in ``key`` that has one; far down, those without inner values first."""
        own = {name: value for name, value in schema.items() if name != key}
        alternatives = list(schema[key])
        if depth >= DEPTH_WITHOUT_EXTRAS:
            alternatives.sort(
                key=lambda each: isinstance(each, Mapping) and not {"$ref", "properties"}.isdisjoint(each)
            )
        problem = NoExample(f"{path}: no alternative fits")
        for each in alternatives:
            try:
                value = self._derive({"allOf": [own, each]}, path, depth + 1, position)
                return self._first_valid(schema, [value], path)
            except NoExample as error:
                problem = error
        raise problem

    def _of_type(self, schema: Schema, path: str, depth: int, position: int) -> Any:  # noqa: ANN401
        kinds: dict[str, Callable[[], Any]] = {
            "object": lambda: self._object(schema, path, depth),
            "array": lambda: self._array(schema, path, depth),
            "string": lambda: self._first_valid(schema, _texts(schema, position), path),
            "integer": lambda: self._first_valid(schema, map(int, _numbers(schema, position)), path),
            "number": lambda: self._first_valid(schema, _numbers(schema, position), path),
            "boolean": lambda: self._boolean(position),
            "null": lambda: None,
        }
        return kinds[_type_of(schema)]()

    def _object(self, schema: Schema, path: str, depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        names = list(schema.get("required", ()))
        if not names and depth < DEPTH_WITHOUT_EXTRAS:
            names = list(properties)
        names += [name for name in properties if name not in names][
            : max(0, schema.get("minProperties", 0) - len(names))
        ]
        value: dict[str, Any] = {}
        for name in names:
            inner = f"{path}.{name}"
            part = _schema_of(schema, name)
            allows = depth == 0 and name in NOTHING and self._validator.evolve(schema=part).is_valid(NOTHING[name])
            value[name] = NOTHING[name] if allows else self._derive(part, inner, depth + 1, 0)
        return value

    def _array(self, schema: Schema, path: str, depth: int) -> list[Any]:
        first = list(schema.get("prefixItems", ()))
        usual = 1 if depth < DEPTH_WITHOUT_EXTRAS and schema.get("maxItems", 1) and schema.get("items", True) else 0
        count = max(schema.get("minItems", 0), usual)
        if "contains" in schema:
            first += [schema["contains"]] * max(0, schema.get("minContains", 1) - len(first))
        schemas = [*first, *[schema.get("items", True)] * max(0, count - len(first))]
        return [self._derive(each, f"{path}[{index}]", depth + 1, index) for index, each in enumerate(schemas)]

    def _boolean(self, position: int) -> bool:
        self.variants = max(self.variants, 2)
        return bool((self._number + position) % 2)

    def _first_valid(self, schema: Schema, candidates: Any, path: str) -> Any:  # noqa: ANN401
        validator = self._validator.evolve(schema=schema)
        problem = "no value was found"
        for candidate in candidates:
            error = best_match(validator.iter_errors(candidate))
            if error is None:
                return candidate
            problem = error.message
        raise NoExample(f"{path}: {problem}")


def _type_of(schema: Schema) -> str:
    """The first type that the schema allows, but null last; without a type the one that its keywords belong to."""
    given = schema.get("type", [])
    types = [given] if isinstance(given, str) else list(given)
    types.sort(key=lambda name: name == "null")
    implied = (name for name, keywords in _KEYWORDS.items() if any(key in schema for key in keywords))
    return types[0] if types else next(implied, "string")


def _schema_of(schema: Schema, name: str) -> Schema | bool:
    """What applies to a property, which ``properties`` need not list."""
    matching = [each for pattern, each in schema.get("patternProperties", {}).items() if re.search(pattern, name)]
    found: Schema | bool = schema.get("properties", {}).get(
        name, [*matching, schema.get("additionalProperties", True)][0]
    )
    return found


def _texts(schema: Schema, position: int) -> Iterator[str]:
    """Candidates for a text, the most readable first."""
    text = FILLER if position == 0 else f"{FILLER} {position + 1}"
    least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    yield text
    if len(text) > most:
        yield str(position + 1).rjust(min(int(most), 3), FILLER[0])[-int(most) :] if most else ""
    if least:
        yield (f"{text} " * math.ceil(least / len(text)))[:least].replace(" ", "_")
    if "pattern" in schema:
        yield from (_matching(schema["pattern"], repeats + position) for repeats in (0, 1, 3, 7, 15, 31))


def _matching(pattern: str, repeats: int) -> str:
    """A text for a regular expression; it may not match one with lookarounds. ``repeats``: beyond the fewest."""
    try:
        from rstr import Rstr  # here: few schemas have patterns
    except ModuleNotFoundError as error:
        raise NoExample(f"a text for the pattern {pattern} needs rstr: {how_to_add('patterns')}") from error
    try:
        return Rstr(_First(repeats)).xeger(pattern)
    except (KeyError, IndexError, AttributeError) as error:  # what its generator does not know
        raise NoExample(f"no text could be derived for the pattern {pattern}") from error


class _First(Random):
    """Chooses the least of everything, but ``repeats`` more for a number, so that texts are the same each time."""

    def __init__(self, repeats: int) -> None:
        super().__init__(0)
        self._repeats = repeats

    def randint(self, a: int, b: int) -> int:
        return min(a + self._repeats, b)

    def choice(self, seq: Any) -> Any:  # noqa: ANN401 - as in the base class
        return min(seq, key=lambda each: (not str(each).isalnum(), str(each)))


def _numbers(schema: Schema, position: int) -> Iterator[float]:
    """Candidates for a number: small ones, the bounds, and what is just within them."""
    step = schema.get("multipleOf", 1)
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = schema.get("maximum", schema.get("exclusiveMaximum", low + 2 * step))
    yield position
    yield from (low + position, low + position + 1, high, high - 1)
    yield from ((math.floor(low / step) + count) * step for count in (0, 1, 2))
    yield (low + high) / 2
