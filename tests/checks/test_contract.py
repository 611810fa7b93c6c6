from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field, ValidationError

from codex_multi_role.checks import Check, find_check
from codex_multi_role.checks.contract import CheckOptions, CheckResult, ResultPart, inside
from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.workspace import Workspace
from tests.support.catalogs import raised
from tests.support.checks import MakeContext


class Part(CheckOptions):
    weight: int


class Options(CheckOptions):
    names: list[str] = Field(description="a list of texts: [a, b]")
    schema_: str = Field(default="", alias="schema", description="a file")
    parts: list[Part] = Field(default=[])
    values: dict[str, str] | None = Field(default=None)


def test_right_options(make_context: MakeContext) -> None:
    options = make_context({}, names=["a"], schema="s.json", parts=[{"weight": 2}]).read_options(Options, "parcel")
    assert (options.names, options.schema_, options.parts[0].weight) == (["a"], "s.json", 2)


def test_number_is_a_text_in_a_list_or_mapping_of_texts(make_context: MakeContext) -> None:
    """``{{ x }}`` keeps its type, but arguments of a program are texts."""
    options = make_context({}, names=["a", 7, 2.5], values={"N": 7}).read_options(Options, "parcel")
    assert (options.names, options.values) == (["a", "7", "2.5"], {"N": "7"})


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        (
            {"nmaes": ["a"]},
            'check parcel: unknown option "nmaes"; did you mean "names"?',
            "Known: names, schema, parts, values.",
        ),
        (
            {"names": [], "schema_": "s"},
            'check parcel: unknown option "schema_"; did you mean "schema"?',
            "Known: names, schema, parts, values.",
        ),
        (
            {"names": [], "parts": [{"weight": 1}, {"wieght": 2}]},
            'check parcel: parts[1]: unknown option "wieght"; did you mean "weight"?',
            "Known: weight.",
        ),
        ({}, "check parcel: names: is missing", "names: a list of texts: [a, b]"),
        (
            {"names": ["a", True]},
            "check parcel: names[1]: must be text, not true",
            "names: a list of texts: [a, b]",
        ),
        (
            {"names": [], "schema": True},
            "check parcel: schema: must be text, not true",
            "schema: a file",
        ),
        (
            {"names": [], "parts": [{"weight": "2"}]},
            "check parcel: parts[0].weight: input should be a valid integer",
            "",
        ),
    ],
)
def test_mistake_is_named(make_context: MakeContext, given: dict[str, object], message: str, hint: str) -> None:
    error = raised(UsageError, make_context({}, **given).read_options, Options, "parcel")
    assert str(error).startswith(message)
    assert error.hint == hint


def test_large_value_is_not_shown_whole(make_context: MakeContext) -> None:
    error = raised(UsageError, make_context({}, names="x" * 10_000).read_options, Options, "parcel")
    assert len(str(error)) < 200


def test_path_that_no_file_can_have_is_a_wrong_option(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="target: invalid path"):
        inside(Workspace(tmp_path), "x" * 300, "target")


class Counts(ResultPart):
    bad: int


class Red(CheckResult):
    bad = ("red",)


@pytest.mark.parametrize(
    ("more", "why"),
    [({"reason": "no", "problems": ["a"]}, "red: no"), ({"problems": ["a", "b"]}, "red: a"), ({"problems": 2}, "red")],
)
def test_bad_result_says_its_reason_or_first_problem(more: dict[str, object], why: str) -> None:
    assert Red.why_bad({"status": "red", **more}) == why
    assert Red.why_bad({"status": "ok", **more}) == ""


class AnyText(CheckResult):
    pass


class Several(CheckResult):
    status: Literal["clean", "todo"]


class NeverBad(Several):
    bad = ()


def test_check_whose_results_say_nothing_of_what_is_bad_is_refused() -> None:
    """Every one of them would count as good. With one status, it is there to fail if something is missing."""
    for silent in (AnyText, Several):
        with pytest.raises(UsageError, match=f"its result {silent.__name__} can have several statuses"):
            Check(lambda _: {"status": "todo"}, silent)
    assert [Check(lambda _: {}, kind).what_is_bad for kind in (NeverBad, Found, Red)] == ["", "", "status red"]


class Found(CheckResult):
    status: Literal["ok"]
    json_: object = Field(alias="json")
    counts: Counts
    rows: list[Counts]
    reached: int = 0


FOUND = {"status": "ok", "json": {"a": None}, "counts": Counts(bad=1), "rows": []}


@pytest.mark.parametrize(
    "wrong", [{"counts": {"bad": 1, "good": 2}}, {"counts": {}}, {"rows": [{"bad": "1"}]}, {"x": 1}]
)
def test_result_that_differs_from_its_model_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Found.model_validate({**FOUND, **wrong})


def test_check_gives_the_fields_it_set_by_their_names(make_context: MakeContext) -> None:
    """A field that it left out is missing; a dictionary stays as it is. Only a model is recorded."""
    context = make_context({})
    recorded = context.folder / "result.json"
    assert Check(lambda _: {"status": "ok"}, Found)(context) == {"status": "ok"}
    assert not recorded.exists()
    assert Check(lambda _: Found.model_validate(FOUND), Found)(context) == {**FOUND, "counts": {"bad": 1}}
    assert json.loads(recorded.read_text()) == {**FOUND, "counts": {"bad": 1}}
    assert Check(lambda _: {"status": "ok", "more": 1}, Found)(context) == {"status": "ok", "more": 1}


OPTIONS_OF: dict[str, dict[str, object]] = {
    "command": {"argv": ["true"]},
    "schema": {"value": 1, "schema": {}},
    "tests": {},
}


@pytest.mark.real
@pytest.mark.parametrize("name", OPTIONS_OF)
def test_artifact_folder_that_cannot_be_made(make_context: MakeContext, name: str) -> None:
    context = make_context({}, **OPTIONS_OF[name])
    context.folder.parent.parent.mkdir(parents=True)
    context.folder.parent.touch()
    with pytest.raises(StorageError, match="cannot be written"):
        find_check(name)(context)
