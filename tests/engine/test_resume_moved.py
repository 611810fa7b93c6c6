"""A run is resumed in the folder it worked in, wherever that is now, and in no other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codex_multi_role import resume
from codex_multi_role.errors import UsageError
from codex_multi_role.option_keywords import ResumeKeywords
from tests.support.teams import TeamFolder, read, say

pytestmark = pytest.mark.usefixtures("scripted_codex")


def ran(folder: Path, runs: str) -> TeamFolder:
    """A run whose folder of runs is ``runs``, relative to the workspace."""
    team = TeamFolder(folder, {"one": {}}, {"one": [say("first"), say("second"), say("third")]})
    assert team.run(runs_dir=team.workspace / runs).outcome == "cycles_used_up"
    return team


def test_moved_project_is_not_resumed_in_checkout_at_old_path(tmp_path: Path) -> None:
    team, moved = ran(tmp_path, "state/runs"), tmp_path / "moved"
    team.workspace.rename(moved)
    shutil.copytree(moved, team.workspace, symlinks=True)
    before = sorted(team.workspace.rglob("*"))
    with pytest.raises(UsageError, match=r"its folder of runs was moved from .*workspace/state/runs") as caught:
        resume("latest", runs_dir=moved / "state/runs", changes={"cycles": 2})
    assert f"--workspace {moved}`" in caught.value.hint
    assert sorted(team.workspace.rglob("*")) == before
    changes: ResumeKeywords = {"cycles": 2, "workspace": moved}
    report = resume("latest", runs_dir=moved / "state/runs", changes=changes)
    assert read(report.folder / "run.json")["workspace"] == str(moved)
    assert resume("latest", runs_dir=moved / "state/runs", changes={"cycles": 3}).totals["turns"] == 3


def test_other_folder_of_same_name_requires_explicit_workspace(tmp_path: Path) -> None:
    """A run resumes in it only if the workspace is given."""
    team = ran(tmp_path, "../runs")
    team.workspace.rename(tmp_path / "moved")
    with pytest.raises(UsageError, match="does not exist") as caught:
        team.resume(cycles=2)
    assert "--workspace DIR`" in caught.value.hint
    team.workspace.mkdir()
    with pytest.raises(UsageError, match="another folder of the same name"):
        team.resume(cycles=2)
    assert team.resume(cycles=2, workspace=team.workspace).totals["turns"] == 2
    assert team.resume(cycles=3).totals["turns"] == 3


def test_edited_workspace_is_resumed_in(tmp_path: Path) -> None:
    team = ran(tmp_path, "../runs")
    (team.workspace / "new.txt").write_text("an edit between two sessions")
    assert team.resume(cycles=2).totals["turns"] == 2
