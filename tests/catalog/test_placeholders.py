from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.catalog.placeholders import fill

_BRACE_TEXT = st.text("{}abc <>:[]|\n\"'%$\\") | st.text()


@given(_BRACE_TEXT)
def test_text_without_known_placeholders_survives(text: str) -> None:
    cleaned = text.replace("role_name", "")
    assert fill(cleaned, {"role_name": "planner"}) == cleaned


@given(before=_BRACE_TEXT, after=_BRACE_TEXT, value=_BRACE_TEXT)
def test_only_the_placeholder_changes(before: str, after: str, value: str) -> None:
    assert fill(f"{before}{{role_name}}{after}", {"role_name": value}) == f"{before}{value}{after}"


def test_values_are_not_filled_again() -> None:
    assert fill("{goal} {role_name}", {"goal": "{role_name}", "role_name": "x"}) == "{role_name} x"


def test_keys_are_taken_literally() -> None:
    assert fill("{a.b} {axb} {a.b|c}", {"a.b": "1", "a.b|c": "2"}) == "1 {axb} 2"
    assert fill("{} {a}", {}) == "{} {a}"
