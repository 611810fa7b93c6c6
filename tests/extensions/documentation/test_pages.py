"""What an analyst reads, whether it said enough, and the pages that are written of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.errors import CheckFailed, UsageError
from codex_multi_role.extensions.documentation.code_graph import read_code_graph
from codex_multi_role.extensions.documentation.document_paths import marked
from codex_multi_role.extensions.documentation.document_sources import MAX_CHARACTERS, judge_notes, read_sources
from codex_multi_role.extensions.documentation.markdown_document import read_markdown
from codex_multi_role.extensions.documentation.pages import write_one_document, write_pages
from tests.support.checks import MakeContext
from tests.support.workspaces import write_files

SOURCES = {
    "shop/__init__.py": "",
    "shop/orders.py": "class Order: ...\n",
    "shop/store.py": "from shop.orders import Order\ndef save(): ...\n",
}


def note(path: str, **more: object) -> dict[str, object]:
    return {"path": path, "summary": f"About {path}.", **more}


class Pages:
    def __init__(self, make: MakeContext) -> None:
        self.context = make(SOURCES)
        self.root = self.context.workspace.root

    def write(self, *notes: dict[str, object], **options: object) -> dict[str, Any]:
        graph = read_code_graph(replace(self.context, options={"repo": str(options.pop("repo", "."))}))
        given = {"graph": graph, "notes": [list(notes)], **options}
        return write_pages(replace(self.context, options=given))

    def text(self, path: str) -> str:
        return (self.root / path).read_text()


@pytest.fixture
def pages(make_context: MakeContext) -> Pages:
    return Pages(make_context)


STORE = note(
    "shop/store.py",
    key_insights=["It keeps\norders."],
    functions=["save: keeps one"],
    classes=["`Order`"],
    references=["shop/orders.py"],
    flow="One by one.",
    flow_diagram="```mermaid\nflowchart LR\n a --> b\n```",
)


def test_page_says_what_the_analyst_said_and_links_what_there_is(pages: Pages) -> None:
    result = pages.write(STORE, note("shop/orders.py"), note("shop/__init__.py"))
    assert sorted(result["pages"]) == [
        "docs/files/shop/__init__.py.md",
        "docs/files/shop/orders.py.md",
        "docs/files/shop/store.py.md",
    ]
    text = pages.text("docs/files/shop/store.py.md")
    assert "\n- It keeps orders.\n" in text
    assert "\n- `save`: keeps one\n" in text
    document = read_markdown(text)
    assert document.diagrams == ["flowchart LR\n a --> b\n"]
    assert document.headings == [
        "shop/store.py",
        "Key insights",
        "Classes",
        "Functions",
        "Depends on",
        "References",
        "Flow",
    ]
    here = pages.root / "docs/files/shop"
    assert [(here / link).resolve().relative_to(pages.root).as_posix() for link in document.links] == [
        "shop/store.py",
        "docs/files/shop/orders.py.md",
    ]
    assert all((here / link).is_file() for link in document.links)
    assert read_markdown(pages.text("docs/files/shop/__init__.py.md")).headings == ["shop/__init__.py"]
    assert "- shop/store.py: About shop/store.py." in result["digest"]
    assert result["entry_points"] == "shop/__init__.py\nshop/store.py"
    assert result["project"] == ""


def test_pages_leave_what_installs_and_starts_the_project(pages: Pages) -> None:
    files = {"README.md": "# Shop\n", "scripts/run.sh": "python -m shop\n", "scripts/.hidden": "x", "other.txt": "y"}
    write_files(pages.root, files)
    (pages.root / "setup.py").symlink_to("/etc/hostname")
    expected = "README.md:\n# Shop\nEND OF README.md\n\nscripts/run.sh:\npython -m shop\nEND OF scripts/run.sh"
    assert pages.write(STORE)["project"] == expected


def test_what_is_there_already_is_not_written_again(pages: Pages) -> None:
    pages.write(STORE)
    page = pages.root / "docs/files/shop/store.py.md"
    before = page.stat().st_mtime_ns
    result = pages.write(STORE, note("shop/orders.py"))
    assert (result["pages"], result["same"]) == (["docs/files/shop/orders.py.md"], 1)
    assert page.stat().st_mtime_ns == before
    result = pages.write()
    assert (result["unchanged"], result["without"]) == (2, ["shop/__init__.py"])
    assert "- shop/store.py: About shop/store.py." in result["digest"]


def test_only_pages_about_deleted_files_are_removed(pages: Pages, tmp_path: Path) -> None:
    """Pages that a person wrote, linked pages and linked folders stay."""
    folder = pages.root / "docs/files"
    write_files(folder, {"old.py.md": marked("old.py", "0" * 64, "# old.py"), "own.md": "# A person's own\n"})
    outside = tmp_path / "outside"
    write_files(outside, {"far.md": marked("far.py", "0" * 64, "# far.py")})
    (folder / "linked").symlink_to(outside)
    (folder / "link.md").symlink_to(outside / "far.md")
    assert pages.write()["removed"] == ["docs/files/old.py.md"]
    assert sorted(each.name for each in folder.iterdir()) == ["link.md", "linked", "own.md"]
    assert (outside / "far.md").is_file()


def test_source_outside_the_workspace_is_named_and_not_linked(pages: Pages, tmp_path: Path) -> None:
    write_files(tmp_path, {"library/far.py": "x = 1\n"})
    pages.write(note("far.py"), repo=tmp_path / "library")
    assert read_markdown(pages.text("docs/files/far.py.md")).links == []


@pytest.mark.parametrize("out", ["../docs", ".git", "/tmp/docs"])
def test_no_page_is_written_outside_the_workspace(pages: Pages, out: str) -> None:
    with pytest.raises(UsageError, match="check document_pages: out: unsafe path"):
        pages.write(STORE, out=out)


def test_document_about_a_file_keeps_the_mark_of_its_state(pages: Pages) -> None:
    options = {"path": "docs/x.md", "content": marked("a.py", "0" * 64, "Text"), "source": "a.py", "sha256": "1" * 64}
    context = replace(pages.context, options=options)
    assert write_one_document(context)["status"] == "written"
    assert pages.text("docs/x.md") == f"<!-- source: a.py sha256: {'1' * 64} -->\nText\n"
    assert write_one_document(context)["status"] == "unchanged"
    with pytest.raises(CheckFailed, match="unsafe path"):
        write_one_document(replace(context, options={"path": "../x.md", "content": ""}))


def test_analyst_gets_the_source_and_notes_on_dependencies(pages: Pages) -> None:
    """The context has the known summaries of the files that the source depends on, at most 600 characters each."""
    pages.write(note("shop/orders.py"))
    files = [{"path": "shop/store.py", "dependencies": ["shop/orders.py", "shop/money.py", "shop/other.py"]}]
    notes = [[{"path": "shop/money.py", "summary": "S" * 700}], [note("shop/else.py")]]
    result: dict[str, Any] = read_sources(replace(pages.context, options={"files": files, "notes": notes}))
    (file,) = result["files"]
    assert (file["text"], file["functions"], file["problem"]) == (SOURCES["shop/store.py"], ["save"], "")
    assert result["context"] == [
        {"path": "shop/orders.py", "summary": "About shop/orders.py."},
        {"path": "shop/money.py", "summary": "S" * 600},
    ]


def test_long_source_is_shortened_and_a_binary_one_is_reported(pages: Pages) -> None:
    write_files(pages.root, {"long.py": "x = 1\n" * 10_000, "binary.py": b"\x00"})
    given = {"files": [{"path": "long.py"}, {"path": "binary.py"}]}
    result: dict[str, Any] = read_sources(replace(pages.context, options=given))
    long, binary = result["files"]
    assert len(long["text"]) <= MAX_CHARACTERS + 50
    assert long["text"].endswith("… 6000 lines left out …")
    assert (binary["text"], binary["problem"]) == ("", "binary: it has a NUL byte")


@pytest.mark.parametrize("path", ["../secret.py", "/etc/passwd", "shop", "pyproject.toml"])
def test_only_sources_of_the_repository_are_read(pages: Pages, path: str) -> None:
    with pytest.raises(UsageError, match="check document_sources: files: "):
        read_sources(replace(pages.context, options={"files": [{"path": path}]}))


def test_files_an_analyst_left_out_are_reported(make_context: MakeContext) -> None:
    files: list[dict[str, object]] = [{"path": "a.py"}, {"path": "b.py"}, {"path": "c.py"}]
    said = [note("a.py"), {"path": "b.py", "summary": " "}, note("z.py")]
    context = make_context({})
    result: dict[str, Any] = judge_notes(replace(context, options={"files": files, "said": said}))
    assert (result["status"], result["missing"], result["strange"]) == ("incomplete", ["b.py", "c.py"], ["z.py"])
    assert result["reason"] == "missing in the answer: b.py, c.py"
    said = [note("b.py"), note("c.py")]
    options = {"files": files, "said": said, "notes": result["notes"]}
    again: dict[str, Any] = judge_notes(replace(context, options=options))
    assert (again["status"], again["missing"]) == ("complete", [])
    assert [each["path"] for each in again["notes"]] == ["a.py", "b.py", "c.py"]
