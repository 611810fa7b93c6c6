from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.errors import UsageError
from codex_multi_role.playbook.request import CODEX_COMPACTED_MESSAGE, AnswerKey, CompactionRequest, read_request
from tests.support.models import asked, body, tool_output, user


def test_metadata_says_which_answer_is_wanted() -> None:
    request = asked("do it", AnswerKey("integrator", 3, 1, 2))
    assert request.ask == AnswerKey(role="integrator", visit=3, repair=1, attempt=2)
    assert (request.prompt, request.step) == ("do it", 0)


def test_prompt_is_the_last_one_that_codex_did_not_write() -> None:
    items = (user("first"), user("second"), user("<environment_context>\n<cwd>/</cwd>"))
    assert read_request(body(*items)).prompt == "second"  # type: ignore[union-attr]


def test_tool_outputs_of_this_turn_are_the_step() -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    earlier_turn = tool_output(0, "old", turn_id="another")
    request = read_request(body(user("one"), earlier_turn, user("two"), tool_output(0, "x"), tool_output(1, parts)))
    assert request.tool_outputs == ("x", "a\nb")
    assert request.step == 2


def test_compaction_in_the_middle_of_a_turn_loses_no_step() -> None:
    full = read_request(body(user("go"), tool_output(0, "x"), user("Summarize."), request_kind="compaction"))
    assert isinstance(full, CompactionRequest)
    summary = f"{CODEX_COMPACTED_MESSAGE} and so on:\n{full.summary}"
    request = asked("go")
    compacted = read_request(body(user("go"), user(summary), tool_output(1, "y")))
    assert compacted.tool_outputs == ("x", "y")
    assert compacted.prompt == request.prompt  # type: ignore[union-attr]


def test_compaction_on_demand_carries_no_role() -> None:
    assert isinstance(read_request(body(user("go"), ask=None, request_kind="compaction")), CompactionRequest)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "body: Invalid JSON"),
        (b"{}", "input: Field required"),
        (json.dumps({"input": [], "client_metadata": {}}).encode(), "x-codex-turn-metadata: Field required"),
        (body(user("go"), ask=None), "multi_role_role: Field required"),
        (
            body(user("go"), ask=AnswerKey("planner", 0, 0, 1)),
            "multi_role_visit: Input should be greater than or equal to 1",
        ),
    ],
)
def test_request_without_its_metadata_is_refused(raw: bytes, problem: str) -> None:
    with pytest.raises(UsageError, match="without the metadata of a turn") as caught:
        read_request(raw)
    assert problem in str(caught.value)


@given(st.binary() | st.recursive(st.none() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_nothing_but_a_usage_error_comes_of_wild_bodies(wild: object) -> None:
    with pytest.raises(UsageError):
        read_request(wild if isinstance(wild, bytes) else json.dumps(wild).encode())
