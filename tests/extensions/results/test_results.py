"""`diff` and `apply`, given as a user gives them, and as Python functions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import Run, RunNotFound, UsageError, load_run
from codex_multi_role.extensions.results import diff, export
from tests.support.console import at_terminal, console
from tests.support.histories import History
from tests.support.recorded_runs import make_run
from tests.support.scripted_codex import codex_replaced
from tests.support.teams import WRITER, Record, TeamFolder, say
from tests.support.workspaces import commit_all, git, write_files

pytestmark = pytest.mark.real

START = {"a.txt": "one\ntwo\n", "b.txt": "b\n"}


@pytest.fixture
def history(tmp_path: Path) -> History:
    made = History(tmp_path, dict(START))
    made.turn("writer", {"a.txt": "one\n2\n"})
    made.between({"b.txt": "mine\n"})
    made.turn("tester", {"new.txt": "\x1b[2Jnew\n"})
    made.turn("writer", {"a.txt": "1\n2\n"})
    made.ended()
    return made


def test_whole_diff_rebuilds_the_workspace(history: History, tmp_path: Path) -> None:
    (folder := tmp_path / "other").mkdir()
    write_files(folder, dict(START))
    patch = console("diff", folder=tmp_path).stdout
    subprocess.run(["git", "apply"], cwd=folder, input=patch, text=True, check=True)
    for name in ("a.txt", "b.txt", "new.txt"):
        assert (folder / name).read_bytes() == (history.workspace / name).read_bytes()


@pytest.mark.usefixtures("history")
def test_diff_of_a_role_and_of_a_turn(tmp_path: Path) -> None:
    of_writer = console("diff", "--role", "writer", folder=tmp_path).stdout
    assert [line for line in of_writer.splitlines() if line.startswith("writer")] == [
        "writer, turn 1",
        "writer, turn 2",
    ]
    assert "new.txt" not in of_writer
    stat = console("diff", "--role", "writer", "--turn", "2", "--stat", folder=tmp_path).stdout
    assert " a.txt | 2 +-\n" in stat
    for arguments, words in (
        (["--turn", "1"], "several roles have a turn 1: tester, writer"),
        (["--turn", "7"], "turn 7 changed no files"),
        (["--role", "judge"], "role judge changed no files"),
    ):
        done = console("diff", *arguments, folder=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr


@pytest.mark.usefixtures("history")
def test_diff_on_a_terminal_has_colours_and_steers_nothing(tmp_path: Path) -> None:
    with at_terminal([sys.executable, "-m", "codex_multi_role", "diff"], tmp_path) as session:
        assert session.end() == 0
    assert "\x1b[32m+[2Jnew\x1b[0m" in session.drawn


def test_result_is_applied_to_another_checkout(history: History, tmp_path: Path) -> None:
    (folder := tmp_path / "other").mkdir()
    write_files(folder, dict(START))
    done = console("apply", "--to", "other", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "changed a.txt\nchanged b.txt\nchanged new.txt\n")
    assert (folder / "a.txt").read_text() == "1\n2\n"
    assert f"nothing to do: {folder} has these changes" in console("apply", "--to", "other", folder=tmp_path).stdout
    again = console("apply", "--to", "workspace", "--json", folder=tmp_path)
    assert json.loads(again.stdout) == {"to": str(history.workspace), "paths": [], "marked": [], "conflicts": []}


@pytest.mark.usefixtures("history")
def test_conflicts_are_named_with_what_helps(tmp_path: Path) -> None:
    (folder := tmp_path / "other").mkdir()
    write_files(folder, {**START, "a.txt": "mine\n"})
    done = console("apply", "--to", "other", folder=tmp_path)
    assert done.returncode == 1
    assert done.stdout == "conflict: a.txt: you and the run changed it\nnothing was written: 1 conflict\n"
    assert "--3way" in done.stderr
    marked = console("apply", "--to", "other", "--3way", folder=tmp_path)
    assert marked.returncode == 1
    assert "a.txt: you and the run changed it; both versions are in it, between markers" in marked.stdout
    assert "<<<<<<< yours\nmine\n" in (folder / "a.txt").read_text()


@pytest.mark.sample("blame")
def test_blame_names_run_role_and_turn(history: History, tmp_path: Path) -> None:
    assert console(
        "blame", "a.txt", folder=history.workspace, variables={"CODEX_MULTI_ROLE_RUNS_DIR": str(tmp_path / "runs")}
    ).stdout == ("first  writer 2  1  1\nfirst  writer 1  2  2\n")
    assert console("blame", "workspace/b.txt", folder=tmp_path).stdout == "first  between turns (team)  1  mine\n"
    write_files(history.workspace, {"a.txt": "1\n2\nmine\n"})
    lines = json.loads(console("blame", "a.txt", "--json", folder=tmp_path).stdout)
    assert [(line["line"], line["run"], line["role"], line["turn"]) for line in lines] == [
        (1, "first", "writer", 2),
        (2, "first", "writer", 1),
        (3, "", "", 0),
    ]
    assert lines[0]["prompt"].endswith("runs/first/writer/turn_002/prompt.txt")
    for name in ("nowhere.py", "."):
        wrong = console("blame", name, folder=history.workspace, variables={"CODEX_MULTI_ROLE_RUNS_DIR": "../runs"})
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert f"{name} is not a file in the latest recorded state" in wrong.stderr


def test_commands_work_with_the_runs_in_the_workspace(tmp_path: Path) -> None:
    history = History(tmp_path, {"a.txt": "1\n"}, {}, inside=True)
    history.turn("writer", {"a.txt": "2\n"})
    history.ended()
    write_files(elsewhere := tmp_path / "elsewhere", {"a.txt": "1\n"})
    assert console("blame", "a.txt", folder=history.workspace).stdout == "first  writer 1  1  2\n"
    for arguments in (["diff"], ["export", "--branch", "x"], ["apply", "--to", str(elsewhere)]):
        done = console(*arguments, folder=history.workspace)
        assert (done.returncode, done.stderr) == (0, ""), arguments


def test_run_without_states_says_so(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first")
    for command in ("diff", "apply"):
        done = console(command, folder=tmp_path)
        assert done.returncode == 2
        assert "run first recorded no state of the workspace" in done.stderr


def test_branch_is_made_where_the_run_worked(tmp_path: Path) -> None:
    history = History(tmp_path, {}, dict(START))
    history.turn("writer", {"a.txt": "1\n"})
    history.ended()
    done = console("export", "--branch", "agents/x", folder=tmp_path)
    assert done.returncode == 0
    assert re.match(rf"branch agents/x: 1 commit on [0-9a-f]{{12}} in {history.workspace}\n", done.stdout)
    again = console("export", "--branch", "agents/x", "--json", folder=tmp_path)
    exported = json.loads(again.stdout)
    assert (exported["is_new"], len(exported["commits"])) == (False, 1)
    taken = console("export", "--branch", "main", folder=tmp_path)
    assert (taken.returncode, taken.stdout) == (2, "")
    assert "the branch main exists, and is not an earlier export" in taken.stderr


def test_run_that_changed_no_files_makes_no_branch(tmp_path: Path) -> None:
    history = History(tmp_path, dict(START), committed=dict(START))
    history.turn("writer", {"a.txt": START["a.txt"]})
    done = console("export", "--branch", "empty", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"run {history.run.run_id} changed no files" in done.stderr
    assert git(history.workspace, "branch", "--list", "empty") == ""


def test_run_outside_repositories_needs_one(history: History, tmp_path: Path) -> None:
    done = console("export", "--branch", "x", folder=tmp_path)
    assert done.returncode == 2
    assert "run first did not work in a git repository" in done.stderr
    (empty := tmp_path / "empty").mkdir()
    assert "is not in a git repository" in console("export", "--branch", "x", "--repo", "empty", folder=tmp_path).stderr
    subprocess.run(["git", "init", "--quiet"], cwd=empty, check=True)
    assert console("export", "--branch", "x", "--repo", "empty", folder=tmp_path).returncode == 0
    assert git(empty, "show", "x:a.txt") == (history.workspace / "a.txt").read_text()


def writes(text: str) -> Record:
    return say(f"wrote {text}", files=[{"path": "a.txt", "content": f"{text}\n"}])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of three turns of ``one`` in a git repository: they write 1, 2 and 3 to ``a.txt``."""
    team = TeamFolder(tmp_path_factory.mktemp("team"), {"one": WRITER}, {"one": [*map(writes, "123")]})
    commit_all(team.workspace)
    with codex_replaced():
        report = team.run(cycles=3)
    return load_run(report.run_id, runs_dir=team.runs)


