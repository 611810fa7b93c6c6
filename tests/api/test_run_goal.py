"""`run` with a goal and keywords: typed events, playbooks of any kind, what it refuses, and the run as an object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import (
    DefinitionError,
    PlaybookAsk,
    ReportedRun,
    Role,
    Run,
    RunEvent,
    RunNotFound,
    RunOptions,
    Team,
    Turn,
    UsageError,
    events,
    load_run,
    resume,
    run,
    runs,
)
from tests.support.catalogs import raised
from tests.support.recorded_runs import make_run
from tests.support.teams import TeamFolder, read, say

pytestmark = pytest.mark.usefixtures("scripted_codex")

ROLES: dict[str, Any] = {"one": {}, "two": {}}


def folder_of_two(folder: Path) -> TeamFolder:
    return TeamFolder(folder, ROLES, {name: [say(f"{name} {visit}") for visit in (1, 2)] for name in ROLES})


def keywords(team: TeamFolder, **more: Any) -> dict[str, Any]:
    paths = {
        name: str(path)
        for name, path in vars(team.options().place).items()
        if name in ("roles", "runs_dir", "workspace")
    }
    return {"playbook": str(team.playbook), "run_tests": False, "cycles": 1, **paths, **more}


def test_goal_and_keywords_give_typed_events(tmp_path: Path) -> None:
    team, seen = folder_of_two(tmp_path), list[RunEvent]()
    report = run("reach it", seen.append, **keywords(team))
    assert isinstance(seen[0], events.RunStarted)
    assert [event.summary for event in seen if isinstance(event, events.TurnEnded)] == ["one 1", "two 1"]
    assert (report.goal, report.outcome) == ("reach it", "cycles_used_up")
    assert list(report.events) == seen


def test_run_options_give_event_records(tmp_path: Path) -> None:
    team = folder_of_two(tmp_path)
    report = team.run()
    assert isinstance(report, ReportedRun)
    assert team.events[0]["type"] == "run_started"
    again = resume("latest", runs_dir=team.runs, changes={"cycles": 2}, on_event=team.events.append)
    assert [turn.handoff for turn in again.turns if turn.number == 2] == [{"summary": "one 2"}, {"summary": "two 2"}]


def test_folder_of_runs_may_be_a_text_and_wrong_changes_are_named(tmp_path: Path) -> None:
    parked = run("reach it", **keywords(folder_of_two(tmp_path), max_turns=1))
    runs_dir = str(parked.folder.parent)
    wrong: list[tuple[Any, str]] = [
        ({"cycles": "3"}, "cycles must be a whole number, not '3'"),
        (3, "changes must be a mapping with options, not 3"),
        ({"cyles": 3}, 'unknown option of a run "cyles"; did you mean "cycles"'),
    ]
    for changes, words in wrong:
        with pytest.raises(UsageError, match=words):
            resume("latest", runs_dir=runs_dir, changes=changes)
    assert resume("latest", runs_dir=runs_dir, changes={"max_turns": 9}).run_id == parked.run_id


TEAM = Team(roles=[Role(name="one", prompt_text="Do it.")])


def play(folder: Path, playbook: Any, **more: Any) -> ReportedRun:
    places: dict[str, Any] = {"workspace": folder, "runs_dir": folder / "runs"}
    return run("reach it", team=TEAM, playbook=playbook, cycles=1, run_tests=False, **places, **more)


def answer(ask: PlaybookAsk) -> Mapping[str, Any]:
    return {"summary": f"{ask.role} {ask.visit} {ask.repair} {ask.attempt} {'reach it' in ask.prompt}"}


def test_function_answers_and_is_recorded_as_one(tmp_path: Path) -> None:
    report = play(tmp_path, answer)
    (turn,) = report.turns
    assert (turn.handoff, turn.model) == ({"summary": "one 1 0 1 True"}, "playbook")
    assert report.record["playbook"] == report.record["options"]["playbook"] == "answer (Python function)"


def test_resumed_run_gets_its_function_again(tmp_path: Path) -> None:
    first = play(tmp_path, answer)
    without = resume(first.run_id, runs_dir=tmp_path / "runs", cycles=2)
    assert (without.exit_code, "resume the run with playbook=FUNCTION" in without.reason) == (3, True)
    again = resume(first.run_id, runs_dir=tmp_path / "runs", cycles=2, playbook=answer)
    assert again.turns[-1].handoff == {"summary": "one 2 0 1 True"}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda ask: {"summary": ask.nothing}, "AttributeError: 'PlaybookAsk' object has no attribute 'nothing'"),
        (lambda _: 3, "TypeError: a mapping or a text must be returned, not 3"),
    ],
)
def test_what_a_function_does_wrong_is_the_reason(tmp_path: Path, function: Any, words: str) -> None:
    report = play(tmp_path, function)
    assert (report.exit_code, words in report.reason) == (3, True)


def test_text_of_a_function_is_the_whole_answer(tmp_path: Path) -> None:
    assert play(tmp_path, lambda _: "no JSON", repair_attempts=0).turns[0].answer == "no JSON"


def test_mapping_is_kept_as_yaml(tmp_path: Path) -> None:
    """Its name cannot be that of a shipped playbook, so no other one answers in its place."""
    report = play(tmp_path, {"name": "auto", "roles": {"one": [say("a"), say("b")]}})
    assert (report.record["playbook"], report.turns[0].handoff) == ("auto (Python mapping)", {"summary": "a"})
    again = resume(report.run_id, runs_dir=tmp_path / "runs", cycles=2)
    assert [turn.handoff for turn in again.turns] == [{"summary": "a"}, {"summary": "b"}]
    assert read(report.folder / "run.json")["playbook_file"] == "python.yaml"


def test_path_is_a_file_also_without_a_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("answers").write_text("name: own\nroles:\n  one:\n    - json: {summary: a}\n")
    assert play(tmp_path, Path("answers")).turns[0].handoff == {"summary": "a"}
    assert RunOptions(playbook="answers").answers.playbook == "answers"


def test_wrong_mapping_is_named_before_anything_starts(tmp_path: Path) -> None:
    wrong = {
        'playbook: unknown key "rols"; did you mean "roles"?': {"rols": {}},
        'playbook: roles.one[0]: unknown key "jsn"; did you mean "json"?': {"roles": {"one": [{"jsn": 1}]}},
        'playbook: roles.one[0].text: unknown template name "nam"': {"roles": {"one": [{"text": "{{ nam }}"}]}},
    }
    for words, playbook in wrong.items():
        assert str(raised(DefinitionError, play, tmp_path, playbook)) == words
    with pytest.raises(UsageError, match="playbook must be a name, a path, a mapping or a function, not 3"):
        play(tmp_path, 3)
    assert not (tmp_path / "runs").exists()


def finished(folder: Path) -> Run:
    plays = {"one": [{"json": {"summary": "made it", "files": [{"path": "a.txt", "content": "x"}]}}, say("second")]}
    team = TeamFolder(folder, {"one": {"behaviors": {"apply_files": True}}}, plays)
    return load_run(team.run().run_id, runs_dir=team.runs)


def test_loaded_run_tells_what_was_recorded(tmp_path: Path) -> None:
    past = finished(tmp_path)
    record = read(past.folder / "run.json")
    assert (past.run_id, past.goal, past.flow) == (record["run_id"], "reach it", "cycles")
    assert (past.status, past.outcome, past.exit_code) == ("ended", "cycles_used_up", 1)
    assert past.totals == record["totals"]
    assert past.reason == record["reason"]
    assert past.handoffs["one"]["summary"] == "made it"
    assert past.files == ["a.txt"]
    assert past.questions == []
    (turn,) = past.turns
    assert (turn.role, turn.number, turn.status) == ("one", 1, "completed")
    assert turn.prompt.startswith("Role: one\n")
    assert json.loads(turn.answer) == turn.handoff
    used = [past.totals[name] for name in ("input_tokens", "output_tokens", "cost")]
    assert [turn.input_tokens, turn.output_tokens, turn.cost] == used
    assert turn.seconds == turn.details["seconds"] > 0
    assert (past.step, turn.step) == ("team", "team")
    assert turn.started is not None
    assert past.started <= turn.started
    assert (past.totals.turns, past.seconds, past.cost) == (1, past.totals["seconds"], record["totals"]["cost"])


def test_result_is_the_recorded_one(tmp_path: Path) -> None:
    past = finished(tmp_path)
    result = {"title": "Answer", "text": "42", "format": "text", "figures": {}}
    (past.folder / "run.json").write_text(json.dumps({**past.record, "result": result}))
    assert past.result is not None
    assert dict(past.result) == result
    assert (past.result.title, past.result.text, past.result.file, past.result.figures) == ("Answer", "42", "", {})
    assert past.result_text == "42"


def test_command_in_the_hint_is_complete(tmp_path: Path) -> None:
    past = Run(make_run(tmp_path, "first", hint="`codex-multi-role resume RUN` resumes it.").path)
    assert past.hint == f"`codex-multi-role resume first --runs-dir {tmp_path}` resumes it."


def test_turn_without_figures_has_no_cost(tmp_path: Path) -> None:
    """A kill or an earlier version may have recorded none."""
    turn = Turn("one", 1, tmp_path, {})
    assert (turn.input_tokens, turn.output_tokens, turn.seconds, turn.cost) == (0, 0, 0.0, None)
    assert (turn.step, turn.started) == ("", None)


def test_test_runs_are_listed(tmp_path: Path) -> None:
    past = Run(make_run(tmp_path, "first").path)
    (tests,) = past.tests
    assert (tests["number"], tests["status"], tests["failed"]) == (1, "failed", 1)
    assert (tests.number, tests.status, tests.failed, tests.verdict) == (1, "failed", 1, "")
    assert [turn.step for turn in past.turns] == ["team", "team"]


def test_loaded_run_is_resumed_and_forked(tmp_path: Path) -> None:
    past, seen = finished(tmp_path), list[RunEvent]()
    assert past.resume(cycles=2, on_event=seen.append).turns[1].handoff == {"summary": "second"}
    assert seen[-1].type == "run_ended"
    forked = past.fork("team:2", workspace=str(tmp_path / "other"))
    assert forked.record["forked_from"]["run_id"] == past.run_id
    assert [each.run_id for each in runs(tmp_path / "runs")] == [forked.run_id, past.run_id]


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_killed_run_is_reported_as_killed(tmp_path: Path) -> None:
    past = finished(tmp_path)
    (past.folder / "run.json").write_text(json.dumps({**past.record, "status": "running", "exit_code": None}))
    assert (past.status, past.exit_code) == ("killed", None)


def test_runs_of_a_missing_folder_are_none(tmp_path: Path) -> None:
    assert runs(tmp_path / "nowhere") == []
    with pytest.raises(RunNotFound):
        load_run(runs_dir=tmp_path / "nowhere")
