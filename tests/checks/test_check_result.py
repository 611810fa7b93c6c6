from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codex_multi_role.checks import Check
from codex_multi_role.checks.contract import CheckResult, ResultPart, field_names
from tests.support.checks import MakeContext


class Counts(ResultPart):
    bad: int


class Found(CheckResult):
    status: Literal["ok"]
    json_: object = Field(alias="json")
    counts: Counts
    rows: list[Counts]
    reached: int = 0


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    counts: int


FOUND = {"status": "ok", "json": {"a": None}, "counts": Counts(bad=1), "rows": []}


def test_fields_of_a_result_are_those_that_templates_can_name() -> None:
    """Parts are followed, lists are not, because an item has to be taken from them first."""
    assert field_names(Found) == {"status": None, "json": None, "counts": {"bad": None}, "rows": None, "reached": None}
    assert field_names(Open) is None


@pytest.mark.parametrize(
    "wrong", [{"counts": {"bad": 1, "good": 2}}, {"counts": {}}, {"rows": [{"bad": "1"}]}, {"x": 1}]
)
def test_result_that_differs_from_its_model_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Found.model_validate({**FOUND, **wrong})


def test_check_gives_the_fields_it_set_by_their_names(make_context: MakeContext) -> None:
    """A field that it left out is missing; a plain function's dictionary stays as it is."""
    context = make_context({})
    assert Check(lambda _: Found.model_validate(FOUND))(context) == {**FOUND, "counts": {"bad": 1}}
    assert Check(lambda _: {"status": "ok", "more": 1})(context) == {"status": "ok", "more": 1}
