"""A reader never sees half a file; a write that fails leaves the old file and nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.errors import StorageError
from codex_multi_role.host.atomic import (
    make_folder,
    write_bytes,
    write_json,
    write_pieces,
    write_text,
)
from tests.support.processes import largest_file


def test_readers_see_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    versions = [json.dumps({"number": number, "padding": "x" * 40_000}) + "\n" for number in range(2)]
    write_text(path, versions[0])
    finished = threading.Event()

    def write() -> None:
        for round_ in range(300):
            write_text(path, versions[round_ % 2])
        finished.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not finished.is_set():
        seen.add(path.read_text())
    writer.join(30)
    assert seen <= set(versions)


def test_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_text(path, "as it was")
    with largest_file(1000), pytest.raises(StorageError) as caught:
        write_bytes(path, b"x" * 100_000)
    assert str(caught.value) == f"cannot write {path}: File too large"
    assert "resume" in caught.value.hint
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]


def test_error_while_making_a_piece_is_not_a_write_error(tmp_path: Path) -> None:
    """The old file stays as it was."""

    def pieces() -> Iterator[bytes]:
        yield b"begun"
        yield (tmp_path / "not there").read_bytes()

    path = tmp_path / "page.html"
    write_text(path, "as it was")
    with pytest.raises(FileNotFoundError, match="not there"):
        write_pieces(path, pieces())
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("where", ["missing/file", "folder", "file/below"])
def test_what_cannot_be_written_is_named(tmp_path: Path, where: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match=f"cannot write {tmp_path / where}: "):
        write_text(tmp_path / where, "x")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


def test_folder_is_made_once_and_a_file_in_its_place_is_named(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "a/b") == make_folder(tmp_path / "a/b")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match=f"cannot write {tmp_path}/file: File exists"):
        make_folder(tmp_path / "file")


def test_other_users_may_read_what_a_run_leaves(tmp_path: Path) -> None:
    write_text(tmp_path / "file", "x")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=10,
)


@settings(max_examples=settings().max_examples // 4)
@given(value=JSON)
def test_json_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.getbasetemp() / "value.json"
    write_json(path, value)
    assert json.loads(path.read_text(encoding="utf-8")) == value


@given(text=st.text(st.characters()))
def test_any_text_can_be_written_even_halves_of_characters(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "text.txt"
    write_text(path, text)
    assert path.read_bytes() == text.encode("utf-8", "replace")
