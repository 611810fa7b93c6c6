"""Questions to a person: asked once, answered once, whoever writes at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_folder.questions import Questions
from codex_multi_role.run_folder.typed_answers import Answer, Question

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
