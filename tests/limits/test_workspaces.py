"""A workspace of ten thousand files, a file of a hundred megabytes, names that are not text: worked on, and kept."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from codex_multi_role.workspace import Snapshots, Workspace
from tests.limits.large import MOST_MEGABYTES, command, run_alone
from tests.support.memory import most_allocated
from tests.support.teams import Record, TeamFolder, read, say, with_flow
from tests.support.workspaces import commit_all, write_files

WRITER: Record = {"prompt_flags": {"allow_write": True}}
MANY = 10_000
HUGE = 100_000_000
MAKE_MANY = f"import os; os.mkdir('new'); [open('new/%d.txt' % n, 'w').write('new') for n in range({MANY})]"
MEDDLE = "open('d7/700.txt', 'w').write('meddled'); open('one.txt', 'w').write('new')"
CHANGE = "f = open('huge.bin', 'r+b'); f.seek(5_000); f.write(b'changed')"
MOST_ON_DISK = 220
"""Megabytes of the run after the change: two copies of the file."""
STRANGE = "open(bytes([98, 255, 254]), 'w').write('x'); open('new' + chr(10) + 'line', 'w').write('x')"


def team_that(folder: Path, code: str) -> TeamFolder:
    plays = {"writer": [{"steps": [command(code), say()]}], "reader": [say()]}
    return TeamFolder(folder, {"writer": WRITER, "reader": {}}, plays)


def take_back(patch: Path, workspace: Path) -> None:
    subprocess.run(["git", "apply", "-R", str(patch)], cwd=workspace, check=True, capture_output=True)


@pytest.mark.long
def test_ten_thousand_files_are_copied_protected_and_added(tmp_path: Path) -> None:
    """Ten thousand files are copied and protected, and one turn adds as many."""
    turns = [{"steps": [command(code), say()]} for code in (MEDDLE, MAKE_MANY)]
    team = TeamFolder(tmp_path, {"writer": {**WRITER, "protect": ["d*/**"]}}, {"writer": turns})
    write_files(team.workspace, {f"d{number // 100}/{number}.txt": f"file {number}\n" for number in range(MANY)})
    steps = [{"id": "copied", "ask": "writer", "isolate": "worktree"}, {"id": "here", "ask": "writer"}]
    with_flow(team, {"steps": steps}, "mine")
    code, most, events = run_alone(team, "--flow", "mine")
    assert code == 0, events[-1]
    assert most < MOST_MEGABYTES
    assert len(list((team.workspace / "new").iterdir())) == MANY
    assert (team.workspace / "d7/700.txt").read_text() == "file 700\n"
    (merged,) = [event for event in events if event["type"] == "copy_merged"]
    assert (merged["status"], merged["paths"]) == ("merged", ["one.txt"])
    (run,) = team.runs.glob("2*")
    assert read(run / "writer/turn_001/turn.json")["protected_restored"] == ["d7/700.txt"]
    assert len(read(run / "writer/turn_002/turn.json")["recorded"]["changed_paths"]) == MANY
    assert max(len(str(event)) for event in events) < 2_000
    listed = (run / events[-1]["result"]["file"]).read_text()
    assert listed.count("\n") == MANY + 1, "each new file, and the one that the copy changed"
    take_back(run / "writer/turn_002/changes.patch", team.workspace)
    assert not (team.workspace / "new").exists()


@pytest.mark.long
def test_large_file_is_never_read_as_a_whole(tmp_path: Path) -> None:
    """Neither to watch it, nor for the patch that takes its change back."""
    root, content = tmp_path / "workspace", os.urandom(3_000_000)
    write_files(root, {"huge.bin": content})
    assert most_allocated(_delete_with_patch, root / "huge.bin", tmp_path) < len(content) / 10
    take_back(tmp_path / "changes.patch", root)
    assert (root / "huge.bin").read_bytes() == content


def _delete_with_patch(file: Path, beside: Path) -> None:
    snapshots = Snapshots(beside / "snapshots.git", Workspace(file.parent))
    before = snapshots.take()
    file.unlink()
    snapshots.write_patch(before, snapshots.take(), beside / "changes.patch")


@pytest.mark.long
def test_huge_tracked_file_is_merged_back_in_little_memory(tmp_path: Path) -> None:
    """A hundred megabytes, changed by one of two parallel roles, each in a worktree of the user's repository."""
    team = team_that(tmp_path, CHANGE)
    team.plays["writer"].append({"steps": [command("open('small.txt', 'w').write('new')"), say()]})
    team.write_plays()
    huge = team.workspace / "huge.bin"
    with huge.open("wb") as file:
        file.truncate(HUGE)
    commit_all(team.workspace)
    step = {
        "id": "copied",
        "ask": "writer",
        "isolate": "worktree",
        "for_each": {"items": ["huge", "small"], "concurrency": 2},
    }
    with_flow(team, {"steps": [step]}, "mine")
    code, most, events = run_alone(team, "--flow", "mine")
    assert code == 0, events[-1]
    assert most < MOST_MEGABYTES
    assert megabytes_on_disk(team.runs) < MOST_ON_DISK
    merged = {event["paths"][0]: event for event in events if event["type"] == "copy_merged"}
    assert {path: event["status"] for path, event in merged.items()} == {"huge.bin": "merged", "small.txt": "merged"}
    take_back(team.runs / "latest/worktrees" / merged["huge.bin"]["copy"] / "changes.patch", team.workspace)
    assert subprocess.run(["git", "diff", "--quiet"], cwd=team.workspace, check=False).returncode == 0


def megabytes_on_disk(folder: Path) -> float:
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) * 512 / 1_000_000


@pytest.mark.real
def test_files_whose_names_are_not_text_are_reported_and_not_merged(tmp_path: Path) -> None:
    team = team_that(tmp_path, STRANGE)
    with_flow(team, {"steps": [{"ask": "writer", "isolate": "worktree"}]}, "mine")
    report = team.run(flow="mine")
    assert report.outcome == "merge_conflicts"
    changed = read(report.folder / "writer/turn_001/turn.json")["recorded"]["changed_paths"]
    assert changed == ["b\ufffd\ufffd", "new\nline"]
    (merged,) = team.of_type("copy_merged")
    assert [conflict["kind"] for conflict in merged["conflicts"]] == ["off limits", "off limits"]
    assert list(team.workspace.iterdir()) == []
