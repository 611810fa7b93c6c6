"""Answers with an option or values: wrong ones are refused by the name of their field, texts are read as their type."""

from __future__ import annotations

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_folder.typed_answers import (
    Answer,
    Question,
    accept,
    at_time_limit,
    complete,
    how_to_answer,
    problem_of,
    prompts,
)

FIELDS = {
    "version": {"type": "string", "pattern": r"^\d+\.\d+$", "description": "What to call it"},
    "copies": {"type": "integer", "minimum": 1},
    "draft": {"type": "boolean", "default": False},
    "channel": {"enum": ["beta", 1], "default": "beta"},
}


def question(**changes: object) -> Question:
    given: dict[str, object] = {"fields": FIELDS, "options": ["ship", "hold"], **changes}
    return Question("ok.1", "Release?", "", now(), None, **{"default": None, **given})  # type: ignore[arg-type]


def answered(**values: object) -> Answer:
    return complete(question(), Answer(True, "", "somebody", now(), values=values))


def test_texts_are_values_of_their_type_and_the_rest_has_its_default() -> None:
    found = answered(option="ship", version="1.2", copies="3", channel="1")
    assert (found.option, found.values) == ("ship", {"version": "1.2", "copies": 3, "draft": False, "channel": 1})
    assert found.as_output()["option"] == "ship"
    assert found.as_output()["copies"] == 3


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"version": "1.2", "copies": 1}, "ok.1 needs an option"),
        ({"option": "shop"}, '"shop" is not an option of ok.1; did you mean "ship"?'),
        ({"option": "ship", "copies": 1}, "ok.1: version is missing"),
        ({"option": "ship", "version": "one", "copies": 1}, "ok.1: version: 'one' does not match"),
        ({"option": "ship", "version": "12", "copies": 1}, "ok.1: version: '12' does not match"),
        ({"option": "ship", "comments": '[{"path": "a"}]'}, "ok.1: comments[0]: 'line' is a required property"),
        ({"option": "ship", "version": "1.2", "copies": "many"}, "ok.1: copies: 'many' is not of type 'integer'"),
        ({"option": "ship", "version": "1.2", "copies": 1, "draft": "perhaps"}, "ok.1: draft: 'perhaps' is not"),
        ({"option": "ship", "version": "1.2", "copys": "1"}, 'ok.1 has no field "copys"; did you mean "copies"?'),
    ],
)
def test_wrong_values_are_refused_by_name(values: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        answered(**values)
    assert str(raised.value).startswith(problem)
    assert raised.value.hint == how_to_answer(question())


def test_rejection_needs_no_values_and_keeps_comments_on_lines() -> None:
    on_line = {"path": "a.py", "line": 3, "text": "why?"}
    found = complete(question(), Answer(False, "no", "somebody", now(), values={"version": "x", "comments": [on_line]}))
    assert (found.option, found.values) == ("", {})
    assert found.as_output()["comments"] == [{**on_line, "side": "after"}]


def test_defaults_answer_only_if_none_is_missing() -> None:
    of_fields = {"draft": FIELDS["draft"]}
    assert accept(question(), "--yes") is None
    assert accept(question(fields=of_fields), "--yes") is None
    found = accept(question(fields=of_fields, default="hold"), "--yes")
    assert found is not None
    assert (found.option, found.values) == ("hold", {"draft": False})


def test_default_option_is_chosen_if_none_is_given() -> None:
    found = complete(question(fields={}, default="hold"), Answer(True, "", "somebody", now()))
    assert found.option == "hold"


@pytest.mark.parametrize(("default", "approved", "option"), [("reject", False, ""), ("hold", True, "hold")])
def test_time_limit_answers_with_the_default(default: str, approved: bool, option: str) -> None:
    found = at_time_limit(question(fields={}, default=default))
    assert (found.approved, found.option, found.by) == (approved, option, "time limit")


def test_each_line_of_a_terminal_is_checked_alone() -> None:
    names = [name for name, _ in prompts(question())]
    assert names == ["option", "version", "copies", "draft", "channel"]
    assert dict(prompts(question()))["version"] == r"version (string, matches ^\d+\.\d+$): What to call it"
    assert dict(prompts(question()))["draft"] == "draft (boolean, false if left out)"
    assert problem_of(question(), "copies", "0") == "ok.1: copies: 0 is less than the minimum of 1"
    assert problem_of(question(), "option", "").startswith("ok.1 needs an option")
    assert problem_of(question(), "draft", "") == ""
