from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.playbook.responses import StreamIds, encode, http_error, split, stream
from codex_multi_role.playbook.script import Fault, Usage
from codex_multi_role.playbook.selection import Message, ToolCall

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
