"""Files that must stay as they are: found whatever a role does to hide them, and put back without touching others."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_multi_role.workspace import ProtectedFiles, Snapshots, Workspace
from tests.support.workspaces import Link, files_of, write_files

pytestmark = pytest.mark.real

FILES = {
    "tests/test_a.py": "assert one\n",
    "tests/deep/test_b.py": "assert two\n",
    "tests/ignored.env": "KEY=1\n",
    "conftest.py": "fixtures\n",
    "src/a.py": "code\n",
    ".gitignore": "*.env\n",
}
GLOBS = ("tests/**", "**/conftest.py")


def protected(root: Path, *globs: str) -> ProtectedFiles:
    workspace = Workspace(root, (root / "runs",))
    return ProtectedFiles(Snapshots(root.parent / "snapshots.git", workspace), workspace, globs or GLOBS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    write_files(root, FILES)
    return root


def change(root: Path) -> None:
    (root / "tests/test_a.py").write_text("pass\n")


def same_size_and_time(root: Path) -> None:
    path = root / "tests/test_a.py"
    status = path.stat()
    path.write_text("assert 1ne\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def change_what_git_ignores(root: Path) -> None:
    (root / "tests/ignored.env").write_text("KEY=2\n")


def delete(root: Path) -> None:
    shutil.rmtree(root / "tests")


def add(root: Path) -> None:
    (root / "tests/conftest.py").write_text("import pytest\n")
    write_files(root, {"src/conftest.py": "import pytest\n", "tests/new.env": "x"})


def make_a_repository_of_it(root: Path) -> None:
    subprocess.run(["git", "init", "-q", "tests"], cwd=root, check=True)
    change(root)


def lead_it_elsewhere(root: Path) -> None:
    (root / "tests").rename(root / "moved")
    write_files(root, {"tests": Link("moved"), "moved/test_a.py": "pass\n"})


def put_a_folder_in_its_place(root: Path) -> None:
    (root / "conftest.py").unlink()
    (root / "conftest.py/below").mkdir(parents=True)
    (root / "conftest.py/__init__.py").write_text("x")


def put_a_file_in_the_way(root: Path) -> None:
    shutil.rmtree(root / "tests")
    (root / "tests").write_text("x")


def put_a_link_in_its_place(root: Path) -> None:
    (root / "src/evil.py").write_text("pass\n")
    (root / "tests/test_a.py").unlink()
    (root / "tests/test_a.py").symlink_to("../src/evil.py")


@pytest.mark.parametrize(
    "tamper",
    [
        change,
        same_size_and_time,
        change_what_git_ignores,
        delete,
        add,
        make_a_repository_of_it,
        lead_it_elsewhere,
        put_a_folder_in_its_place,
        put_a_file_in_the_way,
        put_a_link_in_its_place,
    ],
)
def test_tampered_files_are_restored_and_others_untouched(root: Path, tamper: Callable[[Path], None]) -> None:
    files = protected(root)
    tree = files.take()
    (root / "src/a.py").write_text("changed code\n")
    code_time = (root / "src/a.py").stat().st_mtime_ns
    tamper(root)
    undone = files.put_back(tree)
    assert undone.paths
    assert undone.patch
    after = files_of(root, without=(".git", "moved"))
    found = {name: text.decode() for name, text in after.items() if not name.startswith("src/evil")}
    assert found == {**FILES, "src/a.py": "changed code\n"}
    assert not (root / "tests").is_symlink()
    assert (root / "src/a.py").stat().st_mtime_ns == code_time
    assert not files.put_back(tree).paths
    assert not [*(root.parent / "snapshots.git").glob("index.protected.*")]


def test_restored_files_are_distinguished_from_new_files(root: Path) -> None:
    """Both are in the paths that were put back, but only files that existed before count as damaged."""
    files = protected(root)
    tree = files.take()
    add(root)
    change(root)
    undone = files.put_back(tree)
    assert undone.paths == ("src/conftest.py", "tests/conftest.py", "tests/new.env", "tests/test_a.py")
    assert undone.damaged == ("tests/test_a.py",)
    assert b"-assert one\n+pass\n" in undone.patch


def test_file_outside_that_a_link_leads_to_is_not_written(root: Path) -> None:
    files = protected(root)
    tree = files.take()
    outside = root.parent / "outside"
    (root / "tests").rename(outside)
    (outside / "test_a.py").write_text("precious\n")
    (root / "tests").symlink_to(outside)
    files.put_back(tree)
    assert (outside / "test_a.py").read_text() == "precious\n"
    assert (root / "tests/test_a.py").read_text() == "assert one\n"


def test_hard_link_made_meanwhile_is_broken_not_written_through(root: Path) -> None:
    files = protected(root)
    tree = files.take()
    os.link(root / "tests/test_a.py", root.parent / "same.py")
    (root.parent / "same.py").write_text("changed\n")
    assert files.put_back(tree).damaged == ("tests/test_a.py",)
    assert (root.parent / "same.py").read_text() == "changed\n"


def test_folder_that_was_a_link_at_first_stays_that_link(root: Path) -> None:
    (root / "tests").rename(root / "real")
    (root / "tests").symlink_to("real")
    files = protected(root)
    tree = files.take()
    (root / "tests").unlink()
    write_files(root, {"tests/test_a.py": "pass\n"})
    assert "tests" in files.put_back(tree).paths
    assert (root / "tests").readlink() == Path("real")


def test_bytecode_beside_them_does_not_outlive_a_look(root: Path) -> None:
    cache = root / "tests/__pycache__/test_a.cpython-312.pyc"
    files = protected(root)
    tree = files.take()
    cache.parent.mkdir()
    cache.write_bytes(b"forged")
    write_files(root.parent, {"outside/kept.pyc": b"kept"})
    (root / "__pycache__").symlink_to(root.parent / "outside")
    assert not files.put_back(tree).paths
    assert not cache.exists()
    assert not (root / "__pycache__").is_symlink()
    assert (root.parent / "outside/kept.pyc").exists()


def test_caches_and_environments_require_glob_with_their_name(root: Path) -> None:
    write_files(root, {".venv/lib/conftest.py": "theirs", "runs/conftest.py": "a run's"})
    everywhere, named = protected(root), protected(root, ".venv/**")
    first, named_first = everywhere.take(), named.take()
    write_files(root, {".venv/lib/conftest.py": "changed", "runs/conftest.py": "changed"})
    assert everywhere.put_back(first).paths == ()
    assert named.put_back(named_first).paths == (".venv/lib/conftest.py",)


@pytest.mark.parametrize(
    ("glob", "path", "covered"),
    [
        ("tests/**", "tests/a.py", True),
        ("tests/**", "tests/deep/er/a.py", True),
        ("tests/**", "./tests//a.py", True),
        ("tests/**", "tests", False),
        ("tests/**", "src/tests/a.py", False),
        ("tests", "tests/deep/a.py", True),
        ("test*", "tests/deep/a.py", True),
        ("**/tests/**", "tests/a.py", True),
        ("**/tests/**", "src/tests/a.py", True),
        ("src/**/t_*.py", "src/t_a.py", True),
        ("src/**/t_*.py", "src/x/y/t_a.py", True),
        ("src/**/t_*.py", "t_a.py", False),
        ("*.toml", "pyproject.toml", True),
        ("*.toml", "src/pyproject.toml", False),
        ("conftest.p[xy]", "conftest.py", True),
        ("**", "any/thing", True),
        ("**", "../outside", False),
        ("link/**", "link/a.py", False),
        ("tests/**", "link/test_a.py", True),
    ],
)
def test_which_paths_a_glob_covers(root: Path, glob: str, path: str, covered: bool) -> None:
    (root / "link").symlink_to("tests")
    assert (path in protected(root, glob).among([path])) == covered


def test_names_that_differ_by_case_only_count_as_one(root: Path) -> None:
    """Also where the file system tells them apart: the next one they come to may not."""
    files = protected(root, "tests/**", "Makefile", "é/x")
    before, tree = files_of(root), files.take()
    write_files(root, dict.fromkeys(("TESTS/test_a.py", "tests/Deep/new.py", "makefile", "E\u0301/X"), "new\n"))
    assert files.among(["Tests/Deep/x.py", "MAKEFILE", "e\u0301/x", "src/tests"]) == {
        *("Tests/Deep/x.py", "MAKEFILE", "e\u0301/x"),
    }
    assert len(files.put_back(tree).paths) == 4
    assert files_of(root) == before


def test_first_state_is_shared_by_later_processes(root: Path) -> None:
    """Other globs have a first state of their own."""
    first = protected(root).first()
    change(root)
    assert protected(root).first() == first == protected(root, *reversed(GLOBS)).first()
    assert protected(root, "tests/**").first() != first


def test_non_utf8_file_names_are_restored(root: Path) -> None:
    odd = os.fsencode(root) + b"/tests/\xff.py"
    Path(os.fsdecode(odd)).write_text("x")
    files = protected(root)
    tree = files.take()
    Path(os.fsdecode(odd)).unlink()
    assert len(files.put_back(tree).paths) == 1
    assert Path(os.fsdecode(odd)).read_text() == "x"
