"""Forks that cannot be: each says why, and leaves nothing behind."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_multi_role.errors import StorageError, UsageError
from tests.support.catalogs import raised
from tests.support.forks import LOOP, STEPS, Parent, builders, forked
from tests.support.teams import Record, TeamFolder, say
from tests.support.workspaces import everything

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]
BY: list[Record] = [{"key": "coverage", "prefer": "highest"}]


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("bild", 'has not started a step "bild"; did you mean "build"?'),
        ("build:4", "build:1, build:2, build:3"),
        ("build:x", "has not started build:x"),
        (None, "plan:1, build:1, chores:1, judge:1, build:2"),
    ],
)
def test_steps_and_visits_there_are_not(parent: Parent, start: str | None, words: str) -> None:
    team, _ = parent
    error = raised(UsageError, forked, team, start)
    assert words in f"{error} {error.hint}"


def another_flow(team: TeamFolder, steps: list[Record]) -> Record:
    (team.folder / "roles/flows/other.yaml").write_text(yaml.safe_dump({"name": "other", "steps": steps}))
    return {"flow": "other", "roles": team.folder / "roles"}


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (
            [{"ask": "build"}, *STEPS[2:]],
            '"build turn" would be recorded at position 2 of the journal instead of "plan turn"',
        ),
        ([STEPS[0], {"ask": "build", "next": [{"end": "short"}]}], "the flow would end earlier, with short"),
        ([*STEPS[:2], {"ask": "judge", "next": LOOP}], "it would be at judge:1 there"),
        ([*STEPS[:2], {**STEPS[2], "id": "other"}, *STEPS[3:]], "it would be at other:1 there"),
        ([STEPS[0], {"ask": "judge"}], '"judge turn" would be recorded'),
        (
            [STEPS[0], {"id": "build", "check": "choose", "with": {"candidates": [], "by": BY}}],
            '"check choose" would be recorded',
        ),
    ],
)
def test_flow_that_does_not_fit_the_past_leaves_nothing_behind(parent: Parent, steps: list[Record], words: str) -> None:
    team, _ = parent
    before = everything(team.folder)
    changes = another_flow(team, steps)
    error = raised(UsageError, forked, team, "chores:1", **changes)
    assert words in f"{error} {error.hint}"
    (team.folder / "roles/flows/other.yaml").unlink()
    assert everything(team.folder) == before


def test_called_flow_cannot_contain_fork_point_or_lose_steps(tmp_path: Path) -> None:
    """The called flow must still have at least the steps that the original run recorded."""
    team = builders(tmp_path, [{"id": "each", "call": "sub", "for_each": ["x"]}, {"ask": "build"}])
    sub = tmp_path / "roles/flows/sub.yaml"
    sub.write_text(yaml.safe_dump({"steps": [{"ask": "plan"}, {"ask": "judge"}]}))
    assert team.run(flow="own").outcome == "success"
    assert forked(team, "build", max_turns=1).outcome == "success"
    with pytest.raises(UsageError, match='"judge" is in a called flow') as caught:
        forked(team, "judge")
    assert caught.value.hint == "Fork before the call: --from each:1."
    sub.write_text(yaml.safe_dump({"steps": [{"ask": "plan"}]}))
    with pytest.raises(UsageError, match='"judge turn" would be skipped'):
        forked(team, "build", roles=tmp_path / "roles")


def test_cycles_that_end_before_the_fork_would_begin(tmp_path: Path) -> None:
    plays = {"one": [say(f"one {n}") for n in (1, 2, 3)]}
    team = TeamFolder(tmp_path, {"one": {}}, plays)
    team.run(cycles=3)
    with pytest.raises(UsageError, match="team:3 in the same way: the flow would end earlier, with cycles_used_up"):
        forked(team, "team:3", cycles=1)
    assert len(list(team.runs.glob("*/run.json"))) == 2


def test_folders_that_cannot_be_the_workspace(parent: Parent) -> None:
    team, _ = parent
    before = everything(team.folder)
    file = team.workspace / "a.txt"
    for wrong, words in ((team.workspace, "not empty"), (team.workspace / "new", "is inside"), (file, "cannot be")):
        with pytest.raises(UsageError, match=words):
            forked(team, "judge:1", workspace=wrong)
    assert everything(team.folder) == before


def test_empty_folder_is_empty_again_when_the_fork_fails(parent: Parent, tmp_path: Path) -> None:
    team, report = parent
    shutil.rmtree(report.folder / ".snapshots/objects")
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(StorageError, match="snapshots"):
        forked(team, "judge:1", workspace=target)
    assert list(target.iterdir()) == []
    assert len(list(team.runs.iterdir())) == 3  # the parent, latest, .gitignore


@pytest.mark.parametrize("change", ["runs_dir", "database_url"])
def test_what_a_fork_keeps(parent: Parent, change: str) -> None:
    team, _ = parent
    changes: Any = {change: "x"}
    with pytest.raises(UsageError, match=change):
        forked(team, "build", **changes)


def test_journal_that_is_gone_or_of_another_version(parent: Parent, monkeypatch: pytest.MonkeyPatch) -> None:
    team, original = parent
    monkeypatch.setattr("codex_multi_role.engine.journal_slots.JOURNAL_VERSION", "another")
    with pytest.raises(StorageError, match="this program writes another"):
        forked(team, "build")
    monkeypatch.undo()
    (original.folder / "journal.sqlite").write_bytes(b"")
    with pytest.raises(StorageError, match="is missing"):
        forked(team, "build")
    sqlite3.connect(original.folder / "journal.sqlite").execute("CREATE TABLE other (x)").connection.close()
    with pytest.raises(StorageError, match="has version unknown") as caught:
        forked(team, "build")
    assert "\n" not in str(caught.value)
    assert [each.name for each in team.runs.glob("*/run.json")] == ["run.json"] * 2  # the parent's, and by latest