def test_diff_is_the_same_for_a_run_and_its_id(recorded: Run) -> None:
    found = diff(recorded)
    assert found.run_id == recorded.run_id
    assert found.text.splitlines()[-1] == "+3"
    assert found == diff("latest", runs_dir=str(recorded.folder.parent))
    of_turns = diff(recorded, role="one")
    assert [patch.partition(b"\n")[0] for patch in of_turns.patches] == [b"one, turn 1", b"one, turn 2", b"one, turn 3"]
    assert diff(recorded, turn=2, stat=True).text.startswith("one, turn 2\n\n a.txt | 2 +-\n")


def test_export_makes_a_commit_per_turn_once(recorded: Run) -> None:
    made = export(recorded, branch="agents/one")
    assert (made.repository, len(made.commits), made.is_new) == (Path(recorded.record["workspace"]), 3, True)
    assert git(made.repository, "show", f"{made.tip}:a.txt") == "3\n"
    again = export("latest", branch="agents/one", repo=str(made.repository), runs_dir=recorded.folder.parent)
    assert (again.commits, again.is_new) == (made.commits, False)


def test_missing_run_and_wrong_arguments_are_of_one_family(recorded: Run, tmp_path: Path) -> None:
    wrong: Any = 7
    with pytest.raises(RunNotFound):
        diff("2026", runs_dir=tmp_path)
    with pytest.raises(UsageError, match="run must be a recorded run or its id, not 7"):
        export(wrong, branch="x")
    with pytest.raises(UsageError, match="role two changed no files"):
        diff(recorded, role="two")
    with pytest.raises(UsageError, match="is not in a git repository"):
        export(recorded, branch="x", repo=tmp_path)
