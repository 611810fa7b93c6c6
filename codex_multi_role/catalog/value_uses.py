"""What templates do with values, the JSON types that this needs, and where the values are."""

from __future__ import annotations

from enum import Enum
from types import EllipsisType
from typing import Final

from codex_multi_role.reading.value_types import ANY, COUNTABLE, IN_WORDS, ValueType

ITEM: Final = ...
"""The part of a path that stands for every element of a list."""
Path = tuple[str | int | EllipsisType, ...]
TEXT_METHODS = frozenset(dir(str)) - frozenset(dir(dict)) - frozenset(dir(list))
MAPPING_METHODS = frozenset({"get", "items", "keys", "values"})


class ValueUse(Enum):
    """What a template does with a value, and the JSON type that this needs, if any.

    ``ANY``: several types are expected, such as where the type is tested. ``PASSED`` to something else as it is;
    ``FILLED`` into a text; ``COUNTED``: given to a filter for lists that accepts texts as well.
    """

    ANY = ""
    PASSED = "passed"
    FILLED = "filled in"
    COUNTED = "counted"
    DECIDED = "decided"
    NUMBER = "number"
    EQUAL_NUMBER = "equal number"
    TEXT = "string"
    EQUAL_TEXT = "equal string"
    EQUAL_BOOLEAN = "equal boolean"
    MAPPING = "object"
    WALKED = "walked array"
    ITEMS = "array"

    @property
    def type(self) -> str:
        kind = self.value.rpartition(" ")[2]
        return kind if kind in IN_WORDS else ""

    @property
    def needed(self) -> ValueType:
        """Without a value of this type, the template cannot be evaluated."""
        if self is ValueUse.COUNTED:
            return COUNTABLE
        return ValueType.of(self.value) if self.value in IN_WORDS else ANY


def path_text(path: Path) -> str:
    """``tasks[].title``."""
    parts = ("[]" if part is ITEM else f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def operand_use(sign: str, kind: str, *, is_constant: bool, is_right: bool = False) -> ValueUse:
    """What an operation needs of an operand beside another one of a ``kind``; ``+`` also joins texts and lists."""
    if sign in ("eq", "ne"):
        equal = {"number": ValueUse.EQUAL_NUMBER, "string": ValueUse.EQUAL_TEXT}
        equal |= {"boolean": ValueUse.EQUAL_BOOLEAN} if is_constant else {}
        return equal.get(kind, ValueUse.PASSED)
    if sign in ("lt", "le", "gt", "ge"):
        return {"number": ValueUse.NUMBER, "string": ValueUse.TEXT}.get(kind, ValueUse.PASSED)
    if sign in ("add", "mul"):
        alike = {"string": ValueUse.TEXT, "array": ValueUse.WALKED} if sign == "add" else {}
        return {"number": ValueUse.NUMBER, **alike}.get(kind, ValueUse.PASSED)
    is_format = sign == "mod" and is_right and kind != "number"
    return ValueUse.FILLED if is_format else ValueUse.NUMBER
