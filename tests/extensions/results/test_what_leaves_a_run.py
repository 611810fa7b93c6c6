"""A run in a repository with a clean status: its branch has the files that roles wrote, and nothing else.

Costs: real runs in repositories, two of them with tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.console import console
from tests.support.teams import WRITER, TeamFolder, read, say, with_flow
from tests.support.workspaces import commit_all, git, write_files

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

WRITTEN = [{"path": "new.txt", "content": "new\n"}, {"path": "kept.log", "content": "2\n"}]


def _ignored_by_the_owner(root: Path) -> None:
    write_files(root, {".git/info/exclude": ".env\n", ".env": "TOKEN=1\n"})


def _sparse(root: Path) -> None:
    git(root, "sparse-checkout", "set", "--cone", "src")
    assert not (root / "docs").exists()


def _tracked_though_ignored(root: Path) -> None:
    (root / ".git/info/exclude").write_text("*.log\n")


@pytest.mark.parametrize(
    ("arrange", "worktree"),
    [
        (_ignored_by_the_owner, False),
        (_sparse, True),
        (_tracked_though_ignored, False),
        (_tracked_though_ignored, True),
    ],
)
def test_branch_has_what_roles_wrote(tmp_path: Path, arrange: Callable[[Path], None], worktree: bool) -> None:
    team = TeamFolder(tmp_path, {"one": WRITER}, {"one": [say(files=WRITTEN)]})
    root = team.workspace
    write_files(root, {"docs/guide.md": "guide\n", "kept.log": "1\n", ".gitignore": "*.log\n"})
    commit_all(root)
    git(root, "add", "--force", "kept.log")
    git(root, "commit", "-q", "-m", "log")
    arrange(root)
    assert git(root, "status", "--porcelain") == ""
    team.run(worktree=worktree)
    done = console("export", "--branch", "agents/run", "--runs-dir", str(team.runs), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert git(root, "log", "--format=%s", "main..agents/run").splitlines() == ["one: fine"]
    assert git(root, "diff", "--name-status", "main", "agents/run").split() == ["M", "kept.log", "A", "new.txt"]


def test_what_the_index_alone_has_outside_of_a_sparse_checkout_is_no_deletion(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": WRITER}, {"one": [say(files=WRITTEN)]})
    root = team.workspace
    write_files(root, {"docs/guide.md": "guide\n", "kept.log": "1\n"})
    commit_all(root)
    write_files(root, {"docs/guide.md": "staged\n", "src/new.py": "new\n"})
    git(root, "add", "docs")
    _sparse(root)
    team.run()
    done = console("export", "--branch", "agents/run", "--runs-dir", str(team.runs), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    changed = git(root, "diff", "--name-status", "main", "agents/run").split()
    assert changed == ["M", "kept.log", "A", "new.txt", "A", "src/new.py"]


def test_ignored_file_of_a_role_is_named(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": WRITER}, {"one": [say(files=[*WRITTEN, {"path": ".env", "content": "A=1\n"}])]})
    (team.workspace / "a.txt").write_text("a\n")
    commit_all(team.workspace)
    _ignored_by_the_owner(team.workspace)
    team.run()
    done = console("export", "--branch", "agents/run", "--runs-dir", str(team.runs), folder=tmp_path)
    assert "left out, because git ignores them: .env\n" in done.stdout
    assert git(team.workspace, "diff", "--name-only", "main", "agents/run").split() == ["kept.log", "new.txt"]


LITTERS = """\
from pathlib import Path
from uuid import uuid4


def test_litter():
    for name in ("record.txt", "given.txt"):
        with open(name, "a") as file:
            file.write("again\\n")
    Path("made").mkdir(exist_ok=True)
    Path(f"made/{uuid4()}.txt").write_text("new")
"""


def test_what_the_tests_leave_is_not_part_of_the_result(tmp_path: Path) -> None:
    """They rewrite a file of the repository and one that the role submits, and make another in every run."""
    role = {"behaviors": {"apply_files": True, "can_finish": True}}
    files = [{"path": "new.txt", "content": "new\n"}, {"path": "given.txt", "content": "given\n"}]
    team = TeamFolder(tmp_path, {"one": role}, {"one": [say(files=files, status="DONE")]})
    root = team.workspace
    for name, text in {"record.txt": "first\n", "given.txt": "old\n", "test_all.py": LITTERS}.items():
        (root / name).write_text(text)
    commit_all(root)
    git(tmp_path, "clone", "-q", str(root), "fresh")
    report = team.run(run_tests=True, runs_dir=root / "runs")
    assert (report.exit_code, len(team.of_type("tests_ended"))) == (0, 1), report
    left = sorted(f"made/{path.name}" for path in (root / "made").iterdir())
    record = read(report.folder / "run.json")
    assert [each["path"] for each in record["files"]] == ["given.txt", "new.txt"]
    assert (len(left), record["left_by_tests"]) == (2, [*left, "record.txt"])
    said = f"{left[0]}, {left[1]}, record.txt"
    diff = console("diff", folder=root)
    assert re.findall(r"^diff --git a/(\S+)", diff.stdout, re.MULTILINE) == ["given.txt", "new.txt"]
    assert "+given\n" in diff.stdout
    assert "+again\n" not in diff.stdout
    exported = console("export", "--branch", "agents/run", folder=root)
    assert git(root, "log", "--format=%s", "main..agents/run").splitlines() == ["one: fine"]
    assert git(root, "diff", "--name-only", "main", "agents/run").split() == ["given.txt", "new.txt"]
    applied = console("apply", "--to", str(tmp_path / "fresh"), folder=root)
    assert applied.stdout.splitlines()[:2] == ["changed given.txt", "changed new.txt"]
    assert (tmp_path / "fresh/given.txt").read_text() == "given\n"
    assert (root / "given.txt").read_text() == "given\nagain\n"
    assert (root / "record.txt").read_text() == "first\nagain\nagain\n"
    assert "left by test runs" in diff.stderr
    for told in (diff, exported, applied, console("show", folder=root)):
        assert said in told.stdout + told.stderr
    assert said in (report.folder / "report.html").read_text()


def test_what_tests_in_copies_leave_is_not_merged(tmp_path: Path) -> None:
    """Otherwise both copies would have changed the same file of the repository."""
    files = [[{"path": f"{name}.txt", "content": "new\n"}] for name in "ab"]
    team = TeamFolder(tmp_path, {"one": WRITER}, {"one": [say(files=each) for each in files]})
    step = {"id": "write", "ask": "one", "for_each": {"items": [1, 2], "concurrency": 1}, "isolate": "worktree"}
    with_flow(team, {"steps": [step]})
    for name, text in {"record.txt": "first\n", "given.txt": "old\n", "test_all.py": LITTERS}.items():
        (team.workspace / name).write_text(text)
    commit_all(team.workspace)
    report = team.run(run_tests=True, flow="own")
    assert report.exit_code == 0, report
    assert [each["path"] for each in read(report.folder / "run.json")["files"]] == ["a.txt", "b.txt"]
    merged = [paths for each in team.of_type("copy_merged") for paths in each["paths"]]
    assert merged == ["a.txt", "b.txt"]
