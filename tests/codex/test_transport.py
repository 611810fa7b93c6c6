"""What arrives on a child's pipe, however it arrives. The child says the lines it is given, then answers requests."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.codex.approvals import ApprovalPolicy
from codex_multi_role.codex.child import Launch
from codex_multi_role.codex.client import RoleClient
from codex_multi_role.codex.running_turn import TurnDeadlines
from codex_multi_role.codex.thread import ThreadSettings
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.turn_outcome import TurnRequest
from codex_multi_role.codex.wire_log import WireLog
from codex_multi_role.errors import CodexCrashed, CodexRefused, CodexStartFailed
from tests.support.catalogs import raised

pytestmark = pytest.mark.real

SECONDS = 20.0
# An answer is what `method` names in the file: lines, with the request's id for ID; `aside` goes to stderr before it.
CHILD = """
import json, sys
said = json.load(open(sys.argv[1]))
for line in sys.stdin:
    request = json.loads(line)
    sys.stderr.write("".join(said.get("aside", ())))
    sys.stderr.flush()
    for answer in said[request["method"]]:
        sys.stdout.buffer.write(answer.encode("latin-1").replace(b"ID", str(request["id"]).encode()))
        sys.stdout.buffer.flush()
"""
Lines = dict[str, list[str]]


class Child:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.log = folder / "events.jsonl"
        self.transport: AppServerTransport | None = None

    def says(self, lines: Lines) -> AppServerTransport:
        transport = self.that_says(lines)
        transport.start()
        return transport

    def that_says(self, lines: Lines) -> AppServerTransport:
        """Not started yet."""
        (self._folder / "child.py").write_text(CHILD)
        (self._folder / "said.json").write_text(
            json.dumps({**lines, "hello": ['{"id": ID, "result": {"it": "lives"}}\n']})
        )
        command = [sys.executable, str(self._folder / "child.py"), str(self._folder / "said.json")]
        launch = Launch(command, os.environ, self._folder, self._folder / "stderr.log")
        self.transport = AppServerTransport(launch, WireLog(self.log, lambda text: text.replace("hunter2", "***")))
        return self.transport

    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().split("\n")[:-1]]


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    child = Child(tmp_path)
    yield child
    if child.transport is not None:
        child.transport.stop()


def lives(transport: AppServerTransport) -> bool:
    return transport.request("hello", {}, SECONDS) == {"it": "lives"}


@pytest.mark.parametrize(
    "line",
    [
        "not json\n",
        "{not json}\n",
        '{"id": ID, "result": {"cut": {"off": 1}\n',
        '{"text": "\xff"}\n',
        "\n",
        "[" * 100_000 + "\n",
        '{"a": ' * 100_000 + "1" + "}" * 100_000 + "\n",
        '{"id": [1], "result": {}}\n',
        '{"id": 987654, "result": {}}\n',
        '{"id": null, "error": "in another shape"}\n',
        '{"method": ["turn/completed"]}\n',
    ],
)
def test_invalid_line_is_logged_and_has_no_other_effect(child: Child, line: str) -> None:
    transport = child.says({"noise": [line, '{"id": ID, "result": {"after": "it"}}\n']})
    assert transport.request("noise", {}, SECONDS) == {"after": "it"}
    assert lives(transport)
    assert [entry["direction"] for entry in child.logged()] == ["out", "in", "in", "out", "in"]


@pytest.mark.parametrize("error", ['"text"', '{"code": "later", "message": {"of": "it"}}', "[]", "{}"])
def test_refusal_of_any_shape_is_a_refusal(child: Child, error: str) -> None:
    transport = child.says({"ask": [f'{{"id": ID, "error": {error}}}\n']})
    with pytest.raises(CodexRefused):
        transport.request("ask", {}, SECONDS)
    assert lives(transport)


def test_second_of_two_answers_changes_nothing(child: Child) -> None:
    transport = child.says({"ask": ['{"id": ID, "result": {"n": 1}}\n{"id": ID, "result": {"n": 2}}\n']})
    assert transport.request("ask", {}, SECONDS) == {"n": 1}
    assert lives(transport)


def test_line_of_megabytes_in_pieces_is_one_message(child: Child) -> None:
    text = "x" * 3_000_000
    whole = json.dumps({"method": "big", "params": {"text": text}}) + "\n"
    pieces = [whole[begin : begin + 700_001] for begin in range(0, len(whole), 700_001)]
    transport = child.says({"ask": [*pieces, '{"id": ID, "result": {}}\n']})
    transport.request("ask", {}, SECONDS)
    assert transport.next_message(SECONDS) == {"method": "big", "params": {"text": text}}


def test_child_has_a_session_of_its_own(child: Child) -> None:
    transport = child.says({})
    assert os.getsid(transport.pid) == transport.pid


def test_what_a_child_says_on_stderr_is_masked(child: Child, tmp_path: Path) -> None:
    transport = child.that_says({})
    (tmp_path / "child.py").write_text("import sys\nsys.exit('Error: hunter2 is wrong')\n")
    transport.start()
    assert raised(CodexCrashed, transport.request, "hello", {}, SECONDS).error_line == "Error: *** is wrong"
    assert "hunter2" not in (tmp_path / "stderr.log").read_text()


@pytest.mark.parametrize("late", ["os.close(1); time.sleep(0.3); sys.exit('Error: why')", "sys.exit('Error: why')"])
def test_last_error_of_a_child_is_reported_however_late(tmp_path: Path, late: str) -> None:
    """On a busy machine, both the end of the process and the reading of its last output may take a while."""

    def slow(text: str) -> str:
        time.sleep(0.3)
        return text

    command = [sys.executable, "-c", f"import os, sys, time; {late}"]
    launch = Launch(command, os.environ, tmp_path, tmp_path / "stderr.log")
    transport = AppServerTransport(launch, WireLog(tmp_path / "events.jsonl", slow))
    transport.start()
    try:
        with pytest.raises(CodexCrashed) as caught:
            transport.next_message(SECONDS)
    finally:
        transport.stop()
    assert str(caught.value) == "the Codex process ended with exit code 1: Error: why"


def test_last_line_that_was_cut_off_is_kept_as_text(child: Child) -> None:
    transport = child.says({"ask": ['{"id": ID, "result": {"cut": {"off": 1}']})
    answer = transport.ask("ask", {})
    assert transport._child is not None
    transport._child._stdin.close()
    with pytest.raises(CodexCrashed):
        answer.result(SECONDS)
    assert child.logged()[-1]["text"] == '{"id": 1, "result": {"cut": {"off": 1}'


def delta(text: str, item: str = "one", at: int = 0) -> str:
    params = {"itemId": item, "delta": text}
    return json.dumps({"method": "item/agentMessage/delta", "params": params, "emittedAtMs": at}) + "\n"


def test_child_that_says_more_than_anyone_reads_fills_no_memory(child: Child) -> None:
    words = [f"{number} " for number in range(50_000)]
    said = "".join(delta(word, at=number) for number, word in enumerate(words))
    transport = child.says({"flood": [said, '{"id": ID, "result": {}}\n']})
    transport.request("flood", {}, SECONDS)
    assert transport._inbox.qsize() < 100
    heard = [transport.next_message(SECONDS) for _ in range(transport._inbox.qsize())]
    assert "".join(message["params"]["delta"] for message in heard if isinstance(message, dict)) == "".join(words)
    assert [entry["message"] for entry in child.logged()[1:-1]] == heard


def test_child_is_read_even_if_its_stderr_cannot_be_saved(child: Child, tmp_path: Path) -> None:
    (tmp_path / "stderr.log").mkdir()
    transport = child.says({"aside": ["Error: nowhere to put this\n" * 10_000]})
    assert lives(transport)
    assert transport._running.error_line() == "Error: nowhere to put this"


def test_only_consecutive_deltas_of_one_item_are_merged(child: Child) -> None:
    other = '{"method": "item/started", "params": {"delta": "no text to join"}}\n'
    said = [delta("a"), delta("b"), delta("c", "two"), other, delta("d", "two"), delta("e", "two")]
    transport = child.says({"talk": ["".join(said) + '{"id": ID, "result": {}}\n']})
    transport.request("talk", {}, SECONDS)
    heard = [transport.next_message(SECONDS) for _ in range(4)]
    assert heard == [json.loads(line) for line in (delta("ab"), delta("c", "two"), other, delta("de", "two"))]


def test_delta_that_nothing_follows_does_not_wait_for_more(child: Child) -> None:
    transport = child.says({"talk": [delta("the last word")]})
    answer = transport.ask("talk", {})
    assert transport.next_message(SECONDS) == json.loads(delta("the last word"))
    assert not answer.done()


NOTHING = '{"id": ID, "result": {}}\n'
OTHER_SHAPES = [NOTHING, '{"id": ID, "result": {"WHAT": {"id": 7}}}\n']


def client_of(child: Child, answers: Lines) -> RoleClient:
    settled: Lines = {"initialize": [NOTHING], "initialized": [], "account/read": [NOTHING]}
    transport = child.that_says({**settled, **answers})
    return RoleClient(transport, ThreadSettings("/", "read-only", "untrusted", None), ApprovalPolicy(), {})


@pytest.mark.parametrize("shape", OTHER_SHAPES)
def test_thread_of_a_shape_we_do_not_know_is_a_failed_start(child: Child, shape: str) -> None:
    client = client_of(child, {"thread/start": [shape.replace("WHAT", "thread")]})
    with pytest.raises(CodexStartFailed, match="without the id of a thread"):
        client.start("0", None)


@pytest.mark.parametrize("shape", OTHER_SHAPES)
def test_turn_of_a_shape_we_do_not_know_is_refused(child: Child, shape: str) -> None:
    thread = '{"id": ID, "result": {"thread": {"id": "t"}}}\n'
    done = "thread/backgroundTerminals/clean"
    answers = {
        "thread/start": [thread],
        "turn/start": [shape.replace("WHAT", "turn")],
        done: ['{"id": ID, "result": {}}\n'],
    }
    client = client_of(child, answers)
    client.start("0", None)
    outcome = client.run_turn(TurnRequest("go"), TurnDeadlines(SECONDS, SECONDS), lambda _: None)
    assert (outcome.status, outcome.reason) == ("failed", "refused")
    assert "without the id of a turn" in outcome.message


def test_log_that_cannot_be_opened_costs_no_turn(tmp_path: Path) -> None:
    log = WireLog(tmp_path, str)
    log.open()
    log.write("out", b"{}")
    log.close()
    assert isinstance(log.failure, IsADirectoryError)
