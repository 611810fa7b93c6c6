"""The file of a recording: what persons answered, and what a kill or a hand may have done to it."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.extensions.replays.normalization import PathNames
from codex_multi_role.extensions.replays.recording import Recording, RecordingFile
from codex_multi_role.extensions.replays.run_outcome import answers_of, as_recorded
from codex_multi_role.run_folder import Answer, Question, Questions
from codex_multi_role.run_folder.events import now
from tests.support.recordings import ENDED, HEADER, exchange, written


def test_file_that_a_kill_cut_short_can_be_used_up_to_there(tmp_path: Path) -> None:
    file = written(tmp_path / "a", exchange(), exchange(step=1))
    file.path.write_bytes(file.path.read_bytes()[:-20])
    recording = Recording.load(file.path)
    assert recording.ended is None
    assert [len(turn.exchanges) for turn in recording.turns] == [1]


def test_what_comes_after_a_kill_is_not_lost_with_it(tmp_path: Path) -> None:
    file = written(tmp_path / "a", exchange(), exchange(step=1))
    file.path.write_bytes(file.path.read_bytes()[:-20])
    again = RecordingFile(file.path, lambda line: line)
    again.go_on("r1")
    again.add(exchange("t2"))
    again.add(ENDED)
    recording = Recording.load(file.path)
    assert recording.ended is not None
    assert len(recording.turns) == 2


def test_text_may_hold_any_end_of_a_line(tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\r\nh"
    file = written(tmp_path / "a", exchange(prompt=text))
    [turn] = Recording.load(file.path).turns
    assert turn.prompt == text


def test_only_the_owner_may_read_it_and_none_is_written_over(tmp_path: Path) -> None:
    file = written(tmp_path / "a")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="not a recording of this run"):
        file.begin({**HEADER, "run": "another"})
    with pytest.raises(UsageError, match="not a recording of this run"):
        file.go_on("another")


BEGIN = json.dumps({"type": "recording", "version": 1, **HEADER}) + "\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ":1:1: not a recording"),
        ("name: playbook\n", ":1:1: not a recording"),
        ('{"type": "recording", "version": 9}\n', "version: it is 9"),
        (f'{BEGIN}{{"type"\n{{}}\n', ":2:8: not valid JSON"),
        (f'{BEGIN}{{"type": "exchange"}}\n{{}}\n', "an exchange lacks or misspells 'turn'"),
        (BEGIN + json.dumps(exchange(end="soon")), "an answer: end 'soon'"),
        (BEGIN + json.dumps(exchange(items=["x"])), "misspells an answer"),
        (BEGIN + json.dumps(exchange(visit="x")), "invalid literal"),
        (BEGIN.replace('"cycles": 1', '"cycles": "x"'), "recording: cycles: Input should be a valid integer"),
        (BEGIN.replace('"workspace":', '"w":'), "recording: workspace: Field required"),
        (BEGIN + '{"type": "ended"}', "ended: status: Field required"),
        (BEGIN + json.dumps({**ENDED, "answers": [{"key": "a"}]}), "ended: answers.0.question: Field required"),
    ],
)
def test_invalid_file_is_reported_with_location(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(DefinitionError, match=told):
        Recording.load(tmp_path / "a")


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
