"""Runs in a git worktree of their own: what the user sees, and what stays as it was.

Costs: each case is a run in a repository, with git worktrees.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import RunReport
from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.definitions import load_definitions
from codex_multi_role.lifecycle.preparing import differences
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace.git_settings import FOLDER
from codex_multi_role.workspace.manifest import OF_RUN, Manifest
from tests.support.console import console
from tests.support.forks import forked
from tests.support.teams import WRITER, Record, TeamFolder, read, say, warnings, with_flow
from tests.support.tools import EDITOR, command
from tests.support.workspaces import commit_all, contents, everything, git, write_files, write_program

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

SETUP = "mkdir -p .venv; echo made > .venv/made; cat .env"


def _team(folder: Path, plays: list[dict[str, Any]] | None = None) -> TeamFolder:
    """One writer, in a repository with a file that is not committed."""
    files = [{"path": "new.txt", "content": "new\n"}, {"path": "a.txt", "content": "b\n"}]
    team = TeamFolder(folder, {"one": WRITER}, {"one": plays or [say(files=files)]})
    write_files(team.workspace, {"a.txt": "a\n", ".gitignore": ".env\n.venv\n"})
    commit_all(team.workspace)
    write_files(team.workspace, {"dirty.txt": "dirty\n", ".env": "KEY=1\n"})
    return team


def _worktree(report: RunReport) -> Path:
    return Manifest(report.folder / "worktrees").place / OF_RUN / "copy" / "workspace"


def _refused(team: TeamFolder, **changes: Any) -> UsageError:
    """Before the run has a folder."""
    with pytest.raises(UsageError) as error:
        team.run(**changes)
    assert not team.runs.exists() or not list(team.runs.glob("*/"))
    return error.value


def test_run_in_a_worktree_leaves_the_users_tree(tmp_path: Path) -> None:
    team = _team(tmp_path)
    before = contents(team.workspace)
    report = team.run(branch="attempt")
    root, record = _worktree(report), read(report.folder / "run.json")
    assert contents(team.workspace) == before
    assert (root / "new.txt").read_text() == "new\n"
    assert not (root / "dirty.txt").exists()
    assert (record["workspace"], record["source_workspace"]) == (str(root), str(team.workspace))
    assert [file["path"] for file in record["files"]] == ["a.txt", "new.txt"]
    assert warnings(team.events) == ["the workspace has 1 uncommitted change, which the run does not see"]
    assert git(root, "branch", "--show-current") == "attempt\n"


def test_python_that_imports_the_users_tree_is_a_warning(tmp_path: Path) -> None:
    """As an editable install does; not if a setup can make another environment."""
    team = _team(tmp_path)
    python = team.workspace / ".venv/bin/python"
    write_files(python.parents[1], {"pyvenv.cfg": ""})
    write_program(python, f'#!/bin/sh\nPYTHONPATH={team.workspace} exec {sys.executable} "$@"\n')
    definitions = load_definitions(team.options(worktree=True, run_tests=True))
    [told] = [each for each in differences(definitions, RunFolder(team.runs / "r1")) if "uncommitted" not in each]
    assert told.startswith(f"the Python of the tests ({python}) imports code from {team.workspace} and not from")
    definitions = replace(definitions, options=definitions.options.changed(workspace_setup="true"))
    assert len(differences(definitions, RunFolder(team.runs / "r1"))) == 1


def test_worktree_that_cannot_be_made_is_refused_before_the_run(tmp_path: Path) -> None:
    team = _team(tmp_path)
    assert "the branch main already exists" in str(_refused(team, branch="main"))
    assert "is outside the workspace" in str(_refused(team, workspace_copy=("../x",)))
    shutil.rmtree(team.workspace / ".git")
    assert "is not in a git repository" in str(_refused(team, worktree=True))
    assert "is not in a git repository" in str(_refused(team, branch="attempt"))


def test_setup_runs_before_the_first_turn(tmp_path: Path) -> None:
    team = _team(tmp_path)
    report = team.run(worktree=True, workspace_copy=(".env",), workspace_setup=SETUP)
    root = _worktree(report)
    assert report.outcome == "cycles_used_up", report.reason
    assert (root / ".venv/made").read_text() == "made\n"
    assert (report.folder / "worktrees/run/setup_output.txt").read_text() == "KEY=1\n"
    assert [file["path"] for file in read(report.folder / "run.json")["files"]] == ["a.txt", "new.txt"]


def test_failed_setup_ends_the_run_without_a_turn_until_resumed(tmp_path: Path) -> None:
    team = _team(tmp_path)
    report = team.run(worktree=True, workspace_setup="echo no such index; exit 7")
    assert (report.exit_code, report.outcome) == (3, "setup_failed")
    assert "`echo no such index; exit 7` failed with exit code 7" in report.reason
    assert "no such index" in report.reason
    assert "setup_output.txt" in report.hint
    assert team.turns() == []
    assert team.of_type("processes_starting") == []
    resumed = team.resume(workspace_setup="true")
    assert (resumed.outcome, resumed.folder) == ("cycles_used_up", report.folder)
    assert [each["roles"] for each in team.of_type("processes_starting")] == [["one"]]
    assert (_worktree(report) / "new.txt").exists()


def test_setup_of_copies_is_tried_before_the_first_turn(tmp_path: Path) -> None:
    steps = [{"ask": "one"}, {"id": "two", "ask": "one", "isolate": "worktree"}]
    team = with_flow(_team(tmp_path, [say()] * 4), {"steps": steps, "workspace": {"setup": "exit 7"}})
    report = team.run(flow="own", workspace_setup="true")
    assert (report.exit_code, report.outcome, team.turns()) == (3, "setup_failed", [])
    assert git(team.workspace, "worktree", "list").count("\n") == 1


def _fan(*items: int) -> Record:
    """A step in copies, which stay because the run does not succeed."""
    fan = {"id": "two", "ask": "one", "for_each": [*items], "isolate": "worktree", "prompt": "{{ item }}"}
    return {**fan, "next": [{"end": "looked_at", "exit": 1}]}


def test_every_copy_is_prepared_by_one_setup(tmp_path: Path) -> None:
    """The flow's setup wins, the copied files are those of the options; nothing of it is merged."""
    files = [[{"path": f"new{number}.txt", "content": "x"}] for number in range(3)]
    team = _team(tmp_path, [say(files=each) for each in files])
    with_flow(team, {"steps": [_fan(1, 2, 3)], "workspace": {"setup": SETUP}})
    report = team.run(flow="own", workspace_copy=(".env",), workspace_setup="exit 7")
    assert report.outcome == "looked_at", report.reason
    copies, place = report.folder / "worktrees", Manifest(report.folder / "worktrees").place
    assert [(place / f"two.1.{each}/copy/workspace/.venv/made").exists() for each in range(3)] == [True] * 3
    reused = [(copies / f"two.1.{each}/setup_output.txt").read_text()[:15] for each in range(3)]
    assert reused == ["Nothing was run"] * 3
    assert {path for path in contents(team.workspace) if path.startswith("new")} == {f"new{n}.txt" for n in range(3)}
    assert not (team.workspace / ".venv").exists()
    assert not (place / ".setup").exists()


