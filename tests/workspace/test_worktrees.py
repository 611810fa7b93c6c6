from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from codex_multi_role.errors import StorageError
from codex_multi_role.workspace import Snapshots, Workspace, apply_files
from codex_multi_role.workspace.manifest import Manifest
from codex_multi_role.workspace.worktrees import Worktrees
from tests.support.processes import Killed, killed_at, killed_before_step, until_it_is_done
from tests.support.workspaces import (
    ARRANGEMENTS,
    EDITED,
    KEY,
    Program,
    alone,
    commit_all,
    contents,
    edit,
    fill,
    git,
    nested_root,
    open_run,
    patch_of,
    whole_repository,
    write_files,
)

pytestmark = pytest.mark.real

Arrange = Callable[[Path], None]


def _conflicts(worktrees: Worktrees, key: str = KEY) -> dict[str, str]:
    return {conflict.path: conflict.kind for conflict in worktrees.merge(key).conflicts}


@pytest.mark.parametrize("arrange", ARRANGEMENTS)
def test_every_kind_of_change_comes_back(arrange: Arrange, tmp_path: Path) -> None:
    """And its patch takes it back."""
    root = nested_root(tmp_path)
    arrange(root)
    worktrees = open_run(root)
    copy = worktrees.create(KEY)
    before = contents(root)
    edit(copy.workspace.root)
    assert contents(root) == before
    result = worktrees.merge(KEY)
    assert (result.status, set(result.paths), result.conflicts) == ("merged", EDITED, ())
    assert contents(root) == contents(copy.workspace.root)
    git(root, "apply", "-R", str(patch_of(root)))
    assert contents(root) == before


def test_both_sides_changes_meet(tmp_path: Path) -> None:
    fill(tmp_path)
    worktrees = open_run(tmp_path)
    root = worktrees.create(KEY).workspace.root
    lines = [f"line {number}\n" for number in range(20)]
    (tmp_path / "pkg" / "code.py").write_text("".join(["first\n", *lines[1:]]))
    write_files(root, {"pkg/code.py": Program("".join([*lines[:-1], "last\n"]))})
    (tmp_path / "mine.txt").write_text("mine")
    (root / "theirs.txt").write_text("theirs")
    (tmp_path / "script.sh").chmod(0o755)
    (root / "script.sh").write_text("#!/bin/bash\n")
    result = worktrees.merge(KEY)
    assert (result.status, result.paths) == ("merged", ("pkg/code.py", "script.sh", "theirs.txt"))
    merged = contents(tmp_path)
    assert merged["pkg/code.py"] == ("executable", "".join(["first\n", *lines[1:-1], "last\n"]).encode())
    assert merged["script.sh"] == ("executable", b"#!/bin/bash\n")
    assert {"mine.txt", "theirs.txt"} <= merged.keys()


def test_conflicts_are_listed_and_left_as_they_are(tmp_path: Path) -> None:
    fill(tmp_path)
    worktrees = open_run(tmp_path)
    root = worktrees.create(KEY).workspace.root
    for side, text in ((tmp_path, "here\n"), (root, "there\n")):
        write_files(side, {"pkg/code.py": text, "added.txt": text, "binary.dat": bytes(8) + text.encode()})
        (side / "link").unlink()
        (side / "link").symlink_to(text.strip())
        (side / "same.txt").write_text("same\n")
    (root / "gone.txt").unlink()
    (tmp_path / "gone.txt").write_text("changed\n")
    (tmp_path / "old name.txt").unlink()
    write_files(root, {"old name.txt": "changed\n", "clean.txt": "clean\n"})
    before = contents(tmp_path)
    result = worktrees.merge(KEY)
    assert (result.status, result.paths) == ("conflicts", ("clean.txt",))
    assert {conflict.path: conflict.kind for conflict in result.conflicts} == {
        "added.txt": "both added",
        "binary.dat": "both modified",
        "gone.txt": "modified here, deleted in the copy",
        "link": "both modified",
        "old name.txt": "deleted here, modified in the copy",
        "pkg/code.py": "both modified",
    }
    assert contents(tmp_path) == {**before, "clean.txt": ("file", b"clean\n")}
    assert "+there" in patch_of(tmp_path).read_text()
    assert json.loads(json.dumps(result.as_json()))["conflicts"][0] == {"path": "added.txt", "kind": "both added"}


