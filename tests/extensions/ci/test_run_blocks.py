"""Text of others in Markdown stays code."""

from __future__ import annotations

import pytest

from codex_multi_role.extensions.ci.run_blocks import code, code_block


@pytest.mark.parametrize(
    ("line", "span"),
    [("``\u200b`", "```` ``` ````"), ("\u202e", ""), ("a\x1b[2Jb", "`a[2Jb`"), ("\u200b/merge", "`/merge`")],
)
def test_code_in_markdown_is_fenced_after_cleaning(line: str, span: str) -> None:
    """Otherwise what is removed from a text could make it end its own fence."""
    assert code(line) == span
    assert code_block([f"{line}`"])[0].startswith("````" if "``" in line else "```")
    assert not code_block([line])[1].startswith("/")
