"""Requests that two readers could understand differently, at the socket of a real server."""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_multi_role.extensions.pages.serve import server
from tests.support.recorded_runs import make_run
from tests.support.serving import SMALL, answering

pytestmark = [pytest.mark.real, pytest.mark.extensions]

DEADLINE_SECONDS = 20
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
SECRET = "what a file beside the runs contains"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "beside.txt").write_text(SECRET)
    make_run(folder / "runs", "first")
    with answering(folder / "runs") as (_, port):
        yield port


def post(*headers: str, body: str = "0\r\n\r\n", version: str = "1.1", end: str = "\r\n") -> str:
    """A form with these headers; ``{host}`` is the server's."""
    return end.join([f"POST /start HTTP/{version}", "Host: {host}", *headers, "", body])


def get(*headers: str, path: str = "/", host: str = "Host: {host}", method: str = "GET") -> str:
    return "\r\n".join([f"{method} {path} HTTP/1.1", *filter(None, [host]), *headers, "", ""])


CHUNKED = "Transfer-Encoding: chunked"
SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
REFUSED = {
    "a length and chunks": post("Content-Length: 5", CHUNKED),
    "chunks and a length": post(CHUNKED, "Content-Length: 5"),
    "a length of nothing and chunks": post("Content-Length: 0", CHUNKED),
    "a length of all and chunks": post("Content-Length: 200", CHUNKED),
    "a length and Chunked": post("Content-Length: 5", "transfer-encoding: Chunked"),
    "a length and folded chunks": post("Content-Length: 5", "Transfer-Encoding:\r\n chunked"),
    "a length and chunks of a get": get("Content-Length: 0", CHUNKED) + "0\r\n\r\n",
    "chunks of version 1.0": post(CHUNKED, version="1.0"),
    "two lengths": post("Content-Length: 5", "Content-Length: 6"),
    "a list of lengths": post("Content-Length: 5, 6"),
    "a signed length": post("Content-Length: +5"),
    "a negative length": post("Content-Length: -5"),
    "a length in hexadecimal": post("Content-Length: 0x5"),
    "an empty length": post("Content-Length:"),
    "a length with a blank": post("Content-Length: 5 0"),
    "a length in other digits": post("Content-Length: \u0665"),
    "a very long length": post(f"Content-Length: {'9' * 40}"),
    "chunked, identity": post("Transfer-Encoding: chunked, identity"),
    "identity": post("Transfer-Encoding: identity", "Content-Length: 5"),
    "gzip, chunked": post("Transfer-Encoding: gzip, chunked"),
    "xchunked": post("Transfer-Encoding: xchunked"),
    "two encodings": post(CHUNKED, "Transfer-Encoding: identity"),
    "chunked after a control": post("Transfer-Encoding: \x0bchunked"),
    "a blank before the colon": post("Transfer-Encoding : chunked", "Content-Length: 5"),
    "a blank in a name": post("Content Length: 5"),
    "a null byte": get("X: a\0b"),
    "a bare carriage return": get("X: a\rContent-Length: 5"),
    "a folded first header": get(host=" Host: {host}"),
    "no host": get(host=""),
    "two hosts": get("Host: evil.example"),
    "no version": "GET /\r\n\r\n",
    "no method": " / HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "letters that are not ASCII": get(path="/\u202e"),
    "a very long header": get(f"X: {'a' * 200_000}"),
    "a header without an end": f"GET / HTTP/1.1\r\nX: {'a' * 200_000}",
    "very many headers": get(*[f"X-{number}: a" for number in range(20_000)]),
    "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_request_without_a_certain_end_is_refused_and_the_connection_closed(
    port: int, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """What follows on the connection is not read as a request."""
    assert statuses(exchange(port, REFUSED[name] + SMUGGLED)) == [400]
    _assert_serving(port, caplog)


FORM = "Content-Type: application/x-www-form-urlencoded"
ANSWERED = {
    "a length": (post("Content-Length: 5", body="a=b&c"), [400, 404]),
    "the same length twice": (post("Content-Length: 5", "Content-Length: 5", body="a=b&c"), [400, 404]),
    "chunks": (post(CHUNKED, body="5\r\na=b&c\r\n0\r\n\r\n"), [400, 404]),
    "a request in the body": (post("Content-Length: 15", body="GET /x HTTP/1.1"), [400, 404]),
    "an underscore in a name": (post("Transfer_Encoding: chunked", "Content-Length: 5"), [400, 404]),
    "another host": (get("Connection: close", host="Host: evil.example"), [421]),
    "a user before the host": (get("Connection: close", host="Host: {host}@evil.example"), [421]),
    "a list of hosts": (get("Connection: close", host="Host: {host}, evil.example"), [421]),
    "an absolute address": (get("Connection: close", path="http://evil.example/"), [404]),
    "an expectation": (post("Expect: 100-continue", "Content-Length: 5", body="a=b&c"), [400, 404]),
    "an unknown expectation": (get("Expect: everything", "Connection: close"), [200]),
    "an upgrade to HTTP 2": (get("Upgrade: h2c", "Connection: Upgrade, close"), [200]),
    "an upgrade to a socket": (get("Upgrade: websocket", "Connection: Upgrade, close"), [200]),
    "a tunnel": (get("Connection: close", path="evil.example:80", method="CONNECT"), [404]),
    "a trace": (get("Connection: close", method="TRACE"), [405]),
    "an unknown method": (get("Connection: close", method="FROB"), [405]),
    "a path above": (get("Connection: close", path="/runs/first/files/../../../beside.txt"), [404]),
    "an encoded path above": (get("Connection: close", path="/runs/first/files/..%2f..%2f..%2fbeside.txt"), [404]),
    "an absolute path": (get("Connection: close", path="/runs/first/files//etc/passwd"), [404]),
    "assets above": (get("Connection: close", path="/static/..%2f..%2f..%2fbeside.txt"), [404]),
    "a null byte in a path": (get("Connection: close", path="/runs/first/files/a%00b"), [404]),
    "a line end in a path": (get("Connection: close", path="/%0d%0aSet-Cookie:%20a=b"), [404]),
    "no number of chunks": (post(CHUNKED, body="zz\r\n"), [400]),
    "a negative chunk": (post(CHUNKED, body="-5\r\n"), [400]),
    "a very long chunk": (post(CHUNKED, body=f"{'F' * 30}\r\n"), [400]),
    "more than the chunk": (post(CHUNKED, body="1\r\nab\r\n0\r\n\r\n"), [400]),
    "version 2": ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [421, 400]),
    "a form that is too large": (post(FORM, "Connection: close", "Content-Length: 2000000"), [413]),
    "very many fields": (post(FORM, "Connection: close", "Content-Length: 30000", body="a=b&c=" * 5_000), [400]),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_strange_request_is_answered_once(port: int, caplog: pytest.LogCaptureFixture, name: str) -> None:
    request, expected = ANSWERED[name]
    received = exchange(port, request + SMUGGLED)
    assert [each for each in statuses(received) if each != 100] == expected
    assert SECRET.encode() not in received
    assert b"\r\nset-cookie: a=b" not in received.lower()
    _assert_serving(port, caplog)


def test_malformed_chunk_after_an_answer_closes_the_connection(port: int, caplog: pytest.LogCaptureFixture) -> None:
    received = exchange(port, get(CHUNKED), "zz\r\n" + SMUGGLED)
    assert statuses(received) == [200]
    _assert_serving(port, caplog)


def statuses(received: bytes) -> list[int]:
    return [int(number) for number in STATUS.findall(received)]


def exchange(port: int, request: str, later: str = "") -> bytes:
    """Send the request, and ``later`` once it is being answered; what comes until the server closes the connection."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS) as connection:
        try:
            connection.sendall(request.replace("{host}", f"127.0.0.1:{port}").encode())
            while part := connection.recv(65536):
                received += part
                connection.sendall(later.encode())
                later = ""
        except ConnectionError:  # it was closed before all was sent
            pass
    return received


def _assert_serving(port: int, caplog: pytest.LogCaptureFixture) -> None:
    assert statuses(exchange(port, get("Connection: close"))) == [200]
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


DEADLINE_SECONDS = 60


@pytest.mark.parametrize("size", [50_000, 5_000_000], ids=["the end of an answer", "an answer under way"])
def test_visitor_who_takes_nothing_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(server, "SEND_SECONDS", 0.05)
    folder = make_run(tmp_path / "runs", "first")
    (folder.path / "long.txt").write_bytes(b"x" * size)
    with answering(tmp_path / "runs") as (serving, port), socket.socket() as visitor:
        visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        visitor.connect(("127.0.0.1", port))
        visitor.sendall(f"GET /runs/first/files/long.txt HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        assert visitor.recv(1) == b"H"
        end = time.monotonic() + DEADLINE_SECONDS
        while serving.server_state.connections:
            assert time.monotonic() < end, "it keeps a place"
            time.sleep(0.01)
