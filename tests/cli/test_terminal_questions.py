"""Reviews on the terminal of the run, and answers from another one while it asks."""

from __future__ import annotations

import os
import pty
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.cli.foreground import Lines
from codex_multi_role.cli.terminal_questions import HOW, IN_EDITOR, OVER, WHY, WORDS, TerminalAsker
from codex_multi_role.run_folder import Answer, Question, RunFolder
from codex_multi_role.run_folder.typed_answers import complete
from tests.support.console import Session, at_terminal, console
from tests.support.reviews import asked, outcome, reviewed
from tests.support.teams import TeamFolder, say, with_flow
from tests.support.tools import EDITOR
from tests.support.workspaces import write_program

PROMPT = "Ctrl-D leaves the question open."


def a_folder() -> RunFolder:
    return RunFolder(Path())


def asking(**more: Any) -> Question:
    return Question("ok.1", "Ship it?", "", "2026-01-31T10:15:00+00:00", None, None, **more)


@dataclass
class Person:
    """Somebody at ``keys``, the other end of a terminal, who types a line whenever the question waits for one.

    The question is over when the lines are used up.
    """

    keys: int
    descriptor: int
    lines: list[str] = field(default_factory=list)

    def answers(self, *lines: str, words: bool = False) -> tuple[bool, str] | None:
        """Ask on the terminal; the verdict and its comment."""
        answer = self.answer_to(asking(words=words), *lines)
        return None if answer is None else (answer.approved, answer.comment)

    def answer_to(self, question: Question, *lines: str) -> Answer | None:
        self.lines = [*lines]
        answer = TerminalAsker(Lines(lambda _: None).paused, self.descriptor, a_folder)(question, self.has_left)
        return answer and complete(question, answer)

    def has_left(self) -> bool:
        if not self.lines:
            return True
        os.write(self.keys, self.lines.pop(0).encode())
        return False


@pytest.fixture
def person() -> Iterator[Person]:
    ours, theirs = pty.openpty()
    yield Person(ours, theirs)
    os.close(ours)
    os.close(theirs)


def test_approval_may_have_a_comment(person: Person, capsys: pytest.CaptureFixture[str]) -> None:
    os.write(person.keys, b"n because\n")  # before there is a question: no answer to it
    assert person.answers("perhaps\n", "y good\n") == (True, "good")
    assert capsys.readouterr().err.count(HOW) == 2


def test_rejection_needs_a_reason(person: Person, capsys: pytest.CaptureFixture[str]) -> None:
    assert person.answers("n\n", "\n", "too early\n") == (False, "too early")
    assert capsys.readouterr().err.count(WHY) == 2
    assert person.answers("no not yet\n") == (False, "not yet")


@pytest.mark.parametrize(("typed", "answer"), [("use sqlite\n", (True, "use sqlite")), ("\n", (False, ""))])
def test_words_are_an_answer(
    person: Person, capsys: pytest.CaptureFixture[str], typed: str, answer: tuple[bool, str]
) -> None:
    assert person.answers(typed, words=True) == answer
    assert WORDS in capsys.readouterr().err


def test_end_of_input_does_not_answer(person: Person, capsys: pytest.CaptureFixture[str]) -> None:
    assert person.answers("\x04", "never read\n") is None
    assert OVER not in capsys.readouterr().err


