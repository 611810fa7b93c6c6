"""Tools that a role calls within its turn.

Costs: each case is a run with tools, some of them stopped and resumed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import codex_multi_role
from codex_multi_role import resume
from codex_multi_role.checks.tools.ask_user import NO_WORDS, NOBODY
from codex_multi_role.run_folder import Answer, Question
from tests.support.processes import interrupted, interrupting
from tests.support.reviews import answer, asked, summary, until_over
from tests.support.teams import LIMITS, NEVER, Record, TeamFolder, fan, read_lines, say, with_flow
from tests.support.tools import calls, install

pytestmark = pytest.mark.usefixtures("scripted_codex")

QUESTION: Record = {"question": "Which database?", "options": ["sqlite", "postgres"]}


def asking(folder: Path, arguments: object = QUESTION, **role: object) -> TeamFolder:
    return TeamFolder(folder, {"one": {"tools": ["ask_user"], **role}}, {"one": [calls("ask_user", arguments)] * 2})


def recorded(team: TeamFolder, turn: int = 1) -> list[Record]:
    return read_lines(team.runs / f"latest/one/turn_{turn:03d}/tool_calls.jsonl")


def test_ask_user_passes_answer_from_elsewhere_to_role(tmp_path: Path) -> None:
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


def test_rejection_reaches_the_role_with_its_reason(tmp_path: Path) -> None:
    team = asking(tmp_path)

    def ask(question: Question, is_over: Callable[[], bool]) -> Answer | None:
        answer(team, False, "neither")
        return until_over(question, is_over)

    codex_multi_role.run(team.options(), team.events.append, ask)
    assert summary(team) == "The person rejected this: neither"


def test_ask_user_reports_at_once_that_nobody_is_available(tmp_path: Path) -> None:
    team = asking(tmp_path)
    codex_multi_role.run(team.options(), team.events.append)
    assert summary(team) == NOBODY
    (warning,) = team.of_type("warning")
    assert warning["message"] == "one continues without an answer, because nobody is available: Which database?"
    assert not (team.runs / "latest/reviews").exists()


def test_time_a_person_takes_is_not_the_turns(tmp_path: Path) -> None:
    """The person says nothing for as long as the whole turn may take."""
    team = asking(tmp_path, limits={**LIMITS, "turn_seconds": 2})
    codex_multi_role.run(team.options(), team.events.append, until_over)
    assert (summary(team), team.turns()) == (NOBODY, [("one", 1, "completed")])


def test_person_who_gives_no_words(tmp_path: Path) -> None:
    team = asking(tmp_path)
    codex_multi_role.run(team.options(), team.events.append, lambda *_: Answer(False, "", "ann", ""))
    assert summary(team) == NO_WORDS


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [({"questions": "?"}, "wrong arguments: $: "), (["?"], "wrong arguments: they must be a JSON object")],
)
def test_wrong_arguments_are_reported_to_model(tmp_path: Path, arguments: object, problem: str) -> None:
    team = asking(tmp_path, json.dumps(arguments))
    team.run()
    assert summary(team).startswith(problem)
    assert [(call["success"], call["arguments"]) for call in recorded(team)] == [(False, arguments)]


def test_installed_tool_is_called_and_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_resumed_role_still_has_its_tools(tmp_path: Path) -> None:
    team = asking(tmp_path)
    team.write_catalog(two={})
    team.write_plays(two=[{"fault": {"status": 400}}])
    assert team.run().exit_code == 3
    team.write_plays(two=[say()] * 2)
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
    assert "one: its conversation keeps the tools it started with (ask_user)" in warning["message"]
    assert summary(team) == "the tool ask_user is no longer available to this role"


PLAN: Record = {"call": "write_todos", "arguments": {"todos": [{"id": "T1", "content": "look"}]}}


def planning(folder: Path, *entries: Record) -> TeamFolder:
    return TeamFolder(folder, {"one": {"tools": ["write_todos", "validate_plan"]}}, {"one": list(entries)})


def planned(team: TeamFolder) -> list[str]:
    state = json.loads((team.runs / "latest/controller_state.json").read_text())
    return [todo["id"] for todo in state["latest_json_by_role"]["one"]["todos"]]


@pytest.mark.extensions
def test_values_kept_by_tool_reach_handoff_after_repair(tmp_path: Path) -> None:
    """The handoff also contains them if the answer had to be requested again."""
    judge: Record = {"call": "validate_plan"}
    team = planning(tmp_path, {"steps": [PLAN, judge, {"text": "no JSON"}], "repairs": [{"steps": [judge, say()]}]})
    team.run()
    assert planned(team) == ["T1"]
    assert [call["text"] for call in recorded(team)][1:] == [call["text"] for call in recorded(team, 2)]
    assert recorded(team, 2)[0]["text"] == "The plan can be followed."


def stopped_after_planning(folder: Path) -> TeamFolder:
    """A run that was stopped in the second turn of a role, which has stored its plan by then."""
    team = planning(folder, say(), {"steps": [PLAN, NEVER]})
    assert interrupted(team, ("tool_called", "one"), cycles=2).exit_code == 130
    return team


def plays_second_turn(team: TeamFolder, entry: Record) -> str:
    """Write the playbook with another second turn; returns its path."""
    team.write_plays(one=[say(), entry])
    return str(team.playbook)


@pytest.mark.extensions
def test_what_a_tool_kept_survives_a_stop_in_the_same_turn(tmp_path: Path) -> None:
    """The thread remembers that the plan was written, so it is not written again."""
    team = stopped_after_planning(tmp_path)
    team.resume(playbook=plays_second_turn(team, say()))
    assert len({turn["thread_id"] for turn in turn_records(team)}) == 1
    assert planned(team) == ["T1"]


@pytest.mark.extensions
def test_what_a_tool_kept_survives_two_stops_in_the_same_turn(tmp_path: Path) -> None:
    """The second attempt calls no tool, but the thread still remembers the calls of the first."""
    team = stopped_after_planning(tmp_path)
    again, stop = plays_second_turn(team, NEVER), interrupting(("turn_started", "one"))
    assert resume("latest", runs_dir=team.runs, on_event=stop, playbook=again).exit_code == 130
    team.resume(playbook=plays_second_turn(team, say()))
    assert planned(team) == ["T1"]


@pytest.mark.extensions
def test_what_a_tool_kept_is_dropped_with_its_thread(tmp_path: Path) -> None:
    """An item starts a new thread, which calls the tool again: what it stored first must not count twice."""
    calculation: Record = {"call": "calculator", "arguments": {"expression": "2 * 21"}}
    team = TeamFolder(tmp_path, {"solver": {"tools": ["calculator"]}}, {"solver": [{"steps": [calculation, NEVER]}]})
    with_flow(team, {"steps": [fan(["x"])]})
    assert interrupted(team, ("tool_called", "solver"), flow="own").exit_code == 130
    team.write_plays(solver=[{"steps": [calculation, say()]}])
    assert team.resume(playbook=str(team.playbook)).exit_code == 0
    state = json.loads((team.runs / "latest/controller_state.json").read_text())
    assert state["latest_json_by_role"]["solver"]["calculations"] == ["2 * 21 = 42"]


def stepping(folder: Path, *entries: Record, **role: object) -> TeamFolder:
    return TeamFolder(folder, {"one": {"tools": ["write_todos", "terminate"], **role}}, {"one": list(entries)})


def end(status: str, **more: object) -> Record:
    return {"call": "terminate", "arguments": {"status": status, **more}}


THINKING: Record = {"text": "I think about it."}


def turn_records(team: TeamFolder) -> list[Record]:
    return [json.loads(path.read_text()) for path in sorted((team.runs / "latest/one").glob("turn_*/turn.json"))]


@pytest.mark.extensions
def test_turn_that_only_talks_is_continued_on_the_same_thread(tmp_path: Path) -> None:
    """The seed's loop: text without a tool call is repeated until `terminate`, and what the tools kept is not lost."""
    rest: list[Record] = [THINKING, {"steps": [end("success"), say("planned")]}]
    team = stepping(tmp_path, {"steps": [PLAN, THINKING], "repairs": rest}, max_steps=2)
    assert team.run().exit_code == 1  # the only cycle is used up
    turns = turn_records(team)
    assert [turn["outcome"] for turn in turns] == ["unfinished", "unfinished", "completed"]
    assert [turn["continues"] for turn in turns] == [None, 1, 2]
    assert len({turn["thread_id"] for turn in turns}) == 1
    assert planned(team) == ["T1"]
    assert "neither finished your task" in (team.runs / "latest/one/turn_002/prompt.txt").read_text()
    assert json.loads((team.runs / "latest/run.json").read_text())["totals"]["repairs"] == 0


