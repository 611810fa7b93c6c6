"""`run` with a goal and keywords: typed events, paths as texts, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import ReportedRun, RunEvent, UsageError, events, resume, run
from tests.support.teams import TeamFolder, say

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
