"""Files a role submits, files it changes itself, and the tests that follow.

Costs: each case is a run with tests after its turns.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from codex_multi_role.presentation.recorded import changed_files
from codex_multi_role.run_folder import RunFolder
from tests.support.teams import Record, TeamFolder, read, say, with_flow
from tests.support.tests_here import real_pytest, tests_here

__all__ = ["real_pytest", "tests_here"]

pytestmark = [pytest.mark.usefixtures("scripted_codex", "tests_here"), pytest.mark.real]

WRITER: Record = {"behaviors": {"apply_files": True}, "prompt_flags": {"allow_file_suggestions": True}}
GOOD_TEST = {"path": "test_sum.py", "content": "def test_sum():\n    assert 1 + 1 == 2\n"}
BAD_TEST = {"path": "test_sum.py", "content": "def test_sum():\n    assert 1 + 1 == 3\n"}
ADD_FILE = "*** Begin Patch\n*** Add File: made.txt\n+by the role itself\n*** End Patch"


def writer(folder: Path, *files: object, then: Record | None = None) -> TeamFolder:
    roles = {"writer": WRITER, "reader": {"behaviors": {"can_finish": True}}}
    return TeamFolder(folder, roles, {"writer": [say(files=list(files))], "reader": [then or say(status="DONE")]})


def take_back(folder: Path, workspace: Path) -> None:
    command = ["git", "apply", "-R", str(folder / "changes.patch")]
    subprocess.run(command, cwd=workspace, check=True, capture_output=True)


def test_files_are_written_and_the_patch_takes_them_back(tmp_path: Path) -> None:
    team = writer(tmp_path, {"path": "src/a.txt", "content": "new\n"}, {"path": "old.txt", "content": "changed\n"})
    (team.workspace / "old.txt").write_text("as it was\n")
    subprocess.run(["git", "init", "-q"], cwd=team.workspace, check=True)
    report = team.run()
    assert (team.workspace / "src/a.txt").read_text() == "new\n"
    applied = read(report.folder / "writer/turn_001/applied_files.json")
    assert [(entry["path"], entry["status"], entry["bytes"]) for entry in applied] == [
        ("src/a.txt", "WROTE", 4),
        ("old.txt", "WROTE", 8),
    ]
    take_back(report.folder / "writer/turn_001", team.workspace)
    assert (team.workspace / "old.txt").read_text() == "as it was\n"
    assert not (team.workspace / "src/a.txt").exists()


def test_unsafe_paths_are_not_written(tmp_path: Path) -> None:
    """Paths outside the workspace, in .git or in the runs folder are skipped."""
    paths = ["../out.txt", str(tmp_path / "abs.txt"), ".git/hooks/pre-commit", "runs/x.txt", "link/x.txt"]
    team = writer(tmp_path, *({"path": path, "content": "x"} for path in paths), {"path": "ok.txt", "content": "x"}, 3)
    (team.workspace / "link").symlink_to(tmp_path)
    report = team.run(runs_dir=team.workspace / "runs")
    applied = read(report.folder / "writer/turn_001/applied_files.json")
    assert [entry.get("reason") for entry in applied] == ["unsafe path"] * 5 + [None, "invalid entry"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["playbook.yaml", "roles", "workspace"]
    assert sorted(path.name for path in team.workspace.iterdir()) == ["link", "ok.txt", "runs"]


@pytest.mark.usefixtures("real_codex")
def test_changes_a_role_makes_itself_are_in_the_patch_too(tmp_path: Path) -> None:
    entry = {"steps": [{"patch": ADD_FILE}, say(files=[{"path": "handed.txt", "content": "in\n"}])]}
    roles = {"writer": {**WRITER, "prompt_flags": {"allow_write": True}}}
    team = TeamFolder(tmp_path, roles, {"writer": [entry]})
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)  # names in a patch are relative to its top
    report = team.run()
    assert (team.workspace / "made.txt").read_text() == "by the role itself\n"
    assert changed_files(RunFolder(report.folder), {}) == ["made.txt", "handed.txt"]
    take_back(report.folder / "writer/turn_001", team.workspace)
    assert list(team.workspace.iterdir()) == []


def test_done_with_failing_tests_is_not_success(tmp_path: Path) -> None:
    report = writer(tmp_path, BAD_TEST).run(run_tests=True)
    assert (report.status, report.outcome, report.exit_code) == ("ended", "tests_failed", 1)
    assert "tests/001" in report.reason


@pytest.mark.usefixtures("real_pytest")
def test_done_with_passing_tests_is_success_and_keeps_results(tmp_path: Path) -> None:
    """The result of each test run is kept, and the next role gets it."""
    roles = {"writer": WRITER, "reader": {"behaviors": {"can_finish": True}}}
    plays = {
        "writer": [say(files=[BAD_TEST]), say(files=[GOOD_TEST])],
        "reader": [say(status="CONTINUE"), say(status="DONE")],
    }
    report = TeamFolder(tmp_path, roles, plays).run(run_tests=True, cycles=2)
    assert (report.outcome, report.exit_code) == ("done", 0)
    assert "assert 1 + 1 == 3" in (report.folder / "reader/turn_001/prompt.txt").read_text()
    assert (report.folder / "tests/001/pytest_rc.txt").read_text().strip() == "1"
    assert [read(report.folder / f"tests/00{number}/result.json")["status"] for number in (1, 2)] == [
        "failed",
        "passed",
    ]


def test_workspace_without_tests_says_so_and_does_not_fail(tmp_path: Path) -> None:
    report = writer(tmp_path, {"path": "a.txt", "content": "x"}).run(run_tests=True)
    assert read(report.folder / "tests/001/result.json")["status"] == "no tests"
    assert report.exit_code == 0


@pytest.mark.usefixtures("real_codex", "real_pytest")
def test_roles_and_tests_cannot_write_to_runs_folder(tmp_path: Path) -> None:
    forged = "*** Begin Patch\n*** Add File: runs/forged.txt\n+passed\n*** End Patch"
    attempt = {"cmd": "echo passed > runs/forged.txt; echo fine > fine.txt"}
    code = "def test_it():\n    open('fine_too.txt', 'w').close()\n    open('runs/forged.txt', 'w').close()\n"
    steps = [{"call": "exec_command", "arguments": attempt}, {"patch": forged}]
    entry = {"steps": [*steps, say(files=[{"path": "test_it.py", "content": code}])]}
    team = TeamFolder(tmp_path, {"writer": {**WRITER, "prompt_flags": {"allow_write": True}}}, {"writer": [entry]})
    report = team.run(run_tests=True, runs_dir=team.workspace / "runs")
    assert sorted(path.name for path in team.workspace.iterdir()) == ["fine.txt", "fine_too.txt", "runs", "test_it.py"]
    assert not (team.workspace / "runs/forged.txt").exists()
    assert "Read-only file system" in (report.folder / "writer/turn_001/items_text.md").read_text()
    assert read(report.folder / "tests/001/result.json")["failed"] == 1
    assert [(event["method"], event["decision"]) for event in team.of_type("approval")] == [
        ("item/fileChange/requestApproval", "decline")
    ]


HOPELESS = ["x" * 256, "x" * 5000, "é" * 128, "a/" * 2500 + "b", "nul\0.txt", "d/" + "y" * 300, "d/", ""]


@pytest.mark.parametrize("isolated", [False, True])
def test_invalid_path_is_skipped_and_run_continues(tmp_path: Path, isolated: bool) -> None:
    """No file can have such a path: it is empty, too long, contains NUL or ends with a slash."""
    files = [{"path": path, "content": "x"} for path in [*HOPELESS, "fine.txt"]]
    roles: dict[str, Record] = {"writer": {"behaviors": {"apply_files": True}, "protect": ["tests/**"]}}
    step: Record = {"id": "go", "ask": "writer", **({"isolate": "worktree"} if isolated else {})}
    team = with_flow(
        TeamFolder(tmp_path, roles, {"writer": [{"text": json.dumps({"summary": "x", "files": files})}]}),
        {"steps": [step]},
    )
    report = team.run(flow="own")
    assert report.exit_code == 0, report
    applied = read(report.folder / "writer/turn_001/applied_files.json")
    assert [entry.get("reason") for entry in applied] == ["invalid path"] * len(HOPELESS) + [None]
    assert (team.workspace / "fine.txt").read_text() == "x"
