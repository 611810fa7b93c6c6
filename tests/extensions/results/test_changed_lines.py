"""The lines of changed files with who wrote them, and what commits say of a run: bounded, without secrets."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

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
from tests.support.histories import History

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
