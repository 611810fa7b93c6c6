from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.workspace import AppliedFile, Workspace, apply_files
from codex_multi_role.workspace.applied_files import MAX_FILE_BYTES, MAX_FILES, write_inside


def _reasons(applied: list[AppliedFile]) -> list[str | None]:
    return [entry.reason for entry in applied]


def _leftovers(root: Path) -> list[Path]:
    return list(root.rglob("*.tmp"))


def test_files_are_written_and_recorded(workspace: Workspace) -> None:
    content = "é\r\nno end"
    applied = apply_files(workspace, [{"path": "src/new/a.py", "content": content}, {"path": "empty", "content": ""}])
    written = (workspace.root / "src/new/a.py").read_bytes()
    assert written == content.encode()
    assert applied[0].as_json() == {
        "path": "src/new/a.py",
        "status": "WROTE",
        "bytes": len(written),
        "sha256": hashlib.sha256(written).hexdigest(),
    }
    assert (workspace.root / "empty").read_bytes() == b""
    assert _leftovers(workspace.root) == []


def test_every_skip_has_its_reason(workspace: Workspace) -> None:
    (workspace.root / "file").write_text("x")
    (workspace.root / "out").symlink_to("../outside")
    files = [
        "not an object",
        {"content": "no path"},
        {"path": 5, "content": "x"},
        {"path": "a.py"},
        {"path": "a.py", "content": ["x"]},
        {"path": "../a.py", "content": "x"},
        {"path": "out/precious.txt", "content": "x"},
        {"path": ".git/config", "content": "x"},
        {"path": "runs/r1/run.json", "content": "x"},
        {"path": "a\x00b", "content": "x"},
        {"path": "big", "content": "x" * (MAX_FILE_BYTES + 1)},
        {"path": "file/below", "content": "x"},
        {"path": "last.py", "content": "x"},
    ]
    assert _reasons(apply_files(workspace, files)) == [
        "invalid entry",
        "invalid path",
        "invalid path",
        "invalid content",
        "invalid content",
        *["unsafe path"] * 4,
        "invalid path",
        "too large",
        "write failed: Not a directory",
        None,
    ]
    assert (workspace.root.parent / "outside" / "precious.txt").read_text() == "precious"
    assert sorted(path.name for path in workspace.root.iterdir()) == ["file", "last.py", "out", "runs"]


@pytest.mark.parametrize("files", [None, {"path": "a", "content": "b"}, "a.py", 3])
def test_files_that_are_not_a_list_are_skipped(workspace: Workspace, files: object) -> None:
    [entry] = apply_files(workspace, files)
    assert entry.as_json() == {"status": "SKIPPED", "reason": "files is not a list"}


def test_no_more_files_than_the_limit(workspace: Workspace) -> None:
    applied = apply_files(workspace, [{"path": "a.py", "content": str(n)} for n in range(MAX_FILES + 2)])
    assert _reasons(applied)[-3:] == [None, "too large", "too large"]
    assert (workspace.root / "a.py").read_text() == str(MAX_FILES - 1)


def test_last_of_two_with_one_path_wins(workspace: Workspace) -> None:
    applied = apply_files(workspace, [{"path": "a", "content": "one"}, {"path": "./a", "content": "two"}])
    assert [(entry.path, entry.status) for entry in applied] == [("a", "WROTE"), ("./a", "WROTE")]
    assert (workspace.root / "a").read_text() == "two"


def test_permissions_of_a_replaced_file_are_kept(workspace: Workspace) -> None:
    script = workspace.root / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    apply_files(workspace, [{"path": "run.sh", "content": "new"}])
    assert (script.read_text(), script.stat().st_mode & 0o777) == ("new", 0o750)


def test_hard_link_is_broken_not_written_through(workspace: Workspace) -> None:
    precious = workspace.root.parent / "outside" / "precious.txt"
    os.link(precious, workspace.root / "same.txt")
    apply_files(workspace, [{"path": "same.txt", "content": "changed"}])
    assert precious.read_text() == "precious"
    assert (workspace.root / "same.txt").read_text() == "changed"


def test_symlink_inside_is_written_through(workspace: Workspace) -> None:
    (workspace.root / "link").symlink_to("target.txt")
    apply_files(workspace, [{"path": "link", "content": "x"}])
    assert (workspace.root / "link").is_symlink()
    assert (workspace.root / "target.txt").read_text() == "x"


def test_lone_surrogates_are_replaced(workspace: Workspace) -> None:
    apply_files(workspace, [{"path": "a", "content": "a\ud800b"}])
    assert (workspace.root / "a").read_bytes() == b"a?b"


def test_what_a_killed_run_left_behind_is_cleared(workspace: Workspace) -> None:
    """The temporary name follows from the target: a resumed run meets its own leftovers."""
    digest = hashlib.sha256(b"a").hexdigest()[:16]
    leftover = workspace.root / f".codex-multi-role-{digest}.tmp"
    leftover.symlink_to(workspace.root.parent / "outside" / "precious.txt")
    apply_files(workspace, [{"path": "a", "content": "x"}])
    assert not leftover.is_symlink()
    assert (workspace.root.parent / "outside" / "precious.txt").read_text() == "precious"


def test_symlink_made_after_the_path_was_judged_is_not_followed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = workspace.resolve_inside("sub/a.txt")
    (workspace.root / "sub").symlink_to("../outside")
    monkeypatch.setattr(Workspace, "resolve_inside", lambda _self, _path: judged)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        write_inside(workspace, "sub/a.txt", b"x")
    assert not (workspace.root.parent / "outside" / "a.txt").exists()


FLIP = """
import itertools, os
from contextlib import suppress
print(flush=True)
for number in itertools.count():
    with suppress(OSError):
        os.rename("sub", f"gone-{number}")
    with suppress(OSError):
        os.symlink("../outside", "sub")
        for _ in range(1000): pass
        os.unlink("sub")
    for _ in range(1000): pass
"""


@pytest.mark.real
def test_folder_replaced_by_link_while_writing_stays_inside(workspace: Workspace) -> None:
    """A race against another process, such as the command of a role. Nothing is written outside the workspace."""
    (workspace.root / "sub").mkdir()
    with subprocess.Popen([sys.executable, "-c", FLIP], cwd=workspace.root, stdout=subprocess.PIPE) as flipping:
        assert flipping.stdout is not None
        flipping.stdout.readline()
        try:
            applied = apply_files(workspace, [{"path": "sub/precious.txt", "content": "x"}] * MAX_FILES)
        finally:
            flipping.kill()
    assert len(applied) == MAX_FILES
    outside = workspace.root.parent / "outside"
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("precious.txt", "precious")]


def test_refused_write_leaves_the_old_file_and_no_other(workspace: Workspace) -> None:
    """A name that is taken by a folder only at the last moment cannot be replaced."""
    target = workspace.root / "a"
    judged = workspace.resolve_inside("a")
    target.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Workspace, "resolve_inside", lambda _self, _path: judged)
        [entry] = apply_files(workspace, [{"path": "a", "content": "x"}])
    assert entry.reason == "write failed: Is a directory"
    assert _leftovers(workspace.root) == []


@settings(max_examples=settings().max_examples // 2)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["path", "content", "x"]), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_no_handoff_makes_it_fail(tmp_path_factory: pytest.TempPathFactory, files: object) -> None:
    applied = apply_files(Workspace(tmp_path_factory.mktemp("any")), files)
    assert json.dumps([entry.as_json() for entry in applied])
    assert len(applied) == (len(files) if isinstance(files, list) else 1)