@pytest.mark.extensions
def test_turn_is_continued_at_most_max_steps_times(tmp_path: Path) -> None:
    """After that, the role is asked for its answer. Each of them counts as a turn of the budget."""
    team = stepping(tmp_path, {**THINKING, "repairs": [THINKING, THINKING, say("at last")]}, max_steps=2)
    assert team.run(max_turns=2).outcome == "budget_used_up"
    team.resume(max_turns=4)
    assert [turn["outcome"] for turn in turn_records(team)] == [
        "unfinished",
        "unfinished",
        "invalid_reply",
        "completed",
    ]
    assert [turn["repair_of"] for turn in turn_records(team)] == [None, None, None, 3]


@pytest.mark.extensions
def test_after_terminate_only_the_summary_is_asked_for(tmp_path: Path) -> None:
    team = stepping(tmp_path, {"steps": [end("success"), THINKING], "repairs": [say("done")]}, max_steps=5)
    team.run()
    assert [(turn["outcome"], turn["repair_of"]) for turn in turn_records(team)] == [
        ("invalid_reply", None),
        ("completed", 1),
    ]


@pytest.mark.extensions
def test_terminate_with_failure_fails_role_with_its_reason(tmp_path: Path) -> None:
    """The role may be asked again on resume."""
    team = stepping(tmp_path, {"steps": [end("failure", reason="no figures"), say("sorry")]})
    report = team.run()
    assert (report.exit_code, report.outcome, report.reason) == (3, "gave_up", "role one gave up: no figures")
    team.write_plays(one=[{"steps": [end("success"), say("found them")]}])
    team.resume(playbook=str(team.playbook))
    assert [turn["outcome"] for turn in turn_records(team)] == ["gave_up", "completed"]
