"""One module unpacks, and counts before it writes."""

from __future__ import annotations

import ast
import re
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import codex_multi_role
from codex_multi_role.host.unpacking import UnpackBudget, UnpackingRefused, measure_trees, unpack_tar, unpack_zip
from codex_multi_role.workspace.git import Git
from tests.support.bombs import make_blob, make_tree, nested, tar_of, zip_of

PACKAGE = Path(codex_multi_role.__file__).parent
ONLY = "host/unpacking.py"
BUDGET = UnpackBudget(max_bytes=10_000, max_entries=50, max_depth=5, max_seconds=60.0)
UNPACKS = re.compile(
    r"(^|\.)(decompress\w*|unpack_archive|extractall|extractfile|SevenZipFile|ZipFile|open_zip|lzma|bz2|py7zr|gzip)$|^tarfile\.open$"
)
OF_GIT = {"index-pack", "unpack-objects", "unpack-file", "get-tar-commit-id"}
IN_QUESTION = re.compile(
    "decompress|unpack|index-pack|extractall|extractfile|SevenZip|ZipFile|open_zip|lzma|bz2|py7zr|gzip|tarfile|get-tar"
)
"""What a module has in its text that is worth being parsed."""


def unpacking(tree: ast.AST) -> Iterator[str]:
    """What is called or imported to unpack something."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Call) and not is_writing(node):
            names = [ast.unparse(node.func)]
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [str(node.module), *(each.name for each in node.names)]
        elif isinstance(node, ast.Constant) and node.value in OF_GIT:
            yield str(node.value)
        yield from filter(UNPACKS.search, names)


def is_writing(call: ast.Call) -> bool:
    given = [*call.args, *(each.value for each in call.keywords if each.arg == "mode")]
    return any(isinstance(each, ast.Constant) and each.value == "w" for each in given)


def test_no_other_module_unpacks() -> None:
    found = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in PACKAGE.rglob("*.py")
        if IN_QUESTION.search(text := path.read_text())
        for name in unpacking(ast.parse(text))
    }
    assert {where for where, _ in found} == {ONLY}, found


def test_sizes_are_counted_and_not_believed() -> None:
    data = bytearray(zip_of(("large", bytes(1_000_000))))
    for start in (data.index(b"PK\x03\x04") + 22, data.index(b"PK\x01\x02") + 24):
        data[start : start + 4] = (10).to_bytes(4, "little")
    with pytest.raises(UnpackingRefused):
        unpack_zip(bytes(data), BUDGET)


def test_archive_is_refused_before_it_fills_the_memory() -> None:
    """The library inflates what is packed by bzip2 or LZMA without a bound: 40 bytes are 45 megabytes."""
    methods = (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    bombs = [zip_of(("large", bytes(50_000_000)), method=method) for method in methods]
    tracemalloc.start()
    for bomb, words in zip(
        bombs, ("it has more than 50 files, 0 MiB", *["neither stored nor deflated"] * 2), strict=True
    ):
        with pytest.raises(UnpackingRefused, match=words):
            unpack_zip(bomb, BUDGET)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_compressed_tar_is_not_inflated() -> None:
    with pytest.raises(UnpackingRefused):
        unpack_tar(tar_of(("a", bytes(100)), mode="w:gz"), BUDGET)


def test_seconds_are_limited() -> None:
    late = UnpackBudget(max_bytes=10_000, max_entries=50, max_depth=5, max_seconds=-1.0)
    with pytest.raises(UnpackingRefused, match="unpacking took longer than"):
        unpack_zip(zip_of(("a", b"a")), late)


def test_trees_within_the_budget_are_accepted(tmp_path: Path) -> None:
    git = Git(tmp_path, tmp_path)
    git.run("init", "--quiet", "--template=")
    inner = make_tree(git, f"100644 blob {make_blob(git, bytes(10_000))}\tfile")
    tree = nested(git, inner, 1)  # ten folders, ten files, 100,000 bytes
    measure_trees(git.run, [tree, inner], UnpackBudget(100_000, 20, 1, 60.0))
    for smaller in (
        UnpackBudget(99_999, 20, 1, 60.0),
        UnpackBudget(100_000, 19, 1, 60.0),
        UnpackBudget(100_000, 20, 0, 60.0),
    ):
        with pytest.raises(UnpackingRefused, match="it has more than"):
            measure_trees(git.run, [inner, tree], smaller)


def test_tree_with_a_name_that_no_folder_can_have_is_refused(tmp_path: Path) -> None:
    git = Git(tmp_path, tmp_path)
    git.run("init", "--quiet", "--template=")
    blob = make_blob(git, b"")
    budget = UnpackBudget(100_000, 20, 1, 60.0)
    measure_trees(git.run, [make_tree(git, f"100644 blob {blob}\t{'n' * 255}")], budget)
    with pytest.raises(UnpackingRefused, match="a name that is too long"):
        measure_trees(git.run, [make_tree(git, f"100644 blob {blob}\t{'n' * 256}")], budget)
