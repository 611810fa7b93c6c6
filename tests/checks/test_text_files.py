from __future__ import annotations

from dataclasses import replace

import pytest

from codex_multi_role.checks import RunFacts, find_check
from codex_multi_role.checks.text_files import read_file, write_file
from codex_multi_role.errors import CheckFailed, CodexMultiRoleError, UsageError
from tests.support.checks import MakeContext


def test_what_is_written_is_read(make_context: MakeContext) -> None:
    context = make_context({}, path="deep/a.txt", content="öne\n")
    assert write_file(context)["status"] == "written"
    assert read_file(make_context({}, path="deep/a.txt"))["content"] == "öne\n"


@pytest.mark.parametrize("path", ["../up.txt", "/etc/passwd", ".git/config"])
def test_nothing_outside_is_read_or_written(make_context: MakeContext, path: str) -> None:
    with pytest.raises(CodexMultiRoleError, match="unsafe path"):
        read_file(make_context({}, path=path))
    with pytest.raises(CheckFailed, match="was not written: unsafe path"):
        write_file(make_context({}, path=path, content="x"))


def test_non_utf8_file_is_reported(make_context: MakeContext) -> None:
    context = make_context({}, path="a.bin")
    (context.workspace.root / "a.bin").write_bytes(b"\xff\x00")
    with pytest.raises(CheckFailed, match=r"a\.bin: line 1: not UTF-8 text"):
        read_file(context)


def test_answer_is_written_to_the_run_folder(make_context: MakeContext) -> None:
    context = make_context({}, text="It is 42.\n\n")
    run = context.folder.parent
    facts = RunFacts("one", "plan-solve", "", run, "answer.1", [])
    assert find_check("answer")(replace(context, run=lambda: facts)) == {"status": "written", "file": "answer.md"}
    assert (run / "answer.md").read_text() == "It is 42.\n"


def test_empty_answer_is_none(make_context: MakeContext) -> None:
    with pytest.raises(UsageError, match="check answer: "):
        find_check("answer")(make_context({}, text=""))
