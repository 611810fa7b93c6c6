from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.errors import UsageError
from codex_multi_role.playbook.request import CODEX_COMPACTED_MESSAGE, AnswerKey, CompactionRequest, read_request
from codex_multi_role.playbook.responses import StreamIds, encode, http_error, split, stream
from codex_multi_role.playbook.script import Fault, Usage
from codex_multi_role.playbook.selection import Message, ToolCall
from tests.support.models import asked, body, tool_output, user

IDS = StreamIds("resp_1", "msg_1", "call_1")
USAGE = Usage(input_tokens=4, output_tokens=2)


def kinds(answer: Message | ToolCall | Fault) -> list[object]:
    return [event["type"] for event in stream(answer, USAGE, IDS)]


@given(st.text(), st.integers(min_value=0, max_value=50))
def test_pieces_of_a_text_make_the_text(text: str, pieces: int) -> None:
    parts = split(text, pieces)
    assert "".join(parts) == (text if pieces else "")
    assert len(parts) == min(pieces, len(text))
    assert all(parts)


def test_message_streams_its_deltas_and_ends_with_the_whole() -> None:
    events = list(stream(Message("hello", deltas=2), USAGE, IDS))
    assert [event["type"] for event in events] == [
        "response.created",
        "response.output_item.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event["delta"] for event in events[2:4]] == ["he", "llo"]
    assert events[4]["item"]["content"][0]["text"] == "hello"  # type: ignore[index, call-overload]
    assert events[5]["response"]["usage"]["total_tokens"] == 6  # type: ignore[index, call-overload]


def test_deltas_can_be_left_out() -> None:
    assert "response.output_text.delta" not in kinds(Message("hello", deltas=0))
    assert kinds(Message("hello")).count("response.output_text.delta") == 5


def test_tool_call_is_one_item() -> None:
    done = list(stream(ToolCall("ls", "{}"), USAGE, IDS))[2]
    assert done["item"] == {
        "type": "function_call",
        "id": "msg_1",
        "call_id": "call_1",
        "name": "ls",
        "arguments": "{}",
    }


def test_empty_answer_completes_and_a_code_fails_the_stream() -> None:
    assert kinds(Fault(empty=True)) == ["response.created", "response.completed"]
    failed = list(stream(Fault(code="context_length_exceeded", message="too long"), USAGE, IDS))[-1]
    assert failed["response"]["error"] == {"code": "context_length_exceeded", "message": "too long"}  # type: ignore[index, call-overload]


@given(st.integers(min_value=0, max_value=30))
def test_break_off_never_completes(after_events: int) -> None:
    for fault in (Fault(drop=True, after_events=after_events), Fault(stall_seconds=1, after_events=after_events)):
        sent = kinds(fault)
        assert len(sent) == after_events
        assert not {"response.output_item.done", "response.completed"} & set(sent)


def test_event_on_the_wire() -> None:
    assert encode({"type": "response.created"}) == b'event: response.created\ndata: {"type": "response.created"}\n\n'


def test_http_error_has_the_api_s_body_or_its_own() -> None:
    error = json.loads(http_error(Fault(status=429, code="usage_limit_reached", message="enough")))["error"]
    assert (error["type"], error["message"]) == ("usage_limit_reached", "enough")
    assert json.loads(http_error(Fault(status=500, body={"detail": "x"}))) == {"detail": "x"}


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
