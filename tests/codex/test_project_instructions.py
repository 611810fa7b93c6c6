"""AGENTS.md files are found as Codex finds them, and nothing in their place can block or flood a start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codex_multi_role.codex.project_instructions import ProjectInstructions
from tests.support.workspaces import write_files


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """A folder two levels below the root of a project."""
    (tmp_path / "root" / ".git").mkdir(parents=True)
    write_files(tmp_path, {"AGENTS.md": "above the root", "root/AGENTS.md": "root\n"})
    part = tmp_path / "root" / "a" / "b"
    part.mkdir(parents=True)
    return part


def documents(workspace: Path, folder: Path | None = None, **settings: object) -> list[str]:
    message = ProjectInstructions.configured(workspace, settings).developer_message(folder or workspace)
    return message.partition("<INSTRUCTIONS>\n")[2].partition("\n</INSTRUCTIONS>")[0].split("\n\n") if message else []


def test_documents_go_from_the_root_down_to_the_workspace(part: Path) -> None:
    (part.parent / "AGENTS.md").write_text("a")
    (part / "AGENTS.md").write_text("b")
    assert documents(part) == ["root", "a", "b"]


def test_document_of_a_home_that_codex_does_not_read_comes_first(part: Path, tmp_path: Path) -> None:
    """Its size does not count towards that of the project's."""
    write_files(tmp_path, {"home/AGENTS.md": "the user's\n"})
    for home, shown in ((tmp_path / "home", ["the user's", "root"]), (tmp_path / "none", ["root"])):
        settings = {"project_doc_max_bytes": 4}
        message = ProjectInstructions.configured(part, settings, home).developer_message(part)
        assert message.partition("<INSTRUCTIONS>\n")[2].partition("\n</INSTR")[0].split("\n\n") == shown


def test_override_wins_and_fallback_names_come_last(part: Path) -> None:
    (part.parent.parent / "AGENTS.override.md").write_text("override")
    (part / "CLAUDE.md").write_text("fallback")
    assert documents(part) == ["override"]
    assert documents(part, project_doc_fallback_filenames=["CLAUDE.md"]) == ["override", "fallback"]


def test_settings_of_root_and_size_are_followed(part: Path) -> None:
    (part / "AGENTS.md").write_text("innermost")
    assert documents(part, project_root_markers=[]) == ["innermost"]
    assert documents(part, project_root_markers=["AGENTS.md"]) == ["innermost"]
    assert documents(part, project_doc_max_bytes=7) == ["root", "in"]
    assert documents(part, project_doc_max_bytes=0) == []


def test_copy_has_its_own_document_and_those_above_the_workspace(part: Path, tmp_path: Path) -> None:
    (part / "AGENTS.md").write_text("of the workspace")
    copy = tmp_path / "copy"
    write_files(copy, {"AGENTS.md": "of the copy"})
    assert documents(part, copy) == ["root", "of the copy"]


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "dangling"])
def test_document_that_is_not_a_file_is_ignored(part: Path, kind: str) -> None:
    """An AGENTS.md may be a pipe, a device, a folder or a dangling link."""
    path = part / "AGENTS.md"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to("nowhere")
    assert documents(part) == ["root"]


def test_invalid_settings_and_texts_do_no_harm(part: Path) -> None:
    (part / "AGENTS.md").write_bytes(b"\xff text")
    found = documents(part, project_doc_max_bytes="many", project_doc_fallback_filenames=3, project_root_markers=4)
    assert found == ["� text"]