def test_options_and_fields_are_asked_for_until_they_are_right(
    person: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = {"copies": {"type": "integer"}, "draft": {"type": "boolean", "default": False}}
    question = asking(options=["a", "b"], fields=fields)
    answer = person.answer_to(question, "c\n", "b\n", "many\n", "3\n", "\n")
    assert answer is not None
    assert (answer.option, answer.values) == ("b", {"copies": 3, "draft": False})
    told = capsys.readouterr().err
    assert '"c" is not an option of ok.1' in told
    assert "ok.1: copies: 'many' is not of type 'integer'" in told
    assert told.count("option (a or b):") == 2
    answer = person.answer_to(question, "reject too early\n")
    assert answer is not None
    assert (answer.approved, answer.comment) == (False, "too early")


@pytest.mark.real
def test_list_of_objects_is_edited_as_json_and_what_was_wrong_is_edited_again(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = """#!/bin/sh\ncase $(cat "$1") in *12*) sed -i 's/12/2/' "$1";; *) sed -i 's/1/12/' "$1"; esac\n"""
    monkeypatch.setenv("VISUAL", str(write_program(tmp_path / "editor", script)))
    item = {"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}}}
    tasks = {"tasks": {"type": "array", "items": item, "default": [{"id": "\u202ea", "size": 1}]}}
    answer = person.answer_to(asking(fields=tasks), "\n", "\n")
    assert answer is not None
    assert answer.values == {"tasks": [{"id": "\u202ea", "size": 2}]}
    assert "ok.1: tasks[0].size: 12 is greater than the maximum of 9" in capsys.readouterr().err


@pytest.mark.real
def test_default_of_a_list_is_not_taken_without_an_editor(
    person: Person, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VISUAL", "/nowhere/editor")
    tasks = {"tasks": {"type": "array", "items": {"type": "string"}, "default": ["sort"]}}
    answer = person.answer_to(asking(fields=tasks), "\n", '["count"]\n')
    assert answer is not None
    assert answer.values == {"tasks": ["count"]}
    assert "Set EDITOR" in capsys.readouterr().err


def test_question_that_is_over_is_reported(person: Person, capsys: pytest.CaptureFixture[str]) -> None:
    assert person.answers("half a line") is None
    assert OVER in capsys.readouterr().err


@pytest.fixture
def team(tmp_path: Path) -> TeamFolder:
    return reviewed(tmp_path)


@pytest.mark.real
def test_it_is_asked_on_the_terminal_below_the_table(team: TeamFolder) -> None:
    with at_terminal(team.command("--flow", "own"), team.folder) as terminal:
        terminal.type("y\n")  # before there is a question: no answer to it
        terminal.wait_for("review ok.1: Ship it?")
        terminal.wait_for('"summary": "it"')
        terminal.wait_for(PROMPT)
        terminal.type("perhaps\n")
        terminal.wait_for(PROMPT)
        terminal.type("y good\n")
        assert terminal.end() == 0
    assert outcome(team) == ("shipped", 0)
    asked_at, last_table = terminal.drawn.split("Ship it?")
    assert "one" in asked_at
    assert "ok: approved by" in last_table


@pytest.mark.real
def test_person_sees_what_changed_chooses_by_letter_and_edits_a_list(tmp_path: Path) -> None:
    written = say("Made it.", verdict="good", files=[{"path": "new.py", "content": 'made = "\\x1b[31m"\n'}])
    written["json"]["tasks"] = ["sort"]
    team = TeamFolder(tmp_path, {"one": EDITOR}, {"one": [written]})
    tasks = {"type": "array", "items": {"type": "string"}, "minItems": 1, "default": "{{ steps.one.tasks }}"}
    review = {"id": "ok", "review": {"question": "Go on?", "options": ["now", "later"], "fields": {"tasks": tasks}}}
    with_flow(team, {"steps": [{"ask": "one"}, review]})
    editor = write_program(tmp_path / "editor", '#!/bin/sh\necho "  count  " >> "$1"\n')
    with at_terminal(team.command("--flow", "own"), tmp_path, PAGER="cat", EDITOR=str(editor), VISUAL="") as terminal:
        terminal.wait_for("changed since the start: 1 file")
        terminal.wait_for("new.py  +1 -0, added  by one 1")
        terminal.wait_for("one 1: verdict: good; Made it.")
        terminal.wait_for("b) later")
        terminal.type("d\n")
        terminal.wait_for("+made")
        terminal.type("b\n")
        terminal.wait_for(IN_EDITOR["lines"])
        terminal.type("[]\n")
        terminal.wait_for("ok.1: tasks")
        terminal.wait_for(IN_EDITOR["lines"])
        terminal.type("\n")
        assert terminal.end() == 0
    given = asked(team)["answer"]
    assert (given["option"], given["values"]) == ("later", {"tasks": ["sort", "count"]})
    assert '\x1b[31m"' not in terminal.drawn


def approve(team: TeamFolder) -> str:
    done = console("approve", "latest", "--comment", "good", "--resume", folder=team.folder)
    assert done.returncode == 0, done.stderr
    return done.stderr


def asked_at(terminal: Session) -> None:
    terminal.wait_for(PROMPT)


@pytest.mark.real
def test_ctrl_c_stops_a_run_that_waits(team: TeamFolder) -> None:
    with at_terminal(team.command("--flow", "own"), team.folder) as terminal:
        asked_at(terminal)
        terminal.type("\x03")
        assert terminal.end() == 130
    approve(team)
    assert outcome(team) == ("shipped", 0)


@pytest.mark.real
def test_in_the_background_nobody_is_asked_and_nothing_stops(team: TeamFolder) -> None:
    command = shlex.join(team.command("--flow", "own"))
    with at_terminal(["/bin/bash", "-c", f"set -m; {command} & wait $!; echo code $?"], team.folder) as terminal:
        terminal.wait_for("code 4")
        assert terminal.end() == 0
    assert PROMPT not in terminal.drawn
