"""One module unpacks, as ruff sees, and counts before it writes."""

from __future__ import annotations

import tracemalloc
import zipfile
from pathlib import Path

import pytest

from codex_multi_role.host.unpacking import UnpackBudget, UnpackingRefused, measure_trees, unpack_tar, unpack_zip
from codex_multi_role.workspace.git import Git
from tests.support.bombs import make_blob, make_tree, nested, tar_of, zip_of

BUDGET = UnpackBudget(max_bytes=10_000, max_entries=50, max_depth=5, max_seconds=60.0)


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
