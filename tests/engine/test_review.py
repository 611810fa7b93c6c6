"""A person's decisions: asked, waited for, recorded once.

Costs: each case is a run that is parked and resumed, two of them on the real binary.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import codex_multi_role
from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.stopping import request_stop
from codex_multi_role.run_folder import Answer, Question, RunFolder
from tests.support.console import console
from tests.support.reviews import OFFERED, answer, asked, asking, reviewed, summary, until_over
from tests.support.teams import Record, TeamFolder, read, say, warnings, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

LIMIT = {"seconds": 3600, "answer": "reject"}


def test_parked_run_shows_on_the_terminal_what_is_to_be_approved(tmp_path: Path) -> None:
    team = reviewed(tmp_path, "one\n\x1b[2Jtwo")
    _, _, _, *arguments = team.command("--flow", "own")
    done = console(*arguments, folder=tmp_path)
    assert done.returncode == 4
    shown = '  review ok.1: Ship one [2Jtwo?\n    {\n      "summary": "one\\n\\u001b[2Jtwo"\n    }\n'
    assert shown in done.stderr
    assert "question   ok.1: Ship one [2Jtwo?\n  {\n" in console("show", "latest", folder=tmp_path).stdout


@pytest.mark.parametrize(
    ("approved", "comment", "ending"),
    [
        (True, "good", ("shipped", 0)),
        (False, "bad", ("refused", 1)),
    ],
)
def test_run_parks_until_answered_and_follows_the_answer(
    tmp_path: Path, approved: bool, comment: str, ending: tuple[str, int]
) -> None:
    team = reviewed(tmp_path)
    parked = team.run(flow="own")
    assert (parked.status, parked.outcome, parked.exit_code) == ("parked", "waiting_for_review", 4)
    assert parked.hint == "Once it is answered, the run continues when it is resumed."
    question = asked(team)
    assert (question["question"], json.loads(question["show"])) == ("Ship it?", {"summary": "it"})
    assert question["answer"] is None
    assert [(event["key"], event["question"]) for event in team.of_type("review_asked")] == [("ok.1", "Ship it?")]

    assert team.resume().exit_code == 4
    assert asked(team) == question
    answer(team, approved, comment)
    report = team.resume()
    assert (report.outcome, report.exit_code) == ending
    assert team.turns() == []
    (told,) = team.of_type("review_answered")
    assert (told["key"], told["approved"], told["comment"]) == ("ok.1", approved, comment)
    assert team.of_type("review_asked") == []

    assert team.resume().outcome == ending[0]  # from the journal now
    assert team.of_type("review_answered") == []


def test_yes_approves_and_a_run_remembers_it(tmp_path: Path) -> None:
    team = reviewed(tmp_path)
    report = team.run(flow="own", yes=True)
    assert report.outcome == "approved"
    assert asked(team)["answer"]["by"] == "--yes"
    assert read(report.folder / "run.json")["options"]["yes"] is True


def test_time_limit_spans_sessions_and_never_approves(tmp_path: Path) -> None:
    """The limit counts from the first session, and its end is never a yes."""
    team = reviewed(tmp_path, after=LIMIT)
    parked = team.run(flow="own")
    assert parked.exit_code == 4
    assert "it counts as: reject" in parked.hint
    path = team.runs / "latest/reviews/ok.1.json"
    path.write_text(json.dumps({**asked(team), "asked_at": "2001-01-01T00:00:00.000+00:00"}))
    with pytest.raises(UsageError, match="time to answer"):
        answer(team, True)
    assert team.resume().outcome == "refused"
    assert asked(team)["answer"]["by"] == "time limit"


def test_whoever_is_there_is_asked_until_the_time_is_up(tmp_path: Path) -> None:
    team = reviewed(tmp_path, after={**LIMIT, "seconds": 0.5})
    assert codex_multi_role.run(team.options(flow="own"), ask_person=until_over).outcome == "refused"


def test_answer_from_elsewhere_ends_the_asking(tmp_path: Path) -> None:
    team = reviewed(tmp_path)

    def ask(question: Question, is_over: Callable[[], bool]) -> Answer | None:
        assert not is_over()
        answer(team, True, "good")
        return until_over(question, is_over)

    assert codex_multi_role.run(team.options(flow="own"), ask_person=ask).outcome == "shipped"


@pytest.mark.parametrize(("pauses", "outcome"), [(True, "waiting_for_review"), (False, "cancelled")])
def test_stop_of_the_run_ends_the_asking(tmp_path: Path, pauses: bool, outcome: str) -> None:
    team = reviewed(tmp_path)

    def ask(question: Question, is_over: Callable[[], bool]) -> Answer | None:
        request_stop(RunFolder(team.runs / "latest"), pauses=pauses)
        return until_over(question, is_over)

    assert codex_multi_role.run(team.options(flow="own"), ask_person=ask).outcome == outcome


def test_first_of_two_answers_holds(tmp_path: Path) -> None:
    team = reviewed(tmp_path)

    def ask(_question: Question, _is_over: Callable[[], bool]) -> Answer | None:
        answer(team, False, "first")
        return Answer(True, "second")

    report = codex_multi_role.run(team.options(flow="own"), team.events.append, ask)
    assert report.outcome == "refused"
    assert [event["comment"] for event in team.of_type("review_answered")] == ["first"]


def test_what_no_file_can_hold_or_should_does_not_make_it_another_question(tmp_path: Path) -> None:
    tasks = {"type": "array", "items": {"type": "string"}, "default": "{{ roles.one.tasks }}"}
    team = reviewed(tmp_path, fields={"tasks": tasks})
    team.write_plays(one=[{"text": f'{{"summary": "it \\ud800", "tasks": ["\\ud800 \\u001b", "AKIA{"0" * 16}"]}}'}])
    for report in (team.run(flow="own"), team.resume()):
        assert (report.exit_code, warnings(team.events)) == (4, [])
        assert asked(team)["fields"]["tasks"]["default"] == ["\ufffd \x1b", "[redacted]"]
    assert "\x1b" not in console("show", folder=tmp_path).stdout
    answer(team, True)
    assert team.resume().outcome == "approved"
    assert asked(team)["answer"]["values"] == {"tasks": ["\ufffd \x1b", "[redacted]"]}


FAN: Record = {
    "id": "ship",
    "for_each": {"items": ["a", "b", "c"], "allow": ["bad", "failed"]},
    "review": "Ship {{ item }}?",
    "next": [
        {"when": "steps.ship.results | map(attribute='approved') | list == [true, false, true]", "end": "as_said"},
        {"end": "otherwise", "exit": 1},
    ],
}


def test_all_that_a_fan_out_asks_is_asked_at_once(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    with_flow(team, {"steps": [{"ask": "one"}, FAN]})
    assert team.run(flow="own").exit_code == 4
    assert sorted(event["key"] for event in team.of_type("review_asked")) == ["ship.1.0", "ship.1.1", "ship.1.2"]
    with pytest.raises(UsageError, match="3 open questions"):
        answer(team, True)
    answer(team, True, question="ship.1.2")
    assert team.resume().exit_code == 4
    assert [event["key"] for event in team.of_type("review_answered")] == ["ship.1.2"]
    answer(team, True, question="ship.1.0")
    answer(team, False, question="ship.1.1")
    assert team.resume().outcome == "as_said"
    assert team.turns() == []


SLOW: Record = {**say("slow"), "delay_seconds": 1.0}


def working_beside_a_question(tmp_path: Path, slow: Record = SLOW, **more: object) -> TeamFolder:
    """Two items at once: one asks at once, the other has a turn that takes a while."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [slow] * 3})
    inner: list[Record] = [
        {"id": "start", "check": "command", "with": {"argv": ["true"]}, "next": [
            {"when": "inputs.letter == 'b'", "to": "work"}, {"to": "ok"},
        ]},
        {"id": "work", "ask": "one", "next": [{"end": "worked"}]},
        {"id": "ok", "review": "Ship {{ inputs.letter }}?", **more, "next": [{"end": "asked"}]},
    ]  # fmt: skip
    calls = {"for_each": {"items": ["a", "b"], "concurrency": 2}, "call": "inner", "with": {"letter": "{{ item }}"}}
    with_flow(team, {"steps": [{"id": "both", **calls}]})
    called = {"name": "inner", "inputs": {"letter": {"required": True}}, "steps": inner}
    (tmp_path / "roles/flows/inner.yaml").write_text(yaml.safe_dump(called))
    return team


