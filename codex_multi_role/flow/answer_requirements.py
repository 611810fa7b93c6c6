"""What later templates require of a role's answer: compared with an answer, and with a schema, and in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

from codex_multi_role.catalog.definition import closed_properties
from codex_multi_role.catalog.explorations import ITEM, Path, ValueUse, path_text
from codex_multi_role.flow.result_paths import ResultRead
from codex_multi_role.reading.value_types import IN_WORDS, kind_of

MAX_PROBLEMS = 5
MAX_READERS = 3
MAX_SHOWN_CHARACTERS = 40
MAX_WITHOUT_OUTLINE = 2
"""Required fields that lines alone describe."""
UNTRUE_TEXTS = frozenset({"0", "false", "no"})
MISSING: Final = object()
COUNTABLE = "countable"
"""The type of what has a length, which JSON does not have."""
_COUNTABLE_KINDS = ("array", "string", "object")
NAMES = {**IN_WORDS, COUNTABLE: "a list or a text"}
_OUTLINES = {"boolean": "true", "number": "0", "object": "{…}", "string": '"…"'}
ONLY_DECIDED = frozenset({ValueUse.DECIDED, ValueUse.PASSED})
_VERBS = {
    ValueUse.ITEMS: "walks through",
    ValueUse.WALKED: "walks through",
    ValueUse.DECIDED: "decides by",
    ValueUse.EQUAL_NUMBER: "compares",
    ValueUse.EQUAL_TEXT: "compares",
    ValueUse.EQUAL_BOOLEAN: "compares",
}


class FieldRequirement(NamedTuple):
    """What later templates require at one path of an answer.

    ``type``: a JSON type or `COUNTABLE`, empty if any will do. ``is_decided``: a condition is made of the value alone.
    ``most``: how many elements the list may have. ``choices``: what it must be one of, empty if anything.
    ``reads``: who requires it.
    """

    path: Path
    reads: tuple[ResultRead, ...] = ()
    is_required: bool = False
    takes_null: bool = True
    type: str = ""
    is_decided: bool = False
    most: int | None = None
    choices: tuple[str, ...] = ()

    def only_required(self, said: object = None) -> FieldRequirement:
        """The requirement without what a schema decides that says this about the value."""
        most = self.most if self.is_required and isinstance(said, Mapping) and "maxItems" not in said else None
        return FieldRequirement(self.path, self.reads, self.is_required, most=most)

    @property
    def says_something(self) -> bool:
        return (
            self.is_required or not self.takes_null or bool(self.type or self.is_decided or self.most or self.choices)
        )

    @property
    def readers(self) -> str:
        """Who reads the value itself, or something inside of it, and how."""
        own = [read for read in self.reads if read.path == self.path] or self.reads
        said = dict.fromkeys(f"{read.reader} {_VERBS.get(read.use, 'reads')} it" for read in own)
        shown = list(said)[:MAX_READERS]
        return ", ".join([*shown, *([f"and {len(said) - len(shown)} more"] if len(said) > len(shown) else [])])

    def misuse(self, value: object) -> str:
        """Why a value is not one of the kind that templates use, as the end of a sentence; empty if it is."""
        if value is None or value is MISSING:
            return "" if value is MISSING or self.takes_null else "is null"
        kind = kind_of(value)
        if self.type and kind not in (_COUNTABLE_KINDS if self.type == COUNTABLE else (self.type,)):
            shown = f", {value!r}" if isinstance(value, str) and len(value) < MAX_SHOWN_CHARACTERS else ""
            return f"must be {NAMES[self.type]}, not {NAMES[kind]}{shown}"
        if self.is_decided and isinstance(value, str) and value.strip().casefold() in UNTRUE_TEXTS:
            return f"is the text {value!r}, which would count as true; answer true or false without quotation marks"
        return ""

    def lack(self, value: object) -> str:
        """Why a template fails with a value if it is reached, likewise."""
        if value is MISSING:
            return "is missing" if self.is_required else ""
        if self.choices and isinstance(value, str) and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}, not {value!r}"
        if self.most is not None and isinstance(value, list) and len(value) > self.most:
            return f"has {len(value)} elements, more than {self.most}"
        return ""

    @property
    def is_only_decided(self) -> bool:
        """Whether templates do nothing else with it, so that it is true or false."""
        return self.is_decided and all(read.use in ONLY_DECIDED for read in self.reads)

    @property
    def in_words(self) -> str:
        """``tasks: a list of at most 5, required``."""
        kind = NAMES.get(self.type, NAMES["boolean"] if self.is_only_decided else "")
        kind = f"one of {', '.join(self.choices)}" if self.choices else kind
        most = f"{'' if kind else 'a list'} of at most {self.most} elements" if self.most is not None else ""
        needed = "required" if self.is_required else "" if self.path[-1] is ITEM else "if given"
        return f"{path_text(self.path)}: {', '.join(filter(None, [kind + most, needed]))}"


Contract = tuple[FieldRequirement, ...]
Schema = dict[str, Any]


def misused(contract: Contract, answer: Mapping[str, object]) -> list[str]:
    """What in an answer is not of the kind that templates use, each with the field and who reads it; at most five."""
    return _problems(contract, answer, FieldRequirement.misuse)


def lacking(contract: Contract, answer: Mapping[str, object]) -> list[str]:
    """What an answer lacks if the templates that read it are reached, likewise."""
    return _problems(contract, answer, FieldRequirement.lack)


def _problems(
    contract: Contract, answer: Mapping[str, object], problem: Callable[[FieldRequirement, object], str]
) -> list[str]:
    values = ((one, *each) for one in contract for each in _places(answer, one.path))
    found = ((one, place, problem(one, value)) for one, place, value in values)
    return [f'"{path_text(place)}" {why}: {one.readers}' for one, place, why in found if why][:MAX_PROBLEMS]


def removable_nulls(contract: Contract, answer: Mapping[str, object]) -> list[tuple[str | int, ...]]:
    """Where an answer has null for a field of which templates only ask whether it is given."""
    fields = (one.path for one in contract if one.type and not one.is_required and isinstance(one.path[-1], str))
    return [place for path in fields for place, value in _places(answer, path) if value is None]


def told(contract: Contract) -> Contract:
    """Those that say more than those of the fields below them."""
    above = {one.path[:length] for one in contract for length in range(1, len(one.path))}
    return tuple(
        one
        for one in contract
        if one.type not in ("", "object") or one.choices or (one.path[-1] is not ITEM and one.path not in above)
    )


def in_words(contract: Contract) -> str:
    """One line for each, for a prompt, and an outline of the answer if that are many."""
    lines = [f"- {one.in_words} ({one.readers})" for one in told(contract)]
    required = [one for one in told(contract) if one.is_required]
    return "\n".join(
        [*lines, *([f"In outline: {_outline(contract, ())}"] if len(required) > MAX_WITHOUT_OUTLINE else [])]
    )


def _outline(contract: Contract, path: Path) -> str:
    """The required fields, as JSON with values in words."""
    one = next((each for each in contract if each.path == path), FieldRequirement(path))
    below = [each.path for each in contract if each.path[:-1] == path and (each.is_required or each.path[-1] is ITEM)]
    fields = [f'"{each[-1]}": {_outline(contract, each)}' for each in below if isinstance(each[-1], str)]
    if fields:
        return f"{{{', '.join(fields)}}}"
    if one.type == "array":
        return f"[{', '.join([_outline(contract, each) for each in below][:1] or ['…'])}]"
    return f'"{one.choices[0]}"' if one.choices else _OUTLINES.get(one.type or "boolean" * one.is_only_decided, "…")


def _places(
    value: object, path: Path, place: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """The values at a path, each with its place; `MISSING` where what would contain it is there."""
    if not path:
        yield place, value
        return
    part, rest = path[0], path[1:]
    if part is ITEM:
        for number, each in enumerate(value if isinstance(value, list) else ()):
            yield from _places(each, rest, (*place, number))
    elif isinstance(part, int) and isinstance(value, list):
        inner = value[part] if -len(value) <= part < len(value) else MISSING
        yield from _places(inner, rest if inner is not MISSING else (), (*place, part))
    elif isinstance(part, str) and isinstance(value, Mapping):
        inner = value.get(part, MISSING)
        if inner is not MISSING or not rest:
            yield from _places(inner, rest, (*place, part))


def beside(contract: Contract, schema: Mapping[str, object]) -> Contract:
    """What a contract says about paths about which ``schema`` says nothing, and what no run can do without.

    That is every required field, and the bound of a list that is always walked through.
    """
    said = [(each, said_about(schema, each.path)) for each in contract]
    left = (each if what is None else each.only_required(what) for each, what in said)
    return tuple(each for each in left if each.says_something)


def not_required_by(schema: Mapping[str, object], contract: Contract) -> Contract:
    """The contract without what the schema requires as well."""
    return tuple(each for each in contract if each != each.only_required() or not requires(schema, each.path))


def said_about(schema: object, path: Path) -> Mapping[str, object] | bool | None:
    """What a JSON Schema says about a path: None if nothing, False if it forbids it, True if that is hard to tell."""
    for part in path:
        if isinstance(schema, bool) or not isinstance(schema, Mapping) or not schema:
            return None if schema is not False else False
        if schema.keys() & HARD_TO_TELL:
            return True
        schema = _inside(schema, part)
    if isinstance(schema, Mapping):
        return schema or None
    return False if schema is False else None


HARD_TO_TELL = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties"})
HARD_TO_TELL |= {"prefixItems", "dependentSchemas", "propertyNames", "unevaluatedProperties", "const", "enum"}


def _inside(schema: Mapping[str, object], part: object) -> object:
    if not isinstance(part, str):
        return schema.get("items")
    properties = schema.get("properties")
    declared = properties.get(part) if isinstance(properties, Mapping) else None
    return schema.get("additionalProperties") if declared is None else declared


def requires(schema: Mapping[str, object], path: Path) -> bool:
    """Whether a JSON Schema itself requires the last field of a path."""
    owner = said_about(schema, path[:-1]) if len(path) > 1 else schema
    required = owner.get("required") if isinstance(owner, Mapping) else None
    return isinstance(required, list) and path[-1] in required


def with_contract(schema: Mapping[str, Any], contract: Contract) -> Schema:
    """The schema with what it leaves open and the contract requires. ``contract``: what is beside that schema."""
    whole = deepcopy(dict(schema))
    for one in sorted(contract, key=lambda each: len(each.path)):
        if said_about(schema, one.path) is not True:
            _add(whole, one)
    return whole


def sent_schema(schema: Mapping[str, Any] | None, contract: Contract) -> Mapping[str, Any] | None:
    """The schema for the provider: a contract is part of a closed one only, which providers can enforce."""
    return with_contract(schema, contract) if schema and closed_properties(schema) is not None else schema


def _add(schema: Schema, one: FieldRequirement) -> None:
    for number, part in enumerate(one.path):
        if not isinstance(part, str):
            schema = schema.setdefault("items", {})
            continue
        if one.is_required and number == len(one.path) - 1:
            schema["required"] = [*dict.fromkeys([*schema.get("required", []), part])]
        schema = schema.setdefault("properties", {}).setdefault(part, {})
    if one.type in IN_WORDS:
        schema.setdefault("type", one.type)
    if one.most is not None:
        schema.setdefault("maxItems", one.most)