def test_file_where_a_folder_stays_is_a_conflict(tmp_path: Path) -> None:
    fill(tmp_path)
    worktrees = open_run(tmp_path)
    root = worktrees.create(KEY).workspace.root
    shutil.rmtree(root / "pkg")
    (root / "pkg").write_text("a file now\n")
    (tmp_path / "pkg" / "mine.py").write_text("mine\n")
    (root / "script.sh").unlink()
    write_files(root, {"script.sh/a": "a folder now\n"})
    before = contents(tmp_path)
    assert worktrees.merge(KEY).paths == ("script.sh", "script.sh/a")
    assert _conflicts(worktrees) == {"pkg": "file and folder", "pkg/code.py": "file and folder"}
    after = contents(tmp_path)
    assert {path: after[path] for path in after if path.startswith("pkg")} == {
        path: before[path] for path in before if path.startswith("pkg")
    }


def test_copy_that_changed_nothing_is_unchanged(tmp_path: Path) -> None:
    fill(tmp_path)
    worktrees = open_run(tmp_path)
    worktrees.create(KEY)
    (tmp_path / "mine.txt").write_text("mine")
    result = worktrees.merge(KEY)
    assert (result.status, result.paths, result.conflicts) == ("unchanged", (), ())
    assert not patch_of(tmp_path).exists()


def test_merge_is_done_once(tmp_path: Path) -> None:
    fill(tmp_path)
    root = open_run(tmp_path).create(KEY).workspace.root
    (root / "added.txt").write_text("added\n")
    first = open_run(tmp_path).merge(KEY)
    (root / "later.txt").write_text("later\n")
    (tmp_path / "added.txt").unlink()
    assert open_run(tmp_path).merge(KEY) == first
    assert not (tmp_path / "later.txt").exists()
    assert not (tmp_path / "added.txt").exists()


def test_ignored_file_of_the_workspace_is_not_overwritten(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "mine.local").write_text("mine")
    worktrees = open_run(tmp_path)
    copy = worktrees.create(KEY)
    names = ["mine.local", "new.local"]
    apply_files(copy.workspace, [{"path": name, "content": "theirs"} for name in names])
    copy.snapshots.take(force=names)
    result = worktrees.merge(KEY)
    assert (result.paths, _conflicts(worktrees)) == (("new.local",), {"mine.local": "both added"})
    assert (tmp_path / "mine.local").read_text() == "mine"
    assert (tmp_path / "new.local").read_text() == "theirs"


def test_nothing_is_written_outside_or_into_git_or_a_run(tmp_path: Path) -> None:
    root, outside = tmp_path / "work", tmp_path / "outside"
    fill(root)
    outside.mkdir()
    write_files(root, {"data/a.txt": "a"})
    worktrees = open_run(root)
    copy = worktrees.create(KEY).workspace.root
    write_files(copy, {"data/a.txt": "changed", "data/b.txt": "added", "runs": "a file where the runs lie"})
    (copy / "back\\slash").write_text("no model may name this")
    (copy / b"\xff.txt".decode(errors="surrogateescape")).write_text("no text")
    shutil.move(root / "data", outside / "data")
    (root / "data").symlink_to(outside / "data")
    found = _conflicts(worktrees)
    assert found == {
        "back\\slash": "off limits",
        "data/a.txt": "deleted here, modified in the copy",
        "data/b.txt": "file and folder",
        "runs": "file and folder",
        "\udcff.txt": "off limits",
    }
    assert contents(outside) == {"data/a.txt": ("file", b"a")}
    assert (root / "runs" / "r1").is_dir()


def test_link_itself_is_replaced_not_what_it_leads_to(tmp_path: Path) -> None:
    root = tmp_path / "work"
    fill(root)
    (tmp_path / "outside.txt").write_text("precious")
    for name in ("replaced", "deleted"):
        (root / name).symlink_to("../outside.txt")
    worktrees = open_run(root)
    copy = worktrees.create(KEY).workspace.root
    (copy / "replaced").unlink()
    (copy / "replaced").write_text("a file now")
    (copy / "deleted").unlink()
    assert worktrees.merge(KEY).paths == ("deleted", "replaced")
    assert (tmp_path / "outside.txt").read_text() == "precious"
    assert contents(root)["replaced"] == ("file", b"a file now")
    assert not (root / "deleted").is_symlink()


