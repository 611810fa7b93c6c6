from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.extensions.research.citations import (
    NAMELESS,
    check_prose,
    citations_in,
    count_words,
    with_citations,
)
from codex_multi_role.extensions.research.report_text import Chapter, Research, as_markdown, page
from tests.support.checks import MakeContext

WILD = st.text(alphabet="[]cite:S12, \n`*#<a>(x)|_!\\", max_size=60) | st.lists(
    st.sampled_from(
        [
            "[cite:S1]",
            "[cite:S1, S9]",
            "[",
            "cite:S9]",
            "[cite:",
            "[cite:]",
            "[CITE:S2]",
            "word ",
            "\n\n",
            "![x](http://y)",
        ]
    )
).map("".join)
SOURCES = [
    {"id": name, "title": f"<b>{name}</b>", "address": address, "date": "", "duplicates": []}
    for name, address in (("S1", "a_b.md"), ("S2", "javascript:alert(1)"))
]


@pytest.mark.parametrize(
    ("text", "ids", "words"),
    [
        ("One [cite:S1] and two [cite:S2].", ["S1", "S2"], 3),
        ("It's 3.5 metres[cite:S1, S2;S1]", ["S1", "S2"], 3),
        ("[CITE: S1 ] well-known", ["S1"], 1),
        ("[cite:] [cite: , ] left [cite:S1 open", [NAMELESS], 3),
        ("[S1] (cite:S1)", [], 3),
    ],
)
def test_what_is_cited_and_what_counts_as_a_word(text: str, ids: list[str], words: int) -> None:
    assert citations_in(text) == ids
    assert count_words(text) == words


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("one two [cite:S1]", []),
        ("one", ["it has 1 words, at least 2 are required"]),
        ("one two three four", ["it has 4 words, at most 3 are required"]),
        ("one two [cite:S7]", ["it cites S7, which is not a source"]),
    ],
)
def test_prose_is_held_to_its_length_and_its_sources(make_context: MakeContext, text: str, problems: list[str]) -> None:
    judged = check_prose(make_context({}, text=text, sources=["S1"], min_words=2, max_words=3))
    assert (judged["status"], judged["problems"]) == ("unfit" if problems else "fits", problems)


def research(body: str) -> Research:
    fact = {"claim": body, "confidence": 0.5, "sources": ["S1"], "notes": body, "is_consistent": False}
    conflict = {
        "topic": body,
        "description": body,
        "preferred_claim": body,
        "resolution_basis": "recency",
        "notes": body,
    }
    chapters = [Chapter(body or "T", "Q?", body, [body], citations_in(body))]
    return Research(body, "quick", "2026-01-01", chapters, [fact], [{**conflict, "sources": ["S2"]}], SOURCES, [body])


@settings(max_examples=settings().max_examples // 2)
@given(WILD)
def test_report_cites_only_known_sources(body: str) -> None:
    """This holds for any text that was written."""
    left = with_citations(body, ["S1"], lambda name: f"<{name}>")
    assert citations_in(left) == []
    assert set(citations_in(as_markdown(research(body)))) <= {"S1", "S2"}


@settings(max_examples=settings().max_examples // 2)
@given(WILD)
def test_no_page_loads_or_runs_anything_whatever_was_written(body: str) -> None:
    written = page(research(body))
    assert "<img" not in written
    assert 'href="javascript' not in written
    assert "<b>S1" not in written.replace('<li id="source-S1"><b>S1', "")
    assert "default-src 'none'" in written
