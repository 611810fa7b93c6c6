"""Workflow commands say what is meant, and what others wrote is none: read as GitHub's runner reads a log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.host.workflow_log import command, harmless, runs_here
from tests.support.workflow_log import HOSTILE, read_log

TEXTS = (
    st.text()
    | st.sampled_from(HOSTILE)
    | st.lists(st.sampled_from(["##[x]", "::x::", " ", "\r", "\n", ":", "#", "["])).map("".join)
)


@pytest.mark.parametrize("escape", ["%", "%25", "a%0Ab"])
def test_what_is_escaped_arrives(escape: str) -> None:
    [(name, properties, text)] = read_log(command("error", f"one: {escape}\ntwo", file="a,b:c.py", title="x=y"))
    assert (name, properties, text) == ("error", {"file": "a,b:c.py", "title": "x=y"}, f"one: {escape}\ntwo")


@given(TEXTS, TEXTS)
def test_text_never_becomes_a_command_of_its_own(text: str, title: str) -> None:
    [(name, properties, _)] = read_log(command("warning", text, title=title))
    assert name == "warning"
    assert set(properties) <= {"title"}


@given(TEXTS)
def test_harmless_text_has_no_command(text: str) -> None:
    assert read_log(harmless(text)) == []


def test_only_githubs_own_word_counts() -> None:
    assert runs_here({"GITHUB_ACTIONS": "true"})
    assert not runs_here({"GITHUB_ACTIONS": "false"})
    assert not runs_here({})
