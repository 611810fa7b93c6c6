"""The result as people see it: safe for a terminal and a page, short, and where the rest is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codex_multi_role.presentation.result import (
    READ_CHARACTERS,
    TERMINAL_COLUMNS,
    TERMINAL_LINES,
    result_lines,
    result_of,
    whole_text,
)
from codex_multi_role.run_folder import RunFolder


def lines_of(folder: RunFolder, workspace: Path, **result: Any) -> list[str]:
    shown = result_of(folder, {"workspace": str(workspace), "result": result})
    assert shown is not None
    return list(result_lines(shown, "codex-multi-role show r --result"))


def test_title_text_and_figures_are_shown(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "r")
    figures = {"score": 0.91234, "verified": True, "tests passed": 1200, "judge": "a\nb"}
    assert lines_of(folder, tmp_path, title="Answer", text="It is 42.\n\nSo.\x1b[2J", figures=figures) == [
        "Answer",
        "  It is 42.",
        "",
        "  So.[2J",
        "  score 0.9123 · verified yes · tests passed 1,200 · judge a b",
    ]


def test_long_text_ends_with_where_the_rest_is(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "r")
    text = "line\n" * (TERMINAL_LINES - 1) + "word " * TERMINAL_COLUMNS
    assert lines_of(folder, tmp_path, title="T", text=text)[-1] == "  … the rest: `codex-multi-role show r --result`"
    (tmp_path / "answer.md").write_text(text)
    assert lines_of(folder, tmp_path, title="T", file="answer.md")[-1] == f"  … the rest: {tmp_path / 'answer.md'}"


def test_file_of_the_run_folder_comes_before_the_workspace(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "r")
    (tmp_path / "answer.md").write_text("an older one")
    (folder.path / "answer.md").write_text("this one")
    assert lines_of(folder, tmp_path, title="T", file="answer.md") == [
        "T",
        "  this one",
        f"  in {folder.path / 'answer.md'}",
    ]


def test_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "r")
    (tmp_path / "big.txt").write_text("x" * (READ_CHARACTERS * 2))
    shown = result_of(folder, {"workspace": str(tmp_path), "result": {"title": "T", "file": "big.txt"}})
    assert shown is not None
    assert (len(shown.text), shown.is_whole) == (READ_CHARACTERS, False)


def test_whole_text_is_exact(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "r")
    text = "a\tb\x1b[1m\n" * READ_CHARACTERS
    (tmp_path / "a.txt").write_text(text)
    for result in ({"text": text}, {"file": "a.txt"}):
        assert whole_text(folder, {"workspace": str(tmp_path), "result": result}) == text
    for record in ({}, {"result": {"file": "gone.txt"}}):
        assert whole_text(folder, record) is None


def test_record_without_result_has_none(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "r")
    assert [result_of(folder, record) for record in ({}, {"result": None}, {"result": "text"})] == [None] * 3