def test_hard_link_is_replaced_not_written_through(tmp_path: Path) -> None:
    root, outside = tmp_path / "work", tmp_path / "outside.txt"
    fill(root)
    outside.write_text("precious")
    os.link(outside, root / "same.txt")
    worktrees = open_run(root)
    copy = worktrees.create(KEY).workspace.root
    (copy / "same.txt").write_text("changed")
    assert worktrees.merge(KEY).paths == ("same.txt",)
    assert (outside.read_text(), (root / "same.txt").read_text()) == ("precious", "changed")


def test_merged_link_does_not_bring_target_into_snapshots(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "secret.local").write_text("secret")
    worktrees = open_run(tmp_path)
    copy = worktrees.create(KEY)
    for name in ("shown", "also.local"):
        (copy.workspace.root / name).symlink_to("secret.local")
    assert worktrees.merge(KEY).paths == ("shown",)
    snapshots = Snapshots(tmp_path / "runs" / "r1" / ".snapshots", Workspace(tmp_path, (tmp_path / "runs",)))
    assert snapshots.changed_paths(copy.base, snapshots.take()) == ["shown"]


def test_nested_repositories_are_neither_copied_nor_written_into(tmp_path: Path) -> None:
    fill(tmp_path)
    for name in ("vendor", "other"):
        write_files(tmp_path / name, {"a.txt": "a"})
        commit_all(tmp_path / name)
    worktrees = open_run(tmp_path)
    copy = worktrees.create(KEY)
    root = copy.workspace.root
    assert copy.snapshots.take() == copy.base
    assert list((root / "vendor").iterdir()) == []
    (root / "vendor" / "a.txt").write_text("theirs")
    git(tmp_path, "clone", "-q", str(tmp_path / "other"), str(root / "cloned"))
    assert _conflicts(worktrees) == {
        "cloned": "nested repository",
        "vendor/a.txt": "file and folder",
    }
    assert (tmp_path / "vendor" / "a.txt").read_text() == "a"


def test_permissions_that_git_does_not_know_stay(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "crlf.txt").chmod(0o600)
    worktrees = open_run(tmp_path)
    copy = worktrees.create(KEY).workspace.root
    (copy / "crlf.txt").write_text("changed")
    (copy / "script.sh").chmod(0o755)
    worktrees.merge(KEY)
    assert (tmp_path / "crlf.txt").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "script.sh").stat().st_mode & 0o777 == 0o755


def test_copies_are_made_and_merged_at_the_same_time(tmp_path: Path) -> None:
    whole_repository(tmp_path)
    worktrees = open_run(tmp_path)

    def work(number: int) -> str:
        copy = worktrees.create(f"fan.1.{number}")
        (copy.workspace.root / f"{number}.txt").write_text("done\n")
        copy.snapshots.take()
        return worktrees.merge(copy.key).status

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(work, range(4))) == {"merged"}
    assert {f"{number}.txt" for number in range(4)} <= contents(tmp_path).keys()
    assert len(git(tmp_path, "worktree", "list").splitlines()) == 5
    listed = json.loads((tmp_path / "runs" / "r1" / "worktrees" / "manifest.json").read_text())
    assert {copy["state"] for copy in listed["copies"]} == {"merged"}


