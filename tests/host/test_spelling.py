"""What nobody sees is removed from a text, and nothing else."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.host.spelling import KEPT_IN_PAGES, printable

ANY_TEXT = st.text(st.characters())  # lone surrogates too


@given(ANY_TEXT)
def test_only_hidden_characters_are_removed(text: str) -> None:
    assert printable(text) == "".join(letter for letter in text if not unicodedata.category(letter).startswith("C"))


@given(ANY_TEXT, st.sampled_from(["", "\n", "\n\t", KEPT_IN_PAGES]))
def test_cleaned_text_is_encodable_and_stays_as_it_is(text: str, keep: str) -> None:
    cleaned = printable(text, keep)
    cleaned.encode()
    assert printable(cleaned, keep) == cleaned


@pytest.mark.parametrize("text", ["\U0001f468\u200d\U0001f469", "\u06cc\u200c\u062e", "e\u0301", "\ufe0f\u2028"])
def test_pages_keep_what_joins_letters(text: str) -> None:
    assert printable(text, KEPT_IN_PAGES) == text


def test_many_different_hidden_characters_take_no_longer() -> None:
    """Each text is read a fixed number of times, however many different characters are to be removed."""
    text = "".join(map(chr, [*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE)]))
    assert printable(f"{text * 3}a") == "a"
