"""Observers of turns that extensions install: they observe the turns and checks of a run, and may take them over."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.support.plugins import install
from tests.support.teams import TeamFolder, read, say, warnings, with_flow

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("scripted_codex")]

OBSERVER = """
from types import SimpleNamespace

class watch:
    def __init__(self, definitions, run):
        self.known = None

    def take(self, run, asked, *, may_decline):
        return self.known if asked.visit == 2 else None

    def attempt(self, attempt):
        moments = []

        def recorded(result, turn_id):
            self.known = result
            return {"moments": [*moments, turn_id]}

        return SimpleNamespace(
            began=lambda: moments.append(attempt.before),
            observe=lambda event: None,
            called=moments.append,
            compares_workspace=False,
            recorded=recorded,
        )

    def hidden_files(self, run):
        return ""

    def check(self, run, folder, name, options, carry_out, stay):
        return {**carry_out(), "path": f"what {name} wrote"}
"""
STEPS = [
    {"id": "first", "ask": "one"},
    {"id": "saved", "check": "write_file", "with": {"path": "a.txt", "content": "{{ steps.first.summary }}"}},
    {"id": "again", "ask": "one", "prompt": "{{ steps.saved.path }}"},
    {"id": "both", "check": "write_file", "with": {"path": "b.txt", "content": "{{ steps.again.summary }}"}},
]


@pytest.fixture
def team(tmp_path: Path) -> TeamFolder:
    team = TeamFolder(tmp_path / "team", {"one": {}}, {"one": [say("first"), say("second")]})
    return with_flow(team, {"steps": STEPS})


def test_observer_sees_turns_and_checks_and_takes_a_turn(
    team: TeamFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "turn_observers", ["watch"], OBSERVER, ("broken = extra_turn_observers:gone",))
    report = team.run(flow="own")
    assert report.exit_code == 0, report.reason
    assert (team.workspace / "b.txt").read_text() == "first"
    assert [role for role, *_ in team.turns()] == ["one"]
    before, turn_id = read(report.folder / "one/turn_001/turn.json")["moments"]
    assert (before, bool(turn_id)) == ("", True)
    assert "what write_file wrote" in (report.folder / "journal.sqlite").read_bytes().decode(errors="replace")
    (warning,) = warnings(team.of_type("warning"))
    assert "the observer of turns 'broken' (extra_turn_observers:gone) does not load" in warning


def test_run_works_without_observers(team: TeamFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", Mock(side_effect=KeyError("no metadata")))
    monkeypatch.syspath_prepend(tmp_path)
    report = team.run(flow="own")
    assert report.exit_code == 0, report.reason
    assert (team.workspace / "b.txt").read_text() == "second"
    assert "basis" not in read(report.folder / "one/turn_001/turn.json")
    assert "no observer of turns was found: KeyError" in warnings(team.of_type("warning"))[0]
