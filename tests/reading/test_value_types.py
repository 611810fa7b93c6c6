"""What annotations and constants say of a value before a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field

from codex_multi_role.reading.value_types import (
    ANY,
    BOOLEAN,
    LIST,
    MAPPING,
    NUMBER,
    TEXT,
    ValueType,
    one_of,
    type_of_annotation,
    type_of_model,
)


class Counts(BaseModel):
    bad: int


class Found(BaseModel):
    status: Literal["ok", "none"]
    json_: object = Field(alias="json")
    counts: Counts
    best: Counts | None
    rows: list[Counts]
    reached: Annotated[float, Field(ge=0)] = 0.0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def many(self) -> bool:
        return len(self.rows) > 1


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    counts: int


def test_model_gives_the_fields_that_templates_can_name() -> None:
    """Parts are followed, lists are not, because an item has to be taken from them first."""
    counts = ValueType.of_fields({"bad": NUMBER})
    assert type_of_model(Found).fields == {
        "status": one_of("ok", "none"),
        "json": ANY,
        "counts": counts,
        "best": counts | one_of(None),
        "rows": LIST,
        "reached": NUMBER,
        "many": ANY,
    }
    assert type_of_model(Open) == MAPPING


@pytest.mark.parametrize(
    ("annotation", "known"),
    [
        (str, TEXT),
        (bool, BOOLEAN),
        (int | float, NUMBER),
        (dict[str, int], MAPPING),
        (tuple[str, ...], LIST),
        (Literal[True, "auto"], one_of(True, "auto")),
        (str | None, ValueType.of("string", "null")),
        (Sequence[str], ANY),
        (Any, ANY),
        (object, ANY),
    ],
)
def test_type_of_annotation(annotation: object, known: ValueType) -> None:
    assert type_of_annotation(annotation) == known


@pytest.mark.parametrize(
    ("one", "other", "possible"),
    [
        (one_of("a", "b"), one_of("b"), True),
        (one_of("a", "b"), one_of("c"), False),
        (one_of("a"), TEXT, True),
        (one_of("5"), NUMBER, False),
        (BOOLEAN, one_of(1), True),
        (ANY, one_of("c"), True),
        (LIST, MAPPING, False),
        (NUMBER | one_of(None), one_of(None), True),
    ],
)
def test_values_of_two_types_can_be_equal(one: ValueType, other: ValueType, possible: bool) -> None:
    assert one.can_equal(other) is other.can_equal(one) is possible


def test_type_of_either_keeps_what_is_known_of_both() -> None:
    part = ValueType.of_fields({"bad": NUMBER})
    assert (one_of("a") | one_of("b")).values == frozenset({"a", "b"})
    assert (one_of("a") | NUMBER).values is None
    assert (part | TEXT).fields == (TEXT | part).fields == part.fields
    assert (part | MAPPING).is_open
