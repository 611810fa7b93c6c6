"""Mistakes with the fields of an answer are refused before a run, in equal words for roles and for reviews."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.team_loading import load_team
from tests.support.teams import Record, TeamFolder, with_flow

LINE: Record = {"type": "object", "properties": {"line": {"type": "integer"}}, "additionalProperties": False}
FIELDS: Record = {
    "count": {"type": "integer"},
    "note": {"type": "string"},
    "kind": {"const": "big"},
    "level": {"enum": ["low", "high"]},
    "good": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "where": LINE,
    "maybe": {"type": ["integer", "null"]},
}
SCHEMA: Record = {"type": "object", "properties": FIELDS, "required": [*FIELDS], "additionalProperties": False}
ANSWERS: list[Record] = [{"ask": "one"}, {"review": {"question": "OK?", "fields": FIELDS}}]


def _when(condition: str) -> Record:
    return {"ask": "two", "next": [{"when": condition, "end": "a"}, {"end": "b"}]}


def _prompt(text: str, **more: object) -> Record:
    return {"ask": "two", "prompt": text, **more}


def _limit(value: str) -> Record:
    return {"check": "command", "with": {"argv": ["true"], "timeout_seconds": value}}


def _problem(folder: Path, answer: Record, step: Record) -> str:
    team = TeamFolder(folder, {"one": {"output_schema": SCHEMA}, "two": {}}, {})
    with_flow(team, {"steps": [{"id": "a", **answer}, {"id": "work", **step}]})
    try:
        load_team("own", team.folder / "roles")
    except UsageError as error:
        return str(error).partition("step work: ")[2].partition(" (/")[0]
    return ""


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (_when("steps.a.count == 'many'"), "steps.a.count is never 'many': it is a number"),
        (_when("steps.a.good == 'yes'"), "steps.a.good is never 'yes': it is true or false"),
        (_when("steps.a.tags == 'a'"), "steps.a.tags is never 'a': it is a list"),
        (_when("steps.a.kind == 'small'"), "steps.a.kind is never 'small': it is 'big'"),
        (_when("steps.a.level == 'middle'"), "steps.a.level is never 'middle': it is one of 'high', 'low'"),
        (_when("steps.a.where.line == 'x'"), "steps.a.where.line is never 'x': it is a number"),
        (_when("steps.a.maybe == 'x'"), "steps.a.maybe is never 'x': it is a number or null"),
        (_when("steps.a.count > 'x'"), "compares a number with a text"),
        (_when("steps.a.note | default('') > 3"), "compares a text with a number"),
        (_when("'x' in steps.a.count"), "steps.a.count must be a text or a list or an object here"),
        (_when("steps.a.tags[0] > 3"), "steps.a.tags[0] must be a number here"),
        (_limit("{{ steps.a.note }}"), "timeout_seconds: it would be a text"),
        (_limit("{{ steps.a.tags }}"), "timeout_seconds: it would be a list"),
        (_prompt("{{ steps.a.note | round }}"), "steps.a.note must be a number here"),
        (_prompt("{{ steps.a.note - 1 }}"), "steps.a.note must be a number here"),
        (_prompt("{{ steps.a.count + steps.a.note }}"), "adds a number and a text"),
        (_prompt("{{ steps.a.count.x }}"), "steps.a.count.x must be an object here"),
        (_prompt("{{ steps.a.where.lien }}"), 'steps.a.where: unknown field "lien"; did you mean "line"?'),
        (_prompt("{{ steps.a.foo }}"), 'steps.a: unknown field "foo"'),
        (
            _prompt("{{ item.name }}", for_each={"items": "{{ steps.a.tags }}", "max_items": 3}),
            "tags[].name must be an object here",
        ),
        (_prompt("{{ item }}", for_each={"items": "{{ steps.a.note }}", "max_items": 3}), "must be a list, but"),
    ],
)
def test_mistake_is_refused_in_equal_words(tmp_path: Path, step: Record, words: str) -> None:
    of_role, of_person = (_problem(tmp_path / str(n), answer, step) for n, answer in enumerate(ANSWERS))
    assert words in of_role
    assert of_role == of_person


@pytest.mark.parametrize(
    "step",
    [
        _when("steps.a.level == 'low' and steps.a.maybe == 3 and steps.a.where.line > 2 and 'a' in steps.a.tags"),
        _when("steps.a.count | default('none') == 'none' or 'x' in steps.a.note or steps.a.maybe is none"),
        _prompt(
            "{{ steps.a.note + steps.a.tags[0] }} {{ steps.a.count + steps.a.where.line }} {{ steps.a.tags | length }}"
        ),
        _prompt("{{ item.upper() }}", for_each={"items": "{{ steps.a.tags }}", "max_items": 3}),
    ],
)
def test_right_uses_are_accepted(tmp_path: Path, step: Record) -> None:
    assert [_problem(tmp_path / str(n), answer, step) for n, answer in enumerate(ANSWERS)] == ["", ""]
