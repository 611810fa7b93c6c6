"""Tools that a role calls within its turn, on the real binary."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import codex_multi_role
from codex_multi_role.errors import DefinitionError
from codex_multi_role.run_folder import Answer, Question
from codex_multi_role.tools.ask_user import NO_WORDS, NOBODY
from tests.engine.test_resume import NEVER, running
from tests.engine.test_review import answer, asked, summary, until_over
from tests.teams import LIMITS, Record, TeamFolder, say
from tests.tools.installed import install

QUESTION: Record = {"question": "Which database?", "options": ["sqlite", "postgres"]}


def calls(tool: str, arguments: object) -> Record:
    """A turn that calls a tool, and hands on what it was told."""
    return {"steps": [{"call": tool, "arguments": arguments}, say("{{ tool_outputs[0] }}")]}


def asking(folder: Path, arguments: object = QUESTION, **role: object) -> TeamFolder:
    return TeamFolder(folder, {"one": {"tools": ["ask_user"], **role}}, {"one": [calls("ask_user", arguments)] * 2})


def recorded(team: TeamFolder, turn: int = 1) -> list[Record]:
    lines = (team.runs / f"latest/one/turn_{turn:03d}/tool_calls.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_what_a_person_answers_elsewhere_is_what_the_role_goes_on_with(tmp_path: Path) -> None:
    team = asking(tmp_path)

    def ask(question: Question, is_over: Callable[[], bool]) -> Answer | None:
        assert (question.question, question.show) == ("Which database?", "- sqlite\n- postgres")
        answer(team, True, "use sqlite")
        return until_over(question, is_over)

    codex_multi_role.run(team.options(), team.events.append, ask)
    assert summary(team) == "use sqlite"
    assert asked(team, "one.turn_001.1")["answer"]["comment"] == "use sqlite"
    (call,) = recorded(team)
    assert list(call) == ["tool", "arguments", "success", "text", "seconds", "at"]
    assert (call["tool"], call["arguments"], call["text"]) == ("ask_user", QUESTION, "use sqlite")
    (told,) = team.of_type("tool_called")
    assert (told["role"], told["turn"], told["tool"], told["success"]) == ("one", 1, "ask_user", True)
    assert not team.of_type("approval")


def test_a_rejection_reaches_the_role_with_its_reason(tmp_path: Path) -> None:
    team = asking(tmp_path)

    def ask(question: Question, is_over: Callable[[], bool]) -> Answer | None:
        answer(team, False, "neither")
        return until_over(question, is_over)

    codex_multi_role.run(team.options(), team.events.append, ask)
    assert summary(team) == "The person rejected this: neither"


@pytest.mark.parametrize("yes", [False, True])
def test_where_nobody_is_there_the_role_is_told_so_at_once(tmp_path: Path, yes: bool) -> None:
    team = asking(tmp_path)
    codex_multi_role.run(team.options(yes=yes), team.events.append, until_over if yes else None)
    assert summary(team) == NOBODY
    (warning,) = team.of_type("warning")
    assert warning["message"] == "one goes on without an answer, nobody is there: Which database?"
    assert not (team.runs / "latest/reviews").exists()


def test_the_time_a_person_takes_is_not_the_turns(tmp_path: Path) -> None:
    """The person says nothing for as long as the whole turn may take."""
    team = asking(tmp_path, limits={**LIMITS, "turn_seconds": 3})
    codex_multi_role.run(team.options(), team.events.append, until_over)
    assert (summary(team), team.turns()) == (NOBODY, [("one", 1, "completed")])


def test_a_person_who_gives_no_words(tmp_path: Path) -> None:
    team = asking(tmp_path)
    codex_multi_role.run(team.options(), team.events.append, lambda *_: Answer(False, "", "ann", ""))
    assert summary(team) == NO_WORDS


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [({"questions": "?"}, "wrong arguments: $: "), (["?"], "wrong arguments: they must be a JSON object")],
)
def test_wrong_arguments_are_told_to_the_model(tmp_path: Path, arguments: object, problem: str) -> None:
    team = asking(tmp_path, json.dumps(arguments))
    team.run()
    assert summary(team).startswith(problem)
    assert [(call["success"], call["arguments"]) for call in recorded(team)] == [(False, arguments)]


def test_an_installed_tool_is_called_and_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, ["shout"])
    monkeypatch.setenv("VOICE_TOKEN", "quiet-secret-words")
    team = TeamFolder(
        tmp_path / "team",
        {"one": {"tools": ["shout", "ask_user"]}},
        {"one": [calls("shout", {"text": "quiet-secret-words"}), calls("shout", {"text": "fail"})]},
    )
    team.run(cycles=2)
    assert recorded(team)[0]["arguments"] == {"text": "[redacted]"}
    assert (team.runs / "latest/one/turn_001/shouted.txt").read_text() == "quiet-secret-words"
    assert summary(team) == recorded(team, 2)[0]["text"] == "the tool shout failed: no voice"
    assert [event["success"] for event in team.of_type("tool_called")] == [True, False]


def test_a_resumed_role_still_has_its_tools(tmp_path: Path) -> None:
    team = asking(tmp_path)
    team.roles["two"] = {}
    team.plays["two"] = [NEVER]
    team.write_catalog()
    team.write_plays()
    with running(team, until=("turn_started", "two")) as process:
        process.kill()
    team.plays["two"] = [say()] * 2
    team.write_plays()
    team.resume(playbook=str(team.playbook), cycles=2)
    assert [event["resumed"] for event in team.of_type("role_started") if event["role"] == "one"] == [True]
    assert [event["success"] for event in team.of_type("tool_called")] == [True]
    assert recorded(team, 2)[0]["text"] == NOBODY


def test_tools_that_changed_on_resume_are_warned_of(tmp_path: Path) -> None:
    team = asking(tmp_path)
    team.run()
    team.roles["one"]["tools"] = []
    team.write_catalog()
    team.resume(roles=tmp_path / "roles", cycles=2)
    (warning,) = team.of_type("warning")
    assert "one: its conversation keeps the tools it began with (ask_user)" in warning["message"]
    assert summary(team) == "the tool ask_user is not offered to this role any more"


def test_an_unknown_tool_is_found_before_a_run(tmp_path: Path) -> None:
    team = asking(tmp_path, tools=["ask_usr"])
    with pytest.raises(DefinitionError) as caught:
        team.run()
    assert str(caught.value).endswith(
        'catalog.yaml: roles[0].tools[0]: there is no tool "ask_usr"; did you mean "ask_user"?'
    )
    assert not team.runs.exists()


PLAN: Record = {"call": "write_todos", "arguments": {"todos": [{"id": "T1", "content": "look"}]}}


def planning(folder: Path, *entries: Record) -> TeamFolder:
    return TeamFolder(folder, {"one": {"tools": ["write_todos", "validate_plan"]}}, {"one": list(entries)})


def planned(team: TeamFolder) -> list[str]:
    state = json.loads((team.runs / "latest/controller_state.json").read_text())
    return [todo["id"] for todo in state["latest_json_by_role"]["one"]["todos"]]


def test_what_a_tool_keeps_is_in_the_handoff_also_when_the_answer_had_to_be_asked_for_again(tmp_path: Path) -> None:
    judge: Record = {"call": "validate_plan"}
    team = planning(tmp_path, {"steps": [PLAN, judge, {"text": "no JSON"}], "repairs": [{"steps": [judge, say()]}]})
    team.run()
    assert planned(team) == ["T1"]
    assert [call["text"] for call in recorded(team)][1:] == [call["text"] for call in recorded(team, 2)]
    assert recorded(team, 2)[0]["text"] == "The plan can be followed."


def test_what_a_tool_kept_survives_a_kill_in_the_same_turn(tmp_path: Path) -> None:
    """The thread remembers that the plan was written, so it is not written again."""
    team = planning(tmp_path, {"steps": [PLAN, NEVER]})
    with running(team, until=("tool_called", "one")) as process:
        process.kill()
    team.plays["one"] = [say()]
    team.write_plays()
    team.resume(playbook=str(team.playbook))
    assert planned(team) == ["T1"]
