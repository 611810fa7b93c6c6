"""The lookup finds what text files of the workspace say, and nothing outside of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tools import call
from tests.support.workspaces import write_files

CIRCLE = "Circles\nThe area of a circle is pi * r**2.\nThe circumference is 2 * pi * r.\n"


def look(folder: Path, query: str, **more: object) -> list[str]:
    return call("knowledge_lookup", {"query": query, **more}, folder).text.splitlines()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    write_files(folder, {"notes/circle.md": CIRCLE})
    return folder


def test_line_with_most_words_comes_first_with_its_place(workspace: Path) -> None:
    found = look(workspace, "AREA of a circle")
    assert found[0] == "notes/circle.md:2: The area of a circle is pi * r**2."
    assert look(workspace, "square") == ["No text file in the workspace contains any of these words."]


def test_only_text_files_inside_are_read(workspace: Path) -> None:
    secret = workspace.parent / "secret.txt"
    secret.write_text("the area of a secret")
    (workspace / "link.txt").symlink_to(secret)
    (workspace / "out").symlink_to(workspace.parent)
    hidden = (".git/config", ".env", "runs/1/run.json", "node_modules/a.txt")
    write_files(workspace, dict.fromkeys(hidden, "the area"))
    write_files(workspace, {"binary.dat": b"area\0area", "latin.txt": b"area \xff", "large.txt": "area\n" * 300_000})
    assert look(workspace, "area") == ["notes/circle.md:2: The area of a circle is pi * r**2."]


def test_it_stops_at_its_limits_and_says_so(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codex_multi_role.extensions.plan_solve.knowledge_lookup.MOST_FILES", 20)
    (workspace / "many.txt").write_text("area\n" * 20)
    told = look(workspace, "area", max_results=3)
    assert len(told) == 4
    assert told[-1] == "(18 more lines contain some of the words; search for other words)"
    for number in range(20):
        (workspace / f"{number}.txt").touch()
    assert "not every file was searched" in look(workspace, "area", max_results=50)[-1]
