"""A review with options or fields: the run waits for right values, and later steps get them with their type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role import run
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.run_folder import Answer, Question
from tests.support.console import console
from tests.support.reviews import asked
from tests.support.teams import WRITER, Record, TeamFolder, read, say, warnings, with_flow

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

RELEASE: Record = {
    "id": "release",
    "review": {
        "question": "Release it?",
        "options": ["ship", "hold"],
        "fields": {"copies": {"type": "integer", "minimum": 1}, "draft": {"type": "boolean", "default": False}},
    },
    "next": [
        {"when": "steps.release.option == 'hold'", "end": "held", "exit": 1},
        {"when": "steps.release.copies > 2 and not steps.release.draft", "to": "tell"},
        {"end": "few", "exit": 1},
    ],
}
SHIP = {"seconds": 3600, "answer": "ship"}
TELL: Record = {"id": "tell", "ask": "one", "prompt": "{{ steps.release.copies + 1 }} copies"}


def asking(folder: Path, tell: Record = TELL, **changes: object) -> TeamFolder:
    team = TeamFolder(folder, {"one": {}}, {"one": [say(), say()]})
    routes = {"next": changes.pop("next")} if "next" in changes else {}
    return with_flow(team, {"steps": [{"ask": "one"}, released(**changes) | routes, tell]})


def released(**changes: object) -> Record:
    """The review with other keys."""
    return {**RELEASE, "review": {**RELEASE["review"], **changes}}


def run_id(team: TeamFolder) -> str:
    return (team.runs / "latest").resolve().name


@pytest.mark.sample("answer")
@pytest.mark.usefixtures("real_codex")
def test_command_answers_with_values_and_refuses_wrong_ones(tmp_path: Path) -> None:
    team = asking(tmp_path)
    assert team.run(flow="own").exit_code == 4
    wrong = console("answer", "option=ship", "copies=none", folder=tmp_path)
    assert wrong.returncode == 2
    assert "release.1: copies: 'none' is not of type 'integer'" in wrong.stderr
    told = "Options: ship, hold. Fields: copies (integer, at least 1); draft (boolean, false if left out)."
    assert told in wrong.stderr
    assert asked(team, "release.1")["answer"] is None
    assert "release.1 needs an option" in console("approve", folder=tmp_path).stderr
    shown = console("show", folder=tmp_path)
    assert shown.stdout.endswith(f"next: codex-multi-role resume {run_id(team)}\n")  # asks for the values
    done = console(
        "answer", "latest", "--question", "release.1", "option=ship", "copies=3", "--resume", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "release.1 is answered: ship (copies: 3, draft: false)." in done.stderr
    assert "review release.1: ship (copies: 3, draft: false) by" in console("watch", folder=tmp_path).stderr
    assert "4 copies" in team.prompt("one", 2)


def test_comments_on_lines_reach_roles_with_the_lines_as_they_were(tmp_path: Path) -> None:
    steps: list[Record] = [
        {"ask": "one"},
        {"id": "look", "review": "Good?", "next": [{"when": "steps.look.approved", "end": "good"}, {"to": "mend"}]},
        {"id": "mend", "ask": "one", "prompt": "{{ steps.look.comments }}"},
    ]
    old, new = {"path": "a.py", "content": "x = 1\ny = 2\n"}, {"path": "a.py", "content": "y = 3\n"}
    team = TeamFolder(tmp_path, {"one": WRITER}, {"one": [say(files=[old]), say(files=[new])]})
    with_flow(team, {"steps": steps})
    assert team.run(flow="own").exit_code == 4
    console("reject", "--comment", "no", "--on", "a.py:2", "why 2?", folder=tmp_path)
    assert team.resume().exit_code == 0
    said = {"path": "a.py", "line": 2, "text": "why 2?", "side": "after", "code": "y = 2"}
    assert "'code': 'y = 2'" in team.prompt("one", 2) or '"code": "y = 2"' in team.prompt("one", 2)
    assert [each["comments"] for each in team.events if each["type"] == "review_answered"] == [[said]]


def test_rejection_and_another_option_go_their_own_ways(tmp_path: Path) -> None:
    def rejects(question: Question, _: object) -> Answer:
        return Answer(False, "not yet")

    def holds(question: Question, _: object) -> Answer:
        return Answer(True, values={"option": "hold", "copies": 1})

    def errs(question: Question, _: object) -> Answer:
        return Answer(True, values={"option": "hodl", "copies": 1})

    ends = ((rejects, (1, "release_failed")), (holds, (1, "held")), (errs, (3, "wrong_value")))
    for number, (person, end) in enumerate(ends):
        team = asking(tmp_path / str(number))
        report = run(team.options(flow="own"), ask_person=person)
        assert (report.exit_code, report.outcome) == end, report


def test_yes_takes_the_declared_defaults_and_parks_where_one_is_missing(tmp_path: Path) -> None:
    assert asking(tmp_path / "missing").run(flow="own", yes=True).exit_code == 4
    declared: Record = {
        "fields": {"copies": {"type": "integer", "default": 5}, "draft": {"default": False}},
        "after": SHIP,
    }
    team = asking(tmp_path / "declared", **declared)
    assert team.run(flow="own", yes=True).exit_code == 0
    assert "6 copies" in team.prompt("one", 2)


def test_next_command_that_looks_settles_what_is_out_of_time(tmp_path: Path) -> None:
    fields = {"copies": {"type": "integer", "default": 5}, "draft": {"default": False}}
    team = asking(tmp_path, fields=fields, after=SHIP)
    assert team.run(flow="own").exit_code == 4
    console("show", folder=tmp_path)
    assert asked(team, "release.1")["answer"] is None
    file = team.runs / "latest/reviews/release.1.json"
    file.write_text(json.dumps({**read(file), "asked_at": "2001-01-01T00:00:00.000+00:00"}))
    assert "release.1" not in console("show", folder=tmp_path).stdout.partition("\nnext:")[2]
    assert asked(team, "release.1")["answer"]["by"] == "time limit"
    assert team.resume().exit_code == 0
    assert "6 copies" in team.prompt("one", 2)


def test_answer_to_a_form_that_was_changed_since_is_dropped_with_a_warning(tmp_path: Path) -> None:
    team = asking(tmp_path)
    assert team.run(flow="own").exit_code == 4
    assert console("answer", "option=ship", "copies=3", folder=tmp_path).returncode == 0
    changed = {**RELEASE["review"]["fields"], "copies": {"type": "integer", "maximum": 2}}
    with_flow(team, {"steps": [{"ask": "one"}, released(fields=changed), TELL]})
    assert team.resume().exit_code == 4
    [told] = [each for each in warnings(team.events) if "release.1" in each]
    assert told.startswith("release.1: its fields changed, so the answer of ")
    assert '{"copies": 3, "draft": false, "option": "ship", "approved": true}' in told
    assert team.resume().exit_code == 4
    assert not [each for each in warnings(team.events) if "release.1" in each]


def test_answer_is_passed_on_without_who_gave_it(tmp_path: Path) -> None:
    fields = {"copies": {"type": "integer", "default": 5}, "draft": {"default": False}}
    team = asking(tmp_path, {"id": "tell", "ask": "one"}, fields=fields, after=SHIP)
    assert team.run(flow="own", yes=True).exit_code == 0
    told = team.prompt("one", 2)
    assert all(f'"{name}": {value}' in told for name, value in (("copies", 5), ("option", '"ship"'), ("comment", '""')))
    assert '"by"' not in told


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"options": ["a", "a"]}, "each must be given once"),
        ({"fields": {"comment": {}}}, "comment is what every answer has"),
        ({"fields": {"copies": {"type": "whole"}}}, "not a valid JSON Schema"),
        ({"fields": {"copies": {"type": "integer", "default": "x"}}}, "does not fit its field"),
        ({"after": {**SHIP, "answer": "send"}}, "give one of reject, ship, hold"),
        ({"after": SHIP}, "needs a default of the field copies"),
        ({"next": [{"when": "steps.release.colour == 'x'", "end": "x"}]}, "colour"),
        ({"next": [{"when": "steps.release.option == 'send'", "end": "x"}]}, "send"),
        ({"next": [{"when": "steps.release.copies == 'x'", "end": "x"}]}, "copies"),
    ],
)
def test_mistakes_are_found_before_a_run(tmp_path: Path, changes: Record, problem: str) -> None:
    with pytest.raises((DefinitionError, UsageError), match=problem):
        asking(tmp_path, **changes).run(flow="own")
