"""Promise 10: after any kind of run, the project's own tools find exactly what they found before it.

Costs: real runs, two of them looked at by pytest, unittest, mypy and ruff.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codex_multi_role import RunReport
from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle import running
from codex_multi_role.workspace.manifest import OWNER, Manifest, all_places
from codex_multi_role.workspace.removal import collect_abandoned
from tests.support.console import console
from tests.support.teams import Record, TeamFolder, say, with_flow
from tests.support.workspaces import collectable, commit_all, git, write_files

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

WRITER: Record = {"behaviors": {"apply_files": True}}
TEST = (
    "import os\nimport unittest\n\n\nclass TestIt(unittest.TestCase):\n    def test_it(self) -> None:\n        pass\n"
)
TOOLS = {
    "pytest": (["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-o", "norecursedirs="], "1 passed"),
    "unittest": (["discover", "-v"], "Ran 1 test "),
    "mypy": (["--no-site-packages", "--follow-imports=skip", "--cache-dir=/dev/null", "."], " 2 source files\n"),
    "ruff": (["check", "--no-cache", "--isolated", "--no-respect-gitignore", "--statistics", "."], "1\tF401"),
}
"""The arguments of each, with which it walks hidden and ignored folders too, and what it says of the project."""
STEPS: dict[str, list[Record]] = {
    "plain": [{"id": "one", "ask": "one"}],
    "parked": [{"id": "one", "ask": "one"}, {"id": "person", "review": "Is it good?"}],
    **{
        merge: [{"id": "one", "ask": "one", "for_each": [1, 2], "isolate": {"merge": merge}}]
        for merge in ("all", "none")
    },
    "measured": [
        {"id": "one", "check": "coverage", "with": {"target": "calc.py", "tests": "test_it.py"}},
        {"id": "two", "check": "flaky", "with": {"tests": "test_it.py", "runs": 2}},
    ],
}


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def _project(folder: Path) -> TeamFolder:
    """A project with a test, in a repository, whose runs are in it."""
    plays = [say(files=[{"path": f"note{number}.txt", "content": "x\n"}]) for number in range(2)]
    team = TeamFolder(folder, {"one": WRITER}, {"one": plays})
    write_files(team.workspace, {"test_it.py": TEST, "calc.py": "ONE: int = 1\n"})
    commit_all(team.workspace)
    return team


def _run(team: TeamFolder, kind: str, **changes: object) -> RunReport:
    return with_flow(team, {"steps": STEPS[kind]}).run(flow="own", runs_dir=team.workspace / "runs", **changes)


def test_tools_find_the_same_project_after_runs(tmp_path: Path) -> None:
    """Also beside a role's test that was not merged. Each tool takes a second: what it finds is its promise."""
    team = _project(tmp_path)
    assert _run(team, "none").exit_code == 0
    assert _run(team, "all", worktree=True).exit_code == 0
    for tool, (arguments, words) in TOOLS.items():
        command = [sys.executable, "-B", "-m", tool, *arguments]
        done = subprocess.run(command, cwd=team.workspace, capture_output=True, text=True, timeout=60, check=False)
        assert words in done.stdout + done.stderr, (tool, done)


@pytest.mark.parametrize("kind", [*[*STEPS][:-1], pytest.param("measured", marks=pytest.mark.extensions)])
def test_run_folder_has_nothing_to_collect(tmp_path: Path, kind: str) -> None:
    team = _project(tmp_path)
    _run(team, kind, worktree=kind == "plain")
    assert collectable(team.workspace / "runs") == []


def test_copies_are_private_and_outside_the_project(tmp_path: Path) -> None:
    report = _run(_project(tmp_path), "none")
    place = Manifest(report.folder / "worktrees").place
    assert place.parent == tmp_path / "state/codex-multi-role/copies"
    assert [folder.stat().st_mode & 0o777 for folder in (place.parent, place)] == [0o700, 0o700]
    assert sorted(path.name for path in place.glob("*/copy/workspace/note*.txt")) == ["note0.txt", "note1.txt"]


def test_run_without_a_place_for_copies_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = _project(tmp_path)
    for state, why in ((team.workspace / "state", "inside the workspace"), (Path("/dev/null/x"), "Not a directory")):
        monkeypatch.setenv("XDG_STATE_HOME", str(state))
        with pytest.raises(UsageError, match=why) as error:
            _run(team, "all")
        assert "XDG_STATE_HOME" in error.value.hint
        assert not (team.workspace / "runs").exists()
        assert _run(team, "plain").exit_code == 0  # it needs no copies
        git(team.workspace, "clean", "-fdxq", "-e", "roles")


def test_two_projects_may_use_the_same_run_id(tmp_path: Path) -> None:
    first, second = _project(tmp_path / "a"), _project(tmp_path / "b")
    roots = [Manifest(_run(each, "none", run_id="same").folder / "worktrees").place for each in (first, second)]
    assert roots[0] != roots[1]
    assert [len(list(root.glob("*/copy/workspace/note*.txt"))) for root in roots] == [2, 2]


def test_copies_of_deleted_runs_are_removed(tmp_path: Path) -> None:
    """Those of items by the next run that makes copies; a worktree, in which people may work, by `gc` alone."""
    team = _project(tmp_path)
    items, worktree = _run(team, "none"), _run(team, "plain", worktree=True)
    places = [Manifest(each.folder / "worktrees").place for each in (items, worktree)]
    for report in (items, worktree):
        report.folder.rename(tmp_path / report.run_id)
    other = Manifest(_run(_project(tmp_path / "other"), "none").folder / "worktrees").place
    assert [place.exists() for place in (*places, other)] == [False, True, True]
    said = console("gc", folder=team.workspace).stdout
    assert said == f"removed: {worktree.run_id} copies: its run folder was deleted ({places[1]})\n"
    assert list(all_places().iterdir()) == [other]


@pytest.mark.parametrize("kind", ["all", "plain"])
def test_copies_of_a_run_at_work_stay(tmp_path: Path, kind: str) -> None:
    """Also if its folder cannot be seen, as from another container with the same home."""
    team = with_flow(_project(tmp_path), {"steps": STEPS[kind]})

    def collect(event: Record) -> None:
        if event["type"] == "turn_started":
            [place] = all_places().iterdir()
            (place / OWNER).write_text("/elsewhere/runs/r1/worktrees")
            assert not list(collect_abandoned())

    report = running.run(team.options(flow="own", worktree=kind == "plain"), collect)
    assert report.exit_code == 0, report.reason
    shutil.rmtree(report.folder)
    assert [copies.action for _, copies in collect_abandoned()] == ["removed"]


def test_run_folder_that_was_moved_keeps_its_copies(tmp_path: Path) -> None:
    report = _run(_project(tmp_path), "none")
    before = Manifest(report.folder / "worktrees").place
    there = report.folder.rename(tmp_path / "moved") / "worktrees"
    assert Manifest(there).place == before
    _run(_project(tmp_path / "other"), "none")
    assert before.exists()
