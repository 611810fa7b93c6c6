"""An answer is reduced to what a replay needs, and comes back as a stream that says the same."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.extensions.replays.answers import BROKEN, ENDS, KEPT_OF_RESPONSE, events_of, reduced
from codex_multi_role.playbook.responses import Event, StreamIds, encode, stream
from codex_multi_role.playbook.script import Fault, Usage
from codex_multi_role.playbook.selection import Message, ToolCall

USAGE = Usage(input_tokens=7, output_tokens=3)
IDS = StreamIds("resp_1", "msg_1", "call_1")


def wire(answer: Message | ToolCall | Fault) -> bytes:
    return b"".join(encode(event) for event in stream(answer, USAGE, IDS))


def recorded(raw: bytes, *, whole: bool = True, status: int = 200) -> dict[str, Any]:
    return reduced(status, {"content-type": "text/event-stream", "x-secret": "s3cret"}, raw, whole=whole)


def again(answer: dict[str, Any]) -> bytes:
    return b"".join(map(encode, events_of(answer)))


def test_message_keeps_its_text_and_usage() -> None:
    answer = recorded(wire(Message("one two three", 3)))
    assert answer["end"] == "completed"
    assert [item["content"][0]["text"] for item in answer["items"]] == ["one two three"]
    assert answer["response"]["usage"]["output_tokens"] == 3


def test_replayed_stream_is_reduced_to_the_same() -> None:
    for each in (Message("hello"), Message(""), ToolCall("exec_command", '{"cmd": "ls"}')):
        answer = recorded(wire(each))
        assert recorded(again(answer)) == answer


def test_failure_in_the_stream_stays_one() -> None:
    answer = recorded(wire(Fault(code="context_length_exceeded", message="too long")))
    assert (answer["end"], answer["response"]["error"]["code"]) == ("failed", "context_length_exceeded")
    assert b"response.failed" in again(answer)


def test_broken_stream_breaks_off_again_after_same_text() -> None:
    answer = recorded(wire(Message("one two three", 3))[:-400], whole=False)
    assert answer["end"] == "broken"
    events = [event["type"] for event in events_of({**answer, "items": []})]
    assert events[0] == "response.created"
    assert "response.completed" not in events
    assert recorded(again(answer), whole=False)["text"] == answer["text"]


def test_error_keeps_status_text_and_pause_but_no_other_header() -> None:
    answer = reduced(429, {"retry-after": "7", "set-cookie": "id=1"}, b'{"error": {}}', whole=True)
    assert answer == {"status": 429, "end": "text", "headers": {"retry-after": "7"}, "text": '{"error": {}}'}


def test_answer_that_is_not_a_stream_is_kept_as_text() -> None:
    assert recorded(b"<html>log in</html>")["text"] == "<html>log in</html>"


def test_what_is_encrypted_is_left_out() -> None:
    thought: Event = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    summary: Event = {"type": "compaction", "encrypted_content": "gAAB"}
    raw = b"".join(encode({"type": "response.output_item.done", "item": item}) for item in (thought, summary))
    answer = recorded(raw + encode({"type": "response.completed", "response": {"id": "r"}}))
    assert answer["items"] == [{"type": "reasoning", "summary": []}, {**summary, "encrypted_content": "recorded"}]


def test_complete_item_of_broken_stream_is_not_kept_as_text() -> None:
    """It is kept as an item."""
    raw = wire(Message("one two", 2))
    answer = recorded(raw[: raw.index(b"event: response.completed")], whole=False)
    assert [item["content"][0]["text"] for item in answer["items"]] == ["one two"]
    assert answer["text"] == ""


@given(st.binary(max_size=400), st.booleans())
def test_whatever_comes_can_be_kept(raw: bytes, whole: bool) -> None:
    json.dumps(recorded(raw, whole=whole))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)
PARTS = st.lists(st.fixed_dictionaries({}, optional={"text": st.text(max_size=9) | JSON}), max_size=3)
ITEM = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "reasoning", "function_call"]) | JSON},
    optional={"content": PARTS | JSON, "encrypted_content": JSON, "id": JSON},
)
RESPONSE = st.fixed_dictionaries({}, optional=dict.fromkeys(KEPT_OF_RESPONSE, JSON))
EVENT = st.fixed_dictionaries(
    {"type": st.sampled_from(["response.output_item.done", "response.output_text.delta", "another", *ENDS])},
    optional={"item": ITEM | JSON, "delta": st.text(max_size=9) | JSON, "response": RESPONSE | JSON},
)


@given(st.lists(EVENT, min_size=1, max_size=6), st.booleans())
def test_whatever_a_stream_holds_comes_again_as_it_was_kept(events: list[Event], whole: bool) -> None:
    answer = recorded(b"".join(map(encode, events)), whole=whole)
    played = recorded(again(answer), whole=answer["end"] != BROKEN)
    kept = ("end", "items", "text")
    assert [played.get(name) for name in kept] == [answer.get(name) for name in kept]
    assert answer.get("response", {}).items() <= played.get("response", {}).items()
