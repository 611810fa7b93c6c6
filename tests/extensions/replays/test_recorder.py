"""The recorder hands everything on unchanged, and writes down the answers and no secret."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays.recorder import RecordingProxy
from codex_multi_role.extensions.replays.recording import RecordingFile
from codex_multi_role.extensions.replays.upstream import certificates
from codex_multi_role.playbook.loopback import END_OF_STREAM, JSON, LoopbackHandler, LoopbackServer
from codex_multi_role.playbook.responses import StreamIds, encode, stream
from codex_multi_role.playbook.script import Usage
from codex_multi_role.playbook.selection import Message
from tests.support.models import PLANNER, body, user
from tests.support.recordings import exchanges_of

TOKEN = "not-shaped-like-a-secret-but-one"
USAGE = Usage(input_tokens=1, output_tokens=1)
EVENTS = [encode(event) for event in stream(Message("one two", 2), USAGE, StreamIds("r", "m", "c"))]
Answer = Callable[["Upstream"], None]


class Upstream(LoopbackHandler):
    """Answers as the test says."""

    def serves(self, path: str) -> bool:
        return True

    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        self.do_POST()

    def do_POST(self) -> None:  # noqa: N802 - as above
        server = self.server
        assert isinstance(server, Server)
        size = int(self.headers.get("Content-Length", 0))
        server.received.append((f"{self.command} {self.path}", dict(self.headers), self.rfile.read(size)))
        server.answering(self)

    def whole(self) -> None:
        self.begin_stream()
        for event in EVENTS:
            self.chunk(event)
        self.chunk(END_OF_STREAM)


class Server(LoopbackServer):
    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, str], bytes]] = []
        self.answering: Answer = Upstream.whole
        super().__init__("upstream", Upstream)


@pytest.fixture
def upstream() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def file(tmp_path: Path) -> RecordingFile:
    made = RecordingFile(tmp_path / "run.ndjson", lambda line: line)
    made.begin({})
    return made


@contextmanager
def through(file: RecordingFile, url: str, account_url: str = "") -> Iterator[tuple[http.client.HTTPConnection, str]]:
    """A connection to the recorder, and the path below it that leads to ``url``."""
    with RecordingProxy(file) as proxy:
        host, _, path = proxy.through("Mine", url, account_url).removeprefix("http://").partition("/")
        client = http.client.HTTPConnection(host, timeout=20)
        try:
            yield client, f"/{path}"
        finally:
            client.close()


def post(client: http.client.HTTPConnection, path: str, **headers: str) -> http.client.HTTPResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    client.request("POST", f"{path}/responses", body(user("go")), named)
    return client.getresponse()


def test_request_arrives_whole_and_its_answer_comes_back_whole(upstream: Server, file: RecordingFile) -> None:
    with through(file, f"{upstream.address}/v1?no") as (client, path):
        assert post(client, path, Authorization=f"Bearer {TOKEN}", X_Team="blue").read() == b"".join(EVENTS)
    with through(file, f"{upstream.address}/v1") as (client, path):
        client.request(
            "POST", f"{path}/responses?api-version=3", body(user("go")), {"Authorization": f"Bearer {TOKEN}"}
        )
        assert client.getresponse().read() == b"".join(EVENTS)
    line, headers, sent = upstream.received[-1]
    assert (line, headers["authorization"], sent) == (
        "POST /v1/responses?api-version=3",
        f"Bearer {TOKEN}",
        body(user("go")),
    )
    recorded = exchanges_of(file.path)[-1]
    assert (recorded["role"], recorded["prompt"], recorded["end"]) == ("planner", "go", "completed")
    assert TOKEN not in file.path.read_text()


def test_answer_is_passed_on_as_it_comes(upstream: Server, file: RecordingFile) -> None:
    first_arrived = threading.Event()

    def answer(handler: Upstream) -> None:
        handler.begin_stream()
        handler.chunk(EVENTS[0])
        handler.wfile.flush()
        assert first_arrived.wait(20)  # the second event is not sent before the first was read at the other end
        handler.chunk(b"".join(EVENTS[1:]))
        handler.chunk(END_OF_STREAM)

    upstream.answering = answer
    with through(file, upstream.address) as (client, path):
        response = post(client, path)
        assert response.read(len(EVENTS[0])) == EVENTS[0]
        first_arrived.set()
        assert response.read() == b"".join(EVENTS[1:])
    assert exchanges_of(file.path)[0]["items"][0]["content"][0]["text"] == "one two"


def test_token_that_the_answer_repeats_is_masked(upstream: Server, file: RecordingFile) -> None:
    said = json.dumps({"error": {"message": f"Incorrect API key provided: {TOKEN}; team secret-blue-team"}}).encode()
    upstream.answering = lambda handler: handler.answer(401, said, {"Content-Type": JSON, "Set-Cookie": "id=12345"})
    with through(file, upstream.address) as (client, path):
        response = post(client, path, Authorization=f"Bearer {TOKEN}", X_Team="secret-blue-team")
        assert (response.status, response.read()) == (401, said)
    text = file.path.read_text()
    assert TOKEN not in text
    assert "secret-blue-team" not in text
    assert "12345" not in text
    assert exchanges_of(file.path)[0]["text"].count("[redacted]") == 2


def test_stream_that_breaks_off_breaks_off_here_too(upstream: Server, file: RecordingFile) -> None:
    def answer(handler: Upstream) -> None:
        handler.begin_stream()
        handler.chunk(b"".join(EVENTS[:-2]))
        handler.wfile.flush()
        handler.close_connection = True

    upstream.answering = answer
    with through(file, upstream.address) as (client, path), pytest.raises(http.client.IncompleteRead):
        post(client, path).read()
    [exchange] = exchanges_of(file.path)
    assert (exchange["end"], exchange["text"]) == ("broken", "one two")


def test_unreachable_provider_is_reported(file: RecordingFile) -> None:
    gone = Server()
    gone.server_close()
    with through(file, gone.address) as (client, path):
        response = post(client, path)
        assert response.status == 502
        assert b"cannot be reached" in response.read()
    assert exchanges_of(file.path)[0]["status"] == 502


def test_what_is_sent_again_is_the_same_step(upstream: Server, file: RecordingFile) -> None:
    with through(file, upstream.address) as (client, path):
        upstream.answering = lambda handler: handler.answer(500, b"{}", {})
        post(client, path).read()
        upstream.answering = Upstream.whole
        for _ in range(2):
            post(client, path).read()
    assert [(each["status"], each["step"]) for each in exchanges_of(file.path)] == [(500, 0), (200, 0), (200, 1)]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_request_other_than_turn_is_passed_on_and_not_recorded(
    upstream: Server, file: RecordingFile, method: str
) -> None:
    upstream.answering = lambda handler: handler.answer(200, b'{"models": []}', {})
    with through(file, f"{upstream.address}/v1") as (client, path):
        client.request(method, f"{path}/models?client_version=1", b"{}" if method == "POST" else None)
        assert client.getresponse().read() == b'{"models": []}'
    assert upstream.received[0][0] == f"{method} /v1/models?client_version=1"
    assert exchanges_of(file.path) == []


def test_compressed_request_is_passed_on_unchanged(upstream: Server, file: RecordingFile) -> None:
    packed = gzip.compress(body(user("go")))
    with through(file, upstream.address) as (client, path):
        client.request("POST", f"{path}/responses", packed, {"Content-Encoding": "gzip"})
        client.getresponse().read()
    assert upstream.received[0][2] == packed
    assert exchanges_of(file.path)[0]["role"] == PLANNER.role


def test_login_with_an_account_goes_where_codex_would_send_it(upstream: Server, file: RecordingFile) -> None:
    with through(file, f"{upstream.address}/api", f"{upstream.address}/account") as (client, path):
        post(client, path).read()
        post(client, path, ChatGPT_Account_ID="account-1234").read()
    assert [line for line, *_ in upstream.received] == ["POST /api/responses", "POST /account/responses"]
    assert "account-1234" not in file.path.read_text()


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
def test_proxy_and_provider_receive_their_own_credentials(
    upstream: Server, file: RecordingFile, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, upstream.address.replace("//", "//me:p%40ss@"))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with through(file, "http://you:word@provider.invalid/v1") as (client, path):
        post(client, path).read()
    line, headers, _ = upstream.received[0]  # it answers to its own name only, and so tells that it was asked
    assert line == "POST http://provider.invalid/v1/responses"
    assert headers["proxy-authorization"] == basic("me:p@ss")
    assert headers["authorization"] == basic("you:word")


def test_proxy_of_another_kind_is_not_passed_by(file: RecordingFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with through(file, "http://provider.invalid/v1") as (client, path):
        assert b"of the kind socks5" in post(client, path).read()


def basic(login: str) -> str:
    return f"Basic {base64.b64encode(login.encode()).decode()}"


def test_login_in_an_address_is_sent_and_shown_nowhere(upstream: Server, file: RecordingFile) -> None:
    address = upstream.address.replace("//", "//us%40er:secret-word@")
    with through(file, address) as (client, path):
        post(client, path).read()
        post(client, path, Authorization=f"Bearer {TOKEN}").read()
        upstream.stop()
        told = post(client, path).read()
    assert [headers["authorization"] for _, headers, _ in upstream.received] == [
        basic("us@er:secret-word"),
        f"Bearer {TOKEN}",
    ]
    assert b"cannot be reached" in told
    for text in (told.decode(), file.path.read_text()):
        assert "secret-word" not in text


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:port/v1", "http://[::1/v1", "127.0.0.1:80/v1", "ftp://a/v1", "http:///v1"]
)
def test_invalid_address_is_reported_before_anything_is_sent(file: RecordingFile, url: str) -> None:
    with (
        RecordingProxy(file) as proxy,
        pytest.raises(UsageError, match="the model provider Mine is not an HTTP or HTTPS address"),
    ):
        proxy.through("Mine", url)


def test_truncated_request_is_not_passed_on(upstream: Server, file: RecordingFile) -> None:
    with through(file, upstream.address) as (client, path):
        client.putrequest("POST", f"{path}/responses")
        client.putheader("Content-Length", "100")
        client.endheaders(b"{}")
        client.sock.shutdown(socket.SHUT_WR)
        assert client.sock.recv(1) == b""
    assert upstream.received == []


def test_web_socket_is_refused(upstream: Server, file: RecordingFile) -> None:
    with through(file, upstream.address) as (client, path):
        client.request("GET", f"{path}/responses", headers={"Upgrade": "websocket", "Connection": "Upgrade"})
        assert client.getresponse().status == 426
    assert upstream.received == []


def test_end_of_the_run_does_not_wait_for_a_silent_provider(upstream: Server, file: RecordingFile) -> None:
    asked, over = threading.Event(), threading.Event()

    def answer(handler: Upstream) -> None:
        asked.set()
        over.wait(20)
        handler.close_connection = True

    upstream.answering = answer
    with through(file, upstream.address) as (client, path):
        waiting = threading.Thread(target=lambda: _ignored(client, path))
        waiting.start()
        assert asked.wait(20)
    assert not [thread for thread in threading.enumerate() if thread.name == "recording-connection"]
    over.set()
    waiting.join(20)
    assert exchanges_of(file.path) == []


def _ignored(client: http.client.HTTPConnection, path: str) -> None:
    with suppress(OSError, http.client.HTTPException):
        post(client, path).read()


def test_what_is_nested_too_deeply_to_keep_is_reported(upstream: Server, file: RecordingFile) -> None:
    deep = b'data: {"type": "response.output_item.done", "item": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n\n"
    upstream.answering = lambda handler: handler.answer(200, deep, {"Content-Type": "text/event-stream"})
    with through(file, upstream.address) as (client, path):
        assert post(client, path).read() == deep
    assert file.problem.endswith("is not complete: an answer is nested too deeply")


def test_missing_certificates_are_reported_to_codex(
    file: RecordingFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CODEX_CA_CERTIFICATE", str(tmp_path / "none.pem"))
    certificates.cache_clear()
    with through(file, "https://127.0.0.1:9/v1") as (client, path):
        response = post(client, path)
        assert (response.status, b"No such file" in response.read()) == (502, True)


@pytest.mark.parametrize("path", ["x", "*", "/", "/provider-1", "/provider-1?x", "/provider-9/responses"])
def test_what_leads_to_no_provider_is_not_found(upstream: Server, file: RecordingFile, path: str) -> None:
    with through(file, upstream.address) as (client, _):
        client.request("GET", path)
        assert client.getresponse().status == 404
    assert upstream.received == []


def test_disk_that_is_full_costs_the_recording_not_the_answer(upstream: Server, file: RecordingFile) -> None:
    file.path.unlink()
    with through(file, upstream.address) as (client, path):
        assert post(client, path).read() == b"".join(EVENTS)
    assert "is not complete" in file.problem
