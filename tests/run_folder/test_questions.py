"""Questions to a person, asked and answered once; answers are of the type of their field, or refused by its name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_folder.questions import Questions
from codex_multi_role.run_folder.typed_answers import (
    Answer,
    Question,
    accept,
    at_time_limit,
    complete,
    from_edited,
    how_to_answer,
    kind_of_field,
    problem_of,
    prompts,
    to_edit,
)

LONG_AGO = "2001-01-01T00:00:00.000+00:00"
YES = Answer(True, "", "somebody", LONG_AGO)


def question(key: str = "ok.1", **changes: object) -> Question:
    plain = Question(key, "Ship it?", "all of it", now(), None, None)
    return replace(plain, **changes)  # type: ignore[arg-type]  # by name


def test_repeated_question_keeps_its_time_and_answer(tmp_path: Path) -> None:
    questions = Questions(tmp_path)
    first = questions.ask(question(asked_at=LONG_AGO))
    assert questions.ask(question()) == first
    questions.answer("ok.1", YES)
    assert questions.ask(question()).answer == YES
    assert questions.ask(question(time_limit_seconds=5.0, default="reject")).asked_at == LONG_AGO


def test_another_question_in_its_place_is_asked_afresh(tmp_path: Path) -> None:
    questions = Questions(tmp_path)
    questions.ask(question(asked_at=LONG_AGO))
    questions.answer(None, YES)
    assert questions.ask(question(show="something else")).answer is None
    assert questions.find("ok.1") == questions.pending()[0]


def test_first_answer_holds_however_many_come_at_once(tmp_path: Path) -> None:
    Questions(tmp_path).ask(question())
    answers = [Answer(number % 2 == 0, str(number)) for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        settled = list(pool.map(lambda answer: Questions(tmp_path).settle("ok.1", answer), answers))
    known = Questions(tmp_path).find("ok.1")
    assert known is not None
    assert known.answer in answers
    assert all(each == known for each in settled)


def test_question_is_answered_once(tmp_path: Path) -> None:
    questions = Questions(tmp_path)
    questions.ask(question())
    questions.answer(None, YES)
    for key in ("ok.1", None):
        with pytest.raises(UsageError, match=r"ok\.1 was approved by somebody"):
            questions.answer(key, YES)


def test_without_a_question_there_is_nothing_to_answer(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not waiting for an answer"):
        Questions(tmp_path).answer(None, YES)
    with pytest.raises(UsageError, match=r'no question "ok\.1"'):
        Questions(tmp_path).answer("ok.1", YES)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StorageError, match="gone"):
        Questions(tmp_path).settle("ok.1", YES)


def test_of_several_open_ones_one_is_to_be_named(tmp_path: Path) -> None:
    questions = Questions(tmp_path)
    for key in ("sub.1/ok.1", "fan.1.0", "fan.1.10"):
        questions.ask(question(key))
    with pytest.raises(UsageError, match=r"3 open questions: .*sub\.1/ok\.1") as caught:
        questions.answer(None, YES)
    assert "--question" in caught.value.hint
    with pytest.raises(UsageError, match=r'did you mean "fan\.1\.0"'):
        questions.answer("fan.1.00", YES)
    assert questions.answer("sub.1/ok.1", YES).answer == YES
    assert {each.key for each in questions.pending()} == {"fan.1.0", "fan.1.10"}


def test_key_is_looked_up_among_questions_not_as_a_path(tmp_path: Path) -> None:
    run = tmp_path / "run"
    Questions(run).ask(question())
    outside = tmp_path / "other.json"
    outside.write_bytes((run / "reviews/ok.1.json").read_bytes())
    before = outside.read_bytes()
    with pytest.raises(UsageError, match="no question"):
        Questions(run).answer("../../other", YES)
    assert outside.read_bytes() == before


def test_answer_that_comes_too_late_is_refused(tmp_path: Path) -> None:
    questions = Questions(tmp_path)
    late = questions.ask(question(asked_at=LONG_AGO, time_limit_seconds=60.0, default="reject"))
    assert late.out_of_time
    with pytest.raises(UsageError, match=r"time to answer ok\.1 is over; it counts as: reject"):
        questions.answer(None, YES)
    assert not question(time_limit_seconds=3600.0, default="reject").out_of_time
    assert not question(asked_at=LONG_AGO).out_of_time


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"answer": 3}', '{"answer": null, "key": "ok.1"}'])
def test_damaged_question_file_is_ignored_and_asked_again(tmp_path: Path, content: str) -> None:
    questions = Questions(tmp_path)
    questions.ask(question())
    (tmp_path / "reviews/ok.1.json").write_text(content)
    assert questions.pending() == []
    questions.ask(question())
    assert [each.key for each in questions.pending()] == ["ok.1"]


def test_what_a_killed_turn_asked_is_closed_a_review_is_not(tmp_path: Path) -> None:
    questions = Questions(tmp_path)
    questions.ask(question("one.turn_001.1", words=True))
    questions.ask(question("ok.1"))
    with pytest.raises(UsageError, match="in words"):
        questions.answer("one.turn_001.1", YES)
    questions.close_words()
    assert [each.key for each in questions.pending()] == ["ok.1"]


FIELDS = {
    "version": {"type": "string", "pattern": r"^\d+\.\d+$", "description": "What to call it"},
    "copies": {"type": "integer", "minimum": 1},
    "draft": {"type": "boolean", "default": False},
    "channel": {"enum": ["beta", 1], "default": "beta"},
}


def release(**changes: object) -> Question:
    given: dict[str, object] = {"fields": FIELDS, "options": ["ship", "hold"], **changes}
    return Question("ok.1", "Release?", "", now(), None, **{"default": None, **given})  # type: ignore[arg-type]


def answered(**values: object) -> Answer:
    return complete(release(), Answer(True, "", "somebody", now(), values=values))


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
    assert raised.value.hint == how_to_answer(release())


LIST = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "kind", "text"),
    [
        ({**LIST, "default": ["sort", "count them"]}, "lines", "sort\ncount them"),
        ({**LIST, "default": ["two\nlines"]}, "json", '[\n  "two\\nlines"\n]'),
        ({**LIST, "default": ["\u202eé"]}, "json", '[\n  "\\u202e\\u00e9"\n]'),
        (LIST, "lines", ""),
        ({"default": [" é"]}, "json", '[\n  " é"\n]'),
        ({"type": "string", "default": "two\nlines"}, "text", "two\nlines"),
    ],
)
def test_default_that_nobody_edits_stays_as_it_is(schema: Json, kind: str, text: str) -> None:
    assert (kind_of_field(schema), to_edit(schema)) == (kind, text)
    left = complete(release(options=[], fields={"it": schema}), Answer(True, values={"it": from_edited(text, schema)}))
    assert left.values == {"it": schema.get("default", [])}


def test_rejection_needs_no_values_and_keeps_comments_on_lines() -> None:
    on_line = {"path": "a.py", "line": 3, "text": "why?"}
    found = complete(release(), Answer(False, "no", "somebody", now(), values={"version": "x", "comments": [on_line]}))
    assert (found.option, found.values) == ("", {})
    assert found.as_output()["comments"] == [{**on_line, "side": "after"}]


def test_defaults_answer_only_if_none_is_missing() -> None:
    of_fields = {"draft": FIELDS["draft"]}
    assert accept(release(), "--yes") is None
    assert accept(release(fields=of_fields), "--yes") is None
    found = accept(release(fields=of_fields, default="hold"), "--yes")
    assert found is not None
    assert (found.option, found.values) == ("hold", {"draft": False})


def test_default_option_is_chosen_if_none_is_given() -> None:
    found = complete(release(fields={}, default="hold"), Answer(True, "", "somebody", now()))
    assert found.option == "hold"


@pytest.mark.parametrize(("default", "approved", "option"), [("reject", False, ""), ("hold", True, "hold")])
def test_time_limit_answers_with_the_default(default: str, approved: bool, option: str) -> None:
    found = at_time_limit(release(fields={}, default=default))
    assert (found.approved, found.option, found.by) == (approved, option, "time limit")


def test_each_line_of_a_terminal_is_checked_alone() -> None:
    names = [name for name, _ in prompts(release())]
    assert names == ["option", "version", "copies", "draft", "channel"]
    assert dict(prompts(release()))["version"] == r"version (string, matches ^\d+\.\d+$): What to call it"
    assert dict(prompts(release()))["draft"] == "draft (boolean, false if left out)"
    assert len(dict(prompts(release(fields={"it": {**LIST, "default": ["a word"] * 1000}})))["it"]) < 550
    assert problem_of(release(), "copies", "0") == "ok.1: copies: 0 is less than the minimum of 1"
    assert problem_of(release(), "option", "").startswith("ok.1 needs an option")
    assert problem_of(release(), "draft", "") == ""
