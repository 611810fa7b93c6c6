"""Changed lines with who wrote them, the texts of commits, and where the history of a run is: bounded, no secrets."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codex_multi_role import fork
from codex_multi_role.extensions.results.changed_lines import (
    BEFORE,
    BETWEEN,
    MOST_BYTES,
    MOST_FILES,
    MOST_LINES,
    ChangedFiles,
)
from codex_multi_role.extensions.results.commit_texts import inert
from codex_multi_role.extensions.results.exporting import export_branch, start_of
from codex_multi_role.extensions.results.run_history import history_of
from codex_multi_role.run_folder import Beginning, RunFolder, inherit
from codex_multi_role.workspace import Snapshots, Workspace
from tests.support.console import console
from tests.support.histories import History
from tests.support.teams import WRITER, TeamFolder, say, with_flow
from tests.support.workspaces import commit_all, git

pytestmark = pytest.mark.real

SECRET = "ghp_0123456789abcdefghij0123456789abcdef"


def test_lines_lead_to_the_turns_that_wrote_them(tmp_path: Path) -> None:
    history = History(tmp_path, {"a.txt": "1\n"})
    history.turn("writer", {"a.txt": f"1\n{SECRET}\n", "gone.txt": "x\n"})
    history.between({"a.txt": f"1\n{SECRET}\n3\n", "gone.txt": None})
    history.ended()
    [file] = ChangedFiles(history.run, ["a.txt", "gone.txt"])
    assert [(line.who, line.turn) for line in file.lines] == [
        (BEFORE, ""),
        ("writer 1", "turn-writer-1"),
        (f"{BETWEEN} (team)", ""),
    ]
    assert SECRET not in file.lines[1].text


def test_lines_and_files_are_bounded(tmp_path: Path) -> None:
    names = [f"{number}.txt" for number in range(MOST_FILES + 2)]
    history = History(tmp_path, {})
    history.turn("writer", dict.fromkeys(names, "x\n" * (MOST_LINES + 3)))
    history.ended()
    files = ChangedFiles(history.run, names)
    shown = list(files)
    assert (len(shown), files.more) == (MOST_FILES, 2)
    assert {(len(file.lines), file.more) for file in shown} == {(MOST_LINES, 3)}


def test_binary_and_large_files_are_left_out(tmp_path: Path) -> None:
    """Git would need seconds for their lines, and the run waits for its report."""
    names = ["large.txt", "image.bin", "a.txt"]
    history = History(tmp_path, {})
    history.turn("writer", {"large.txt": "x\n" * MOST_BYTES, "image.bin": b"a\0\n", "a.txt": "1\n"})
    history.ended()
    assert [file.path for file in ChangedFiles(history.run, names)] == ["a.txt"]


def test_states_that_are_gone_show_nothing(tmp_path: Path) -> None:
    history = History(tmp_path, {"a.txt": "1\n"})
    history.turn("writer", {"a.txt": "2\n"})
    history.ended()
    objects = history.run.snapshots_path / "objects"
    shutil.rmtree(objects)
    objects.mkdir()
    assert list(ChangedFiles(history.run, ["a.txt"])) == []
    shutil.rmtree(history.run.snapshots_path)
    assert not ChangedFiles(history.run, ["a.txt"])


def test_reports_of_roles_refer_to_nothing_of_a_git_host(tmp_path: Path) -> None:
    """Otherwise a commit in the default branch would close issues, notify people and skip tests."""
    told = "Fixes #1, GH-2, o/r#3 and !4 for @somebody; see https://example.com/issues/5. [Skip CI] In C#, a != b"
    harmless = (
        "Fixes # 1, GH 2, o/r# 3 and ! 4 for @ somebody; see https: //example.com/issues/5. [ Skip CI] In C#, a != b"
    )
    assert inert(told) == harmless
    history = History(tmp_path, {}, {})
    history.turn("writer", {"a": "1"}, summary=told)
    repository, below, base = start_of(recorded := history_of(history.run), None)
    made = export_branch(recorded, "agents/run", repository, below, base)
    message = repository.git.run("show", "--no-patch", "--format=%B", made.tip).stdout.decode()
    assert " ".join(message.split()).startswith("writer: Fixes # 1, GH 2, o/r# 3 and ! 4")
    assert harmless in " ".join(message.split())


KEYS = ("write.1.0", "write.1.1")


def with_merged_copies(folder: Path) -> History:
    history = History(folder, {"a.txt": "a\n"})
    for key in KEYS:
        history.copied(key)
        history.turn("writer", {f"{key}.txt": ""}, key)
    for key in KEYS:
        history.merged(key)
    return history


def forked(history: History, source: RunFolder, run_id: str) -> RunFolder:
    """A fork of ``source`` that inherited all of it, in a folder of its own."""
    run = RunFolder.create(history.folder / "runs", run_id)
    inherit(source, run, history.events, Beginning("last", 1, 1, history.states[-1], len(history.events)))
    run.write_record({"run_id": run_id, "workspace": str(run.path), "forked_from": {"run_id": source.run_id}})
    snapshots = Snapshots(run.snapshots_path, Workspace(run.path))
    snapshots.repository()
    shutil.copytree(source.snapshots_path / "objects", run.snapshots_path / "objects", dirs_exist_ok=True)
    return run


def test_fork_of_a_fork_has_the_copies_of_the_first_run(tmp_path: Path) -> None:
    history = with_merged_copies(tmp_path)
    states = history_of(history.run).states
    assert [change.copy for change in states.changes] == [*KEYS]
    second = forked(history, history.run, "second")
    third = forked(history, second, "third")
    assert history_of(second).states == history_of(third).states == states
    assert len(history_of(third).repositories()) == 3


def test_copies_that_a_fork_does_not_inherit_are_not_its_own(tmp_path: Path) -> None:
    history = with_merged_copies(tmp_path)
    run = forked(history, history.run, "second")
    history.copied("write.2.0")
    assert [*history_of(run).copies] == [*KEYS]
    assert [*history_of(history.run).copies] == [*KEYS, "write.2.0"]


def test_fork_is_read_after_the_first_run_was_deleted(tmp_path: Path) -> None:
    history = with_merged_copies(tmp_path)
    run = forked(history, history.run, "second")
    shutil.rmtree(history.run.path)
    assert history_of(run).copies == {}


@pytest.mark.long
def test_results_of_a_fork_name_the_turns_in_copies(tmp_path: Path) -> None:
    """Only here a fork has copies of its run: on the real binary; the fork begins after two isolated turns."""
    plays = [say(files=[{"path": f"{number}.txt", "content": ""}]) for number in (1, 2, 3, 4)]
    team = TeamFolder(tmp_path, {"writer": WRITER, "last": WRITER}, {"writer": plays[:2], "last": plays[2:]})
    commit_all(team.workspace)
    write = {"id": "write", "ask": "writer", "for_each": ["x", "y"], "isolate": "worktree"}
    with_flow(team, {"steps": [write, {"id": "last", "ask": "last"}]})
    run_id = fork(team.run(flow="own").run_id, start="last", runs_dir=team.runs).run_id
    exported = console("export", run_id, "--branch", "x", "--repo", "workspace", folder=tmp_path)
    assert exported.returncode == 0, exported.stderr
    for name, turn in (("1", "writer 1"), ("2", "writer 2"), ("3", "last 1")):
        wrote = ["log", "--no-merges", "--format=%(trailers:key=Turn,valueonly)", "x", "--", f"{name}.txt"]
        assert git(team.workspace, *wrote).strip() == turn