def test_resumed_run_continues_in_its_worktree_even_if_deleted(tmp_path: Path) -> None:
    """With its environment."""
    team = _team(tmp_path, [say(files=[{"path": "new.txt", "content": "new\n"}]), say(status="DONE")])
    team.roles = {"one": {"behaviors": {"apply_files": True, "can_finish": True}}}
    team.write_catalog()
    before = contents(team.workspace)
    report = team.run(worktree=True, branch="attempt", workspace_copy=(".env",), workspace_setup=SETUP)
    assert report.exit_code == 1
    root = _worktree(report)
    shutil.rmtree(root.parent)
    resumed = team.resume(cycles=2)
    assert resumed.exit_code == 0, resumed.reason
    assert (root / "new.txt").read_text() == "new\n"
    assert (root / ".venv/made").exists()
    assert git(root, "branch", "--show-current") == "attempt\n"
    assert contents(team.workspace) == before
    assert read(report.folder / "run.json")["source_workspace"] == str(team.workspace)


def test_resume_in_another_folder_leaves_the_worktree(tmp_path: Path) -> None:
    team = _team(tmp_path, [say(), say()])
    team.run(worktree=True, max_turns=1, cycles=2)
    report = team.resume(workspace=team.workspace, max_turns=3)
    record = read(report.folder / "run.json")
    assert (record["workspace"], record.get("source_workspace")) == (str(team.workspace), None)


