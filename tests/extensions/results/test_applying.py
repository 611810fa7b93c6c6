"""A result in another checkout: merged where both sides agree, and never over what its user changed."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest

from codex_multi_role.errors import RunBusy
from codex_multi_role.extensions.results.applying import Applied, apply_result
from codex_multi_role.extensions.results.run_history import history_of, result_of
from codex_multi_role.workspace import Workspace, occupied
from tests.support.histories import Files, History
from tests.support.kills import is_killed
from tests.support.workspaces import files_of, write_files

pytestmark = pytest.mark.real

LINES = "".join(f"line {number}\n" for number in range(1, 10))
START: Files = {"code.py": LINES, "old.txt": "old\n", "picture": b"\0\1\2", "both.txt": "both\n"}
TURN: Files = {
    "code.py": LINES.replace("line 2", "line two"),
    "old.txt": None,
    "new/file.txt": "new\n",
    "picture": b"\0\1\3",
}


@pytest.fixture
def history(tmp_path: Path) -> History:
    made = History(tmp_path, START)
    made.turn("writer", TURN)
    made.ended()
    return made


def checkout(history: History, files: Files) -> Path:
    """A folder with the files from before the run, and the user's changes to them."""
    root = history.folder / "checkout"
    root.mkdir()
    write_files(root, START)
    write_files(root, files)
    return root


def apply(history: History, root: Path, *, mark_conflicts: bool = False) -> Applied:
    result = result_of(history_of(history.run))
    return apply_result(result, Workspace(root), history.run.path / "applied", mark_conflicts=mark_conflicts)


def test_untouched_checkout_becomes_like_the_workspace(history: History) -> None:
    root = checkout(history, {})
    assert apply(history, root).paths == ("code.py", "new/file.txt", "old.txt", "picture")
    assert files_of(root) == files_of(history.workspace)
    assert apply(history, root) == Applied((), ())
    assert not any((history.run.path / "applied").iterdir())


def test_other_changes_of_the_user_stay(history: History) -> None:
    edited = LINES.replace("line 8", "line eight")
    root = checkout(history, {"code.py": edited, "mine.txt": "mine\n", "both.txt": "mine\n"})
    assert apply(history, root).conflicts == ()
    assert (root / "code.py").read_text() == edited.replace("line 2", "line two")
    assert [(root / name).read_text() for name in ("mine.txt", "both.txt")] == ["mine\n", "mine\n"]


def test_conflict_writes_nothing_unless_marked(history: History) -> None:
    mine: Files = {"code.py": LINES.replace("line 2", "line 2, mine"), "picture": b"\0mine", "old.txt": "mine\n"}
    root = checkout(history, mine)
    before = files_of(root)
    refused = apply(history, root)
    assert [(each.path, each.kind) for each in refused.conflicts] == [
        ("code.py", "both modified"),
        ("old.txt", "modified here, deleted in the copy"),
        ("picture", "both modified"),
    ]
    assert (refused.paths, files_of(root)) == ((), before)
    marked = apply(history, root, mark_conflicts=True)
    assert (marked.paths, marked.marked) == (("new/file.txt",), ("code.py",))
    both = "<<<<<<< yours\nline 2, mine\n=======\nline two\n>>>>>>> run first\n"
    assert (root / "code.py").read_text() == LINES.replace("line 2\n", both)
    assert apply(history, root, mark_conflicts=True).marked == ("code.py",)
    assert (root / "code.py").read_text() == LINES.replace("line 2\n", both)
    assert [(root / name).read_bytes() for name in ("picture", "old.txt")] == [b"\0mine", b"mine\n"]


def test_ignored_file_of_the_user_is_not_overwritten(history: History) -> None:
    root = checkout(history, {".gitignore": "new/\n", "new/file.txt": "secret\n"})
    assert [each.path for each in apply(history, root).conflicts] == ["new/file.txt"]
    assert (root / "new/file.txt").read_text() == "secret\n"


APPLY = """
from pathlib import Path
from codex_multi_role.extensions.results.applying import apply_result
from codex_multi_role.extensions.results.run_history import history_of, result_of
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace import Workspace

run = RunFolder(Path(sys.argv[1]))
apply_result(result_of(history_of(run)), Workspace(Path(sys.argv[2])), run.path / "applied", mark_conflicts=True)
"""
STEP = 67
TEMPORARY = ".codex-multi-role-"
MINE: Files = {"code.py": LINES.replace("line 2", "line 2, mine"), "mine.txt": "mine\n"}


def test_killed_anywhere_leaves_whole_files_and_is_completed(history: History) -> None:
    root = checkout(history, MINE)
    before = files_of(root)
    apply(history, root, mark_conflicts=True)
    wanted = files_of(root)
    kills = 0
    for at in itertools.count(1, STEP):
        shutil.rmtree(root)
        assert files_of(checkout(history, MINE)) == before
        if not is_killed(APPLY, history.run.path, root, at=at):
            break
        kills += 1
        for name, content in files_of(root).items():
            assert content in (before.get(name), wanted.get(name)) or TEMPORARY in name, (at, name)
        apply(history, root, mark_conflicts=True)
        assert files_of(root) == wanted, at
    assert kills * STEP > 80


def test_folder_in_which_a_run_works_is_left_alone(history: History) -> None:
    root = checkout(history, {})
    with occupied(root), pytest.raises(RunBusy, match="a run is working in"):
        apply(history, root)
