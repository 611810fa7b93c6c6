"""A workspace that knows its files by any case of their names, as on macOS: what is off limits is so by all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.console import completed, environment
from tests.support.disks import PERSON, Disk, folding_disk, git_in
from tests.support.teams import Record, TeamFolder, read, say, with_flow
from tests.support.workspaces import write_files

pytestmark = pytest.mark.real

WRITER: Record = {"behaviors": {"apply_files": True}, "prompt_flags": {"allow_write": True}}
MEDDLE = "echo meddled > TESTS/Test_It.PY; mv tests/other.py tests/OTHER.py; echo new > Tests/new.py; echo x > Free.txt"
HANDED_IN = {
    "Tests/Test_it.py": "protected",
    "TESTS/more.py": "protected",
    "tESTS/deep/er/x.py": "protected",
    ".GIT/hooks/pre-commit": "unsafe path",
    ".Codex/config.toml": "unsafe path",
    "RUNS/latest/run.json": "unsafe path",
    **dict.fromkeys(("A/ROLES/Lint.YML", "a/Roles/FLOWS/own.Yaml", "CODEX-multi-role.YAML"), "unsafe path"),
    "FREE.TXT": None,
}


@pytest.fixture
def folding(tmp_path: Path) -> Iterator[Disk]:
    """The workspace's own file system: the folder around it tells its names apart."""
    for name in ("workspace", "source"):
        (tmp_path / name).mkdir()
    try:
        with folding_disk(tmp_path / "workspace", tmp_path / "source") as disk:
            yield disk
    except OSError as error:
        pytest.skip(f"this system gives no file system of one's own: {error}")


def run_there(team: TeamFolder, disk: Disk, *arguments: str) -> list[Record]:
    """A run by a process that sees the file system; returns its events."""
    given = ["--goal", "x", "--roles", str(team.folder / "roles"), "--playbook", str(team.playbook), "--cycles", "1"]
    command = [sys.executable, "-m", "codex_multi_role", "run", *given, "--no-run-tests", "--json", *arguments]
    done = completed(disk.inside(*command), team.folder, environment())
    assert done.returncode in (0, 1), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def commit_all(workspace: Path, disk: Disk) -> None:
    for arguments in (["init", "-q"], ["add", "-A"], [*PERSON, "commit", "-qm", "first"]):
        git_in(workspace, disk, *arguments).check_returncode()


@pytest.mark.long
def test_off_limits_path_is_off_limits_in_any_letter_case(tmp_path: Path, folding: Disk) -> None:
    """No short test runs a team on a file system that folds names."""
    files = [{"path": path, "content": "handed in"} for path in HANDED_IN]
    shell = {"call": "exec_command", "arguments": {"cmd": MEDDLE}}
    plays = {"writer": [{"steps": [shell, say(files=files)]}]}
    team = TeamFolder(tmp_path, {"writer": {**WRITER, "protect": ["tests/**"]}}, plays)
    workspace = folding.folder
    (workspace / "tests").mkdir()
    (workspace / "runs").mkdir()
    for name in ("test_it.py", "other.py"):
        (workspace / "tests" / name).write_text(name)
    commit_all(workspace, folding)
    hooks = sorted((workspace / ".git/hooks").iterdir())
    events = run_there(team, folding, "--workspace", ".", "--runs-dir", "Runs")
    (run,) = (workspace / "runs").glob("2*")
    applied = read(run / "writer/turn_001/applied_files.json")
    assert {entry["path"]: entry.get("reason") for entry in applied} == HANDED_IN
    assert {path.name: path.read_text() for path in (workspace / "tests").iterdir()} == {
        "test_it.py": "test_it.py",
        "other.py": "other.py",
    }
    (told,) = [event for event in events if event["type"] == "protected_restored"]
    assert {"tests/new.py", "tests/test_it.py"} <= set(told["paths"])
    assert sorted((workspace / ".git/hooks").iterdir()) == hooks
    assert (workspace / "free.txt").read_text() == "handed in"
    assert sorted(path.name for path in workspace.iterdir()) == [".git", "Free.txt", "runs", "tests"]
    assert read(run / "writer/turn_001/turn.json")["recorded"]["changed_paths"] == ["Free.txt"]


def test_two_spellings_of_one_place_are_one_path(tmp_path: Path, folding: Disk) -> None:
    (folding.folder / "Project/Sub").mkdir(parents=True)
    (folding.folder / "link").symlink_to("PROJECT")
    ask = "import sys, pathlib; from codex_multi_role.host.spelling import as_on_disk; "
    ask += "print(*(as_on_disk(pathlib.Path(each)).relative_to(pathlib.Path.cwd()) for each in sys.argv[1:]))"
    names = ["project", "PROJECT/sub", "LINK/SUB/new/Er", "Project/Sub", "other"]
    done = subprocess.run(
        folding.inside(sys.executable, "-c", ask, *names), capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["Project", "Project/Sub", "Project/Sub/new/Er", "Project/Sub", "other"]


@pytest.mark.long
def test_names_that_differ_by_case_in_copy_merge_safely(tmp_path: Path, folding: Disk) -> None:
    """No short test merges a copy into a file system that folds names; the copy is on one that does not."""
    lines = ["mkdir TESTS Src .GIT", "echo new > TESTS/new.py", "echo a > Src/a.py", "echo mine > Src/B.PY"]
    shell = {"call": "exec_command", "arguments": {"cmd": "; ".join([*lines, "echo x > .GIT/config"])}}
    team = TeamFolder(
        tmp_path, {"writer": {**WRITER, "protect": ["tests/**"]}}, {"writer": [{"steps": [shell, say()]}]}
    )
    workspace = folding.folder
    write_files(workspace, {name: name for name in ("tests/test_it.py", "src/b.py")})
    commit_all(workspace, folding)
    config = (workspace / ".git/config").read_text()
    with_flow(team, {"steps": [{"ask": "writer", "isolate": "worktree", "allow": ["failed"]}]})
    events = run_there(team, folding, "--workspace", ".", "--runs-dir", str(team.runs), "--flow", "own")
    (merged,) = [event for event in events if event["type"] == "copy_merged"]
    assert merged["paths"] == ["Src/a.py"]
    assert [(each["path"], each["kind"]) for each in merged["conflicts"]] == [("Src/B.PY", "changed meanwhile")]
    assert {path.name: path.read_text() for path in (workspace / "src").iterdir()} == {
        "a.py": "a\n",
        "b.py": "src/b.py",
    }
    assert [path.name for path in (workspace / "tests").iterdir()] == ["test_it.py"]
    assert (workspace / ".git/config").read_text() == config
