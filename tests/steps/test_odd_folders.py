"""Folders whose names Codex's sandbox takes for patterns: refused before anything is paid for, or no obstacle."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from tests.support.teams import TeamFolder, read, say
from tests.support.tools import EDITOR, command

ODD = ["a[1]", "what?", "all*", "b]"]


@pytest.mark.parametrize("name", ODD)
def test_workspace_named_like_pattern_is_refused_before_start(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    team = TeamFolder(folder, {"writer": EDITOR}, {"writer": [say()]})
    with pytest.raises(UsageError, match="cannot protect a path with") as refused:
        team.run()
    assert refused.value.exit_code == 2
    assert not team.runs.exists()


def test_so_is_a_folder_of_runs(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"writer": EDITOR}, {"writer": [say()]})
    with pytest.raises(UsageError, match=r"runs\[1\]: Codex's sandbox cannot"):
        team.run(runs_dir=tmp_path / "runs[1]")


@pytest.mark.real
def test_unprotectable_subfolder_ends_run_before_first_turn(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"writer": EDITOR}, {"writer": [say()]})
    (team.workspace / "app/[slug]/.git").mkdir(parents=True)
    report = team.run()
    assert (report.exit_code, team.turns()) == (2, [])
    assert "[slug]/.git: Codex's sandbox cannot protect" in report.reason


@pytest.mark.real
def test_folder_named_like_pattern_works_without_sandbox(tmp_path: Path) -> None:
    folder = tmp_path / "a[1]"
    folder.mkdir()
    assert TeamFolder(folder, {"reader": {}}, {"reader": [say()]}).run().outcome == "cycles_used_up"


@pytest.mark.long
def test_other_odd_names_work(tmp_path: Path) -> None:
    """No short test lets a role and its tests work in a folder with a shell's special characters."""
    folder = tmp_path / "it's a{1} ü!#&;$(x)"
    folder.mkdir()
    test = {"path": "test_it.py", "content": "def test_it():\n    pass\n"}
    play = {"steps": [command("echo x > made.txt; echo evil > ../runs/x"), say(files=[test])]}
    team = TeamFolder(folder, {"writer": EDITOR}, {"writer": [play]})
    report = team.run(run_tests=True)
    assert (team.workspace / "made.txt").read_text() == "x\n"
    assert not (team.runs / "x").exists()
    assert read(report.folder / "tests/001/result.json")["status"] == "passed"
