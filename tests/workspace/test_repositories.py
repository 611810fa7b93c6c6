"""Nothing that a model submits makes a folder one that git takes for a repository, and whose settings it obeys."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codex_multi_role.workspace import Workspace, apply_files
from tests.support.teams import Record

CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch {ran}; false\n"
BARE: Record = {"HEAD": "ref: refs/heads/main\n", "config": CONFIG, "objects/x": "", "refs/x": ""}


def apply(workspace: Workspace, files: Record) -> list[str | None]:
    return [each.reason for each in apply_files(workspace, [{"path": name, "content": files[name]} for name in files])]


@pytest.mark.parametrize("last", BARE)
@pytest.mark.parametrize("folder", ["", "sub/deep/"])
def test_bare_repository_is_never_completed(tmp_path: Path, last: str, folder: str) -> None:
    ran = tmp_path / "ran"
    root = tmp_path / "work"
    root.mkdir()
    for name in sorted(BARE, key=last.__eq__):  # as in turns of their own
        apply(Workspace(root), {f"{folder}{name}": BARE[name].format(ran=ran)})
    if folder:
        subprocess.run(["git", "status"], cwd=root / folder, capture_output=True, check=False, timeout=20)
        assert not ran.exists()
    assert subprocess.run(
        ["git", "rev-parse", "--git-dir"], cwd=root / folder, capture_output=True, check=False
    ).returncode


@pytest.mark.parametrize(
    "files",
    [
        {"HEAD": "x", "objects/x": "", "refs/x": ""},
        {"refs/x": "", "Objects/x": "", "head": "x"},
        {"HEAD": "x", "commondir": "../elsewhere"},
        {"a/commondir": "x", "a/HeAd": "x"},
        {"refs/x": "", "objects/x": "", "HEAD/x": ""},
    ],
)
def test_last_piece_is_refused_whatever_it_is_and_in_any_case(tmp_path: Path, files: Record) -> None:
    assert apply(Workspace(tmp_path), files) == [None] * (len(files) - 1) + ["unsafe path"]


def test_nothing_is_written_into_a_bare_repository_that_exists(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--bare", "-q", "fixture.git"], cwd=tmp_path, check=True)
    assert apply(Workspace(tmp_path), {"fixture.git/config": "x", "fixture.git/hooks/x": "x"}) == ["unsafe path"] * 2


@pytest.mark.parametrize("name", [".git", "sub/.git", "sub/.GIT"])
def test_file_that_says_where_the_repository_is_is_refused(tmp_path: Path, name: str) -> None:
    assert apply(Workspace(tmp_path), {name: "gitdir: ../evil"}) == ["unsafe path"]


def test_incomplete_repository_parts_are_ordinary_files(tmp_path: Path) -> None:
    files = {"head/x": "", "objects/a.py": "", "refs.txt": "", "config": "", "src/HEAD": "", "src/refs/x": ""}
    assert apply(Workspace(tmp_path), files) == [None] * len(files)