def test_unknown_copy_and_a_broken_manifest_say_so(tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(StorageError, match="does not contain the copy"):
        open_run(tmp_path).merge(KEY)
    open_run(tmp_path).create(KEY)
    (tmp_path / "runs" / "r1" / "worktrees" / "manifest.json").write_text("{")
    with pytest.raises(StorageError, match=r"manifest\.json cannot be read"):
        open_run(tmp_path)


def test_killed_anywhere_while_a_copy_is_merged(tmp_path: Path) -> None:
    prepared = tmp_path / "prepared" / "work"
    fill(prepared)
    copy = open_run(prepared).create(KEY).workspace.root
    lines = (prepared / "pkg" / "code.py").read_text()
    (prepared / "pkg" / "code.py").write_text("first\n" + lines)
    (copy / "pkg" / "code.py").write_text(lines + "last\n")
    (prepared / "gone.txt").write_text("changed here\n")
    (copy / "gone.txt").unlink()
    (copy / "link").unlink()
    write_files(copy, {"link/script.sh": "moved\n"})
    undisturbed = _moved(prepared, tmp_path / "undisturbed")
    expected = open_run(undisturbed).merge(KEY)
    assert (expected.status, [each.path for each in expected.conflicts]) == ("conflicts", ["gone.txt"])

    def merge_in_a_new_place(number: int) -> None:
        root = _moved(prepared, tmp_path / str(number))
        try:
            with killed_before_step(number * 13):
                open_run(root).merge(KEY)
        finally:
            assert open_run(root).merge(KEY) == expected
            assert contents(root) == contents(undisturbed)

    assert until_it_is_done(merge_in_a_new_place) > 1


def test_what_git_leaves_when_the_machine_goes_down_stops_nobody(tmp_path: Path) -> None:
    whole_repository(tmp_path / "work")
    root = tmp_path / "work"
    copy = open_run(root).create(KEY).workspace.root
    shutil.rmtree(copy)
    write_files(root, {".git/worktrees/work/locked": "initializing", ".git/worktrees/work/index.lock": ""})
    assert contents(open_run(root).create(KEY).workspace.root) == contents(root)
    assert len(git(root, "worktree", "list").splitlines()) == 2
    (copy / "new.txt").write_text("new")
    with suppress(Killed), killed_at(root / "new.txt"):
        open_run(root).merge(KEY)
    for name in ("index.lock", "index.scratch.lock"):
        (root / "runs" / "r1" / "worktrees" / KEY / "snapshots.git" / name).touch()
    assert open_run(root).merge(KEY).paths == ("new.txt",)


def _moved(prepared: Path, folder: Path) -> Path:
    root = Path(shutil.copytree(prepared, folder / prepared.name, symlinks=True))
    now, then = (Manifest(each / "runs/r1/worktrees").place for each in (root, prepared))
    shutil.copytree(then, now, symlinks=True)
    return root


@pytest.mark.parametrize("arrangement", [alone, whole_repository])
def test_copied_project_continues_from_recorded_files(tmp_path: Path, arrangement: Callable[[Path], None]) -> None:
    """On another machine, or beside the original: neither changes what the other one works on."""
    arrangement(tmp_path / "here")
    original = open_run(tmp_path / "here").create(KEY)
    edit(original.workspace.root)
    original.snapshots.take()
    there = Path(shutil.copytree(tmp_path / "here", tmp_path / "there", symlinks=True))
    copy = open_run(there).open(KEY)
    assert contents(copy.workspace.root) == contents(original.workspace.root)
    (copy.workspace.root / "later.txt").write_text("there\n")
    assert not (original.workspace.root / "later.txt").exists()
    assert open_run(there).merge(KEY).status == "merged"
    assert open_run(tmp_path / "here").merge(KEY).status == "merged"


def test_moved_project_gets_the_copy_of_its_killed_turn_again(tmp_path: Path) -> None:
    whole_repository(tmp_path / "here")
    before = open_run(tmp_path / "here").create(KEY)
    (before.workspace.root / "half.txt").write_text("of a killed turn\n")
    there = (tmp_path / "here").rename(tmp_path / "there")
    root = open_run(there).create(KEY).workspace.root
    assert root == before.workspace.root
    assert contents(root) == contents(there)
    assert str(root) in git(there, "worktree", "list")


def test_file_changed_after_killed_merge_is_a_conflict(tmp_path: Path) -> None:
    """The killed merge did not reach the file before somebody else changed it."""
    fill(tmp_path)
    copy = open_run(tmp_path).create(KEY).workspace.root
    for name in ("crlf.txt", "script.sh"):
        (copy / name).write_text("theirs\n")
    with suppress(Killed), killed_at(tmp_path / "script.sh"):
        open_run(tmp_path).merge(KEY)
    assert (tmp_path / "crlf.txt").read_text() == "theirs\n"
    (tmp_path / "script.sh").write_text("somebody's\n")
    worktrees = open_run(tmp_path)
    assert worktrees.merge(KEY).paths == ("crlf.txt",)
    assert _conflicts(worktrees) == {"script.sh": "changed meanwhile"}
    assert (tmp_path / "script.sh").read_text() == "somebody's\n"


def test_full_disk_is_an_error_and_merge_resumes_later(tmp_path: Path) -> None:
    fill(tmp_path)
    worktrees = open_run(tmp_path)
    copy = worktrees.create(KEY).workspace.root
    (copy / "pkg" / "code.py").write_text("theirs\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codex_multi_role.workspace.writing.shutil.copyfileobj", _full)
        with pytest.raises(StorageError, match=r"pkg/code\.py cannot be written: No space left"):
            worktrees.merge(KEY)
    assert [path.name for path in (tmp_path / "pkg").iterdir()] == ["code.py"]
    assert worktrees.merge(KEY).paths == ("pkg/code.py",)
    assert (tmp_path / "pkg" / "code.py").read_text() == "theirs\n"


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