@pytest.mark.real
def test_failure_beside_a_question_is_how_the_run_ends(tmp_path: Path) -> None:
    """Not waiting: continuing with an answer would take the failed turn again, which is for whoever resumes to say."""
    team = working_beside_a_question(tmp_path, {"fault": {"status": 400}})
    assert team.run(flow="own").exit_code == 3
    assert asked(team, "both.1.0/ok.1")["answer"] is None
    team.write_plays(one=[say()] * 3)
    assert team.resume(playbook=str(team.playbook)).exit_code == 4
    answer(team, True)
    assert team.resume().exit_code == 0


@pytest.mark.real
def test_answer_that_arrives_during_other_work_is_used(tmp_path: Path) -> None:
    """The question is asked long before the other turn ends, with nobody available. Only then is it answered."""
    team = working_beside_a_question(tmp_path)
    events: list[Record] = []

    def on_event(event: Record) -> None:
        events.append(event)
        if event["type"] == "turn_ended":
            answer(team, True, "good")

    report = codex_multi_role.run(team.options(flow="own"), on_event)
    assert (report.outcome, report.exit_code) == ("success", 0), report
    told = [event["type"] for event in events if not event["type"].startswith("role_")]
    assert told.index("review_asked") < told.index("turn_ended") < told.index("review_answered")
    once = ("run_started", "turn_started", "turn_ended", "review_answered", "run_ended")
    assert {kind: told.count(kind) for kind in once} == dict.fromkeys(once, 1)
    assert len({event["pid"] for event in events if event["type"] == "role_started"}) == 1
    assert asked(team, "both.1.0/ok.1")["answer"]["approved"]
    state = read(report.folder / "controller_state.json")
    assert [entry["handoff"]["summary"] for entry in state["history"]] == ["slow"]


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_question_within_turn_is_answered_by_available_person(tmp_path: Path) -> None:
    """An unanswered question is recorded as answered by nobody."""
    team = asking(tmp_path)

    def ask(question: Question, is_over: Callable[[], bool]) -> Answer | None:
        if question.question == "Which name?":
            return None
        assert "- sqlite: one file" in question.show
        with pytest.raises(UsageError, match="in words"):
            answer(team, True)
        answer(team, True, "use sqlite")
        return until_over(question, is_over)

    codex_multi_role.run(team.options(config=OFFERED), team.events.append, ask)
    assert summary(team) == "knows"
    told = [(event["key"], event["comment"]) for event in team.of_type("review_answered")]
    assert told == [("one.turn_001.1", "use sqlite"), ("one.turn_001.2", "")]
    assert [event["decision"] for event in team.of_type("approval")] == ["answer"]
    assert asked(team, "one.turn_001.2")["answer"]["by"] == "nobody"


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_question_within_turn_is_skipped_if_nobody_is_available(tmp_path: Path) -> None:
    """The turn continues at once, and no question is stored."""
    team = asking(tmp_path)
    codex_multi_role.run(team.options(config=OFFERED, yes=True), team.events.append, until_over)
    assert summary(team) == "does not know"
    assert [event["decision"] for event in team.of_type("approval")] == ["skip"]
    assert not (team.runs / "latest/reviews").exists()