@pytest.mark.sample("gc")
def test_gc_removes_the_worktree_of_an_ended_run(tmp_path: Path) -> None:
    team = _team(tmp_path)
    report = team.run(worktree=True, workspace_copy=(".env",))
    told = console("gc", folder=tmp_path)
    assert told.stdout.startswith(f"removed: {report.run_id} run: its files are recorded in the run folder")
    assert git(team.workspace, "worktree", "list").count("\n") == 1
    fork = forked(team, "team:1")
    assert fork.outcome == "cycles_used_up", fork.reason
    record = read(fork.folder / "run.json")
    assert Path(record["workspace"]).parent == team.workspace.parent
    assert ("source_workspace" in record, record["options"]["worktree"]) == (False, False)


@pytest.mark.usefixtures("real_codex")
def test_roles_cannot_write_what_steers_runs_of_the_users_tree(tmp_path: Path) -> None:
    """The team and the runs are in the repository: in the worktree the team is off limits as in the workspace."""
    paths = ("roles/extra.yaml", "playbook.yaml", "fine.txt")
    files = [{"path": path, "content": "x: 1\n"} for path in paths]
    typed = command("echo 1 > own.txt; echo 1 > roles/extra.yaml; echo 1 > playbook.yaml; true")
    team = TeamFolder(tmp_path, {"one": EDITOR}, {"one": [{"steps": [typed, say(files=files)]}]})
    (tmp_path / ".gitignore").write_text("/runs\n")
    commit_all(tmp_path)
    report = team.run(worktree=True, workspace=tmp_path)
    applied = read(report.folder / "one/turn_001/applied_files.json")
    assert [(each["path"], each["status"]) for each in applied] == [
        ("roles/extra.yaml", "SKIPPED"),
        ("playbook.yaml", "SKIPPED"),
        ("fine.txt", "WROTE"),
    ]
    assert [file["path"] for file in read(report.folder / "run.json")["files"]] == ["fine.txt", "own.txt"]


@pytest.mark.usefixtures("real_codex")
def test_commands_write_to_the_worktree_only(tmp_path: Path) -> None:
    """Commands of a role and of a check: not to the run folder around it, git's folder or the user's tree."""
    script = (
        "echo 1 >> in.txt; "
        "for at in ../out.txt ../../../../out.txt {0}/out.txt {0}/.git/out.txt; do echo 1 > $at; done; "
        "git config core.hooksPath evil; git branch evil; echo gitdir: evil > .git; true"
    )
    team = _team(tmp_path, [])
    typed = script.format(team.workspace)
    team.write_catalog(one=EDITOR)
    team.write_plays(one=[{"steps": [command(typed), say()]}])
    before = everything(team.workspace / ".git")
    check = {"id": "write", "check": "command", "with": {"argv": ["sh", "-c", typed]}}
    report = with_flow(team, {"steps": [{"ask": "one"}, check]}).run(flow="own", worktree=True)
    assert report.exit_code == 0, report.reason
    assert (_worktree(report) / "in.txt").read_text() == "1\n1\n"
    assert list(tmp_path.rglob("out.txt")) == []
    changed = {path for path, content in everything(team.workspace / ".git").items() if before.get(path) != content}
    assert {Path(path).relative_to(team.workspace).parts[1] for path in changed} == {"worktrees", FOLDER}
    assert git(_worktree(report), "rev-parse", "HEAD") == git(team.workspace, "rev-parse", "HEAD")
