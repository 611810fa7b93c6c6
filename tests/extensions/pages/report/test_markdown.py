from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.extensions.pages.report.values import markdown_as_html, result_html
from codex_multi_role.presentation.result import result_of
from codex_multi_role.run_folder import RunFolder


def test_markdown_is_rendered_for_pages_and_text_is_not(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "r")
    for kind, html in (("markdown", "<p>a <em>b</em> &lt;i&gt;</p>\n"), ("text", "<pre>a *b* &lt;i&gt;</pre>")):
        shown = result_of(folder, {"result": {"title": "T", "text": "a *b* <i>", "format": kind}})
        assert shown is not None
        assert result_html(shown) == html


def test_headings_lists_tables_and_code_are_rendered() -> None:
    html = markdown_as_html("# Answer\n\n- *one*\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\nx < 1\n```\n")
    assert "<h3>Answer</h3>" in html
    assert "<li><em>one</em></li>" in html
    assert "<td>1</td>" in html
    assert "<pre><code>x &lt; 1\n</code></pre>" in html
    assert "<h6>deep</h6>" in markdown_as_html("###### deep")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)>",
        "![picture](https://example.org/a.png)",
        "[link](javascript:alert(1))",
        "[link](data:text/html,<script>alert(1)</script>)",
        "<javascript:alert(1)>",
        '`"><script>`',
    ],
)
def test_nothing_is_executed_or_loaded(text: str) -> None:
    html = markdown_as_html(text)
    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html
    assert 'href="data' not in html
