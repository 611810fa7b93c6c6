"""What goes into a page: escaped, without secrets, cut with a note; parts of extensions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from codex_multi_role.extensions.pages.report import rendering
from codex_multi_role.extensions.pages.report.page import write_report
from codex_multi_role.extensions.pages.report.parts import Reader, Text
from codex_multi_role.extensions.pages.report.values import diff_html, markdown_as_html, result_html, value_html
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.presentation.result import result_of
from codex_multi_role.run_folder import RunFolder
from tests.support.browser import Report
from tests.support.plugins import install
from tests.support.recorded_runs import make_run


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the templates, with one; none is loaded yet."""
    (tmp_path / "one.html").write_text("<b>{{ word }}</b>")
    monkeypatch.setattr(rendering, "TEMPLATES", tmp_path)
    monkeypatch.setattr(rendering, "_environment", rendering._environment.__wrapped__)
    return tmp_path


def shown() -> str:
    return rendering.template("one.html").render(word="<&>")


def test_values_are_escaped_and_unknown_names_are_errors(templates: Path) -> None:
    assert shown() == "<b>&lt;&amp;&gt;</b>"
    with pytest.raises(UndefinedError, match="'word' is undefined"):
        rendering.template("one.html").render()


CUT_AT = 4000
SECRET = "hunter2-" + "0123456789" * 16
REDACT = Redactor({"MY_SECRET": SECRET})


def read(folder: Path, text: str) -> Text:
    path = folder / "changes.patch"
    path.write_text(text)
    found = Reader(folder, REDACT, CUT_AT).text(path, exact=True)
    assert found is not None
    return found


def test_text_that_is_shorter_without_its_secrets_is_still_cut(tmp_path: Path) -> None:
    whole = f"{SECRET}\n" * 600
    text = read(tmp_path, whole)
    assert text.of == len(whole)
    assert set(text.text.splitlines()) == {"[redacted]"}


@pytest.mark.parametrize("before", [0, 1, 7, 8, 100, len(SECRET) - 1, len(SECRET)])
def test_no_part_of_a_secret_stays_where_it_lies_across_the_cut(tmp_path: Path, before: int) -> None:
    words = "." * (CUT_AT - before)
    text = read(tmp_path, words + SECRET + "." * CUT_AT)
    assert text.text.removesuffix("[redacted]") == words
    assert text.of == 2 * CUT_AT - before + len(SECRET)


def test_size_of_cut_text_is_given_in_bytes() -> None:
    text = Reader(Path(), REDACT, CUT_AT).cut("é" * 5000)
    assert (len(text.text), text.of) == (CUT_AT, 10_000)


LARGE = [{"n": number} for number in range(3000)]
VALUES = [
    (
        {"a": None, "b": [1, True, "<x>"], "c": {}},
        ["<dt>a</dt><dd><span>null</span>", "<li><span>&lt;x&gt;</span></li>"],
    ),
    ([{"id": "T1", "needs": ["T0", 1]}, {"id": "T2"}], ["<td>T1</td><td>T0, 1</td>", "<td>T2</td><td></td>"]),
    ([{"id": "a\nb"}, {"id": "c"}], ['<li><dl><div><dt>id</dt><dd><pre tabindex="0">a\nb</pre>']),
    (json.loads('{"a": NaN, "b": [1e999]}'), ["<span>NaN</span>", "<span>Infinity</span>"]),
    (LARGE, ['<pre tabindex="0">[\n {\n  &#34;n&#34;: 0']),
    (json.loads("[" * 60 + "]" * 60), ['<pre tabindex="0">[\n [\n']),
    ("a\u202eb\x1b", ["<span>ab</span>"]),
]


@pytest.mark.parametrize(("value", "parts"), VALUES)
def test_value_is_drawn_by_its_shape_and_large_one_as_json(value: object, parts: list[str]) -> None:
    for part in parts:
        assert part in value_html(value)


def test_changes_are_lines_by_kind_and_headings_are_no_changes() -> None:
    patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-<old>\n+one\n+two\n"
    spans = [("file", "diff --git a/a b/a"), ("meta", "--- a/a\n+++ b/a"), ("hunk", "@@ -1 +1 @@")]
    spans += [("del", "-&lt;old&gt;"), ("add", "+one\n+two")]
    assert "".join(f'<span class="{kind}">{text}</span>' for kind, text in spans) in diff_html(patch)


SOURCE = """
from markupsafe import Markup
from codex_multi_role.extensions.pages.report.page_parts import ReportPart

def extra(folder, changed):
    return ReportPart("extra", "Extra", "What else there is", ["<b>", Markup("<i>of </i>"), folder.run_id])

def nothing(folder, changed):
    return None

def pieces():
    yield "started"
    raise OSError("ghp_0123456789abcdefghij0123456789abcdef is gone")

def halfway(folder, changed):
    return ReportPart("halfway", "Halfway", "Half", pieces())
"""


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    names = ["extra", "nothing", "halfway"]
    install(tmp_path, monkeypatch, "page_parts", names, SOURCE, ["not_there = extra_page_parts:no_such"])
    return Report(write_report(make_run(tmp_path / "runs", "first")))


def test_part_of_an_extension_is_below_the_turns_and_linked(report: Report) -> None:
    assert 'id="extra" aria-labelledby="extra-heading">' in report.source
    assert "What else there is <b>of first" in report.text
    assert {"#extra", "#halfway", "#not_there"} < {*report.links}
    assert 'id="nothing"' not in report.source


def test_part_that_fails_says_why_and_stops_no_other(report: Report) -> None:
    assert "Half startedThis cannot be shown: [redacted] is gone" in report.text
    assert "Not there This cannot be shown: the part of the report 'not_there'" in report.text


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
