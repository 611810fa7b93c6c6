"""What a person answered is part of a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codex_multi_role.extensions.replays.normalization import PathNames
from codex_multi_role.extensions.replays.recording import Recording
from codex_multi_role.extensions.replays.run_outcome import answers_of, as_recorded
from codex_multi_role.run_folder import Answer, Question, Questions
from codex_multi_role.run_folder.events import now

PLACES = PathNames({"workspace": Path("/here/shop")})


def question(key: str, text: str) -> Question:
    return Question(key, text, "", now(), None, None)


def recording(answers: list[dict[str, Any]]) -> Recording:
    return Recording(Path("x"), {}, (), {"answers": answers}, {}, {})


def never() -> bool:
    return False


def test_it_is_answered_again_by_key_or_else_by_its_words(tmp_path: Path) -> None:
    asked = Questions(tmp_path)
    asked.ask(question("confirm.1", "Go on?"))
    asked.settle("confirm.1", Answer(False, "not yet"))
    asked.ask(question("open.1", "Nobody answered"))
    ask = as_recorded(recording(answers_of(tmp_path)), PLACES, None)
    assert ask is not None
    for again in (question("confirm.1", "Go on now?"), question("one.2.turn_003", "Go on?")):
        answer = ask(again, never)
        assert answer is not None
        assert (answer.approved, answer.comment, answer.by) == (False, "not yet", "recording")
    assert ask(question("another.1", "What?"), never) is None


def test_what_nobody_was_asked_then_is_asked_of_whoever_is_there() -> None:
    def person(_: Question, __: object) -> Answer:
        return Answer(True, "here")

    assert as_recorded(recording([]), PLACES, person) is person
    ask = as_recorded(recording([{"key": "a.1", "question": "A?", "approved": True, "comment": ""}]), PLACES, person)
    assert ask is not None
    answer = ask(question("b.1", "B?"), never)
    assert answer is not None
    assert answer.comment == "here"


def test_paths_in_questions_and_answers_are_those_of_here() -> None:
    then = {
        "key": "a.1",
        "question": "Keep <<workspace>>/a?",
        "approved": True,
        "comment": "move it to <<workspace>>/b",
    }
    ask = as_recorded(recording([then]), PLACES, None)
    assert ask is not None
    answer = ask(question("a.2", "Keep /here/shop/a?"), never)
    assert answer is not None
    assert answer.comment == "move it to /here/shop/b"
