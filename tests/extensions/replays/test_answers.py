"""What a replay needs of an answer, and what differs by itself: an answer comes back as a stream that says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.extensions.replays.answers import BROKEN, ENDS, KEPT_OF_RESPONSE, events_of, reduced
from codex_multi_role.extensions.replays.normalization import PathNames, normalize
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


HERE = PathNames({"workspace": Path("/work/me/shop"), "run folder": Path("/work/me/runs/1"), "home": Path("/work")})
THERE = PathNames({"workspace": Path("/srv/ci/shop two"), "run folder": Path("/srv/ci/r"), "home": Path("/home/ci")})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 failed in 0.12s", "1 failed in 61.70s (0:01:01)"),
        ("runs/20260131_101500_0123abcd/x", "runs/20261231_235959_fedc9876/x"),
        ("at 2026-01-31T10:15:00.123+00:00", "at 2027-02-01 11:16:01Z"),
        ("<Shop object at 0x7ff777fa51d0>", "<Shop object at 0x55aa77fa51d0>"),
        ('"seconds": 0.7', '"seconds": 12'),
        ("/tmp/tmpab12/x.py", "/tmp/other/x.py"),
        ("/tmp/tmpab12/copy/shop/x.py", "/tmp/other/copy/workspace/x.py"),
        ("a\nplatform linux -- Python 3.11.7, pytest-9\nb", "a\nplatform darwin -- Python 3.13.0, pytest-9\nb"),
        ("/tmp/pytest-of-me/pytest-3/test_a0", "/tmp/pytest-of-root/pytest-77/test_a0"),
        ('"solver/turn_001/analysis.md"', '"solver.2/turn_003/analysis.md"'),
        ('"solver/turn_001/analysis.md"', '"<<run folder>>/solver/turn_003/analysis.md"'),
        ("see tests/001/junit.xml", "see tests/002/junit.xml"),
    ],
)
def test_what_is_passed_over(one: str, other: str) -> None:
    assert normalize(one) == normalize(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("within 30 seconds", "within 60 seconds"), ("version 1.2", "version 1.3"), ("3 failed", "4 failed"), ("a ", "a")],
)
def test_what_is_not(one: str, other: str) -> None:
    assert normalize(one) != normalize(other)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("cd /work/me/shop && ls", "cd <<workspace>> && ls"),
        ("cc -I/work/me/shop/include", "cc -I<<workspace>>/include"),
        ("file:///work/me/shop.", "file://<<workspace>>."),
        ("/work/me/shop-old and /work/me/shop.bak", "<<home>>/me/shop-old and <<home>>/me/shop.bak"),
        ("/work/me/runs/1/solver", "<<run folder>>/solver"),
        ("/our/work is no home, /workshop neither", "/our/work is no home, /workshop neither"),
    ],
)
def test_paths_have_names(text: str, named: str) -> None:
    assert HERE.named(text) == named


def test_answer_is_put_into_another_workspace() -> None:
    call = {"arguments": json.dumps({"cmd": "ls", "workdir": "/work/me/shop"}), "n": [1, "/work/me/shop/a", None]}
    placed = THERE.placed(HERE.named(call))
    assert placed["n"] == [1, "/srv/ci/shop two/a", None]
    assert json.loads(placed["arguments"])["workdir"] == "/srv/ci/shop two"


def test_path_that_json_spells_otherwise_is_found() -> None:
    places = PathNames({"workspace": Path('/work/me/a "b" é')})
    assert json.loads(places.named(json.dumps({"at": '/work/me/a "b" é/x'}))) == {"at": "<<workspace>>/x"}


def test_root_of_all_has_no_name() -> None:
    assert PathNames({"home": Path("/")}).named("/etc/passwd") == "/etc/passwd"


@given(st.text(st.characters(codec="utf-8")))
def test_what_is_named_is_placed_again(text: str) -> None:
    if "<<" not in text:
        assert HERE.placed(HERE.named(text)) == text
