"""The server as any HTTP client sees it."""

from __future__ import annotations

import http.client
import json
import resource
import socket
import threading
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from codex_multi_role.playbook import AnswerKey, Playbook, PlaybookServer
from codex_multi_role.playbook.loopback import LARGEST_BODY_BYTES, LOOPBACK
from tests.support.models import PLANNER, body, user

SCRIPT = {
    "name": "demo",
    "roles": {
        "planner": [{"text": "hello"}],
        "slow": [{"text": "late", "delay_seconds": 3000}],
        "stalled": [{"fault": {"stall_seconds": 3000, "after_events": 2}}],
        "silent": [{"fault": {"stall_seconds": 3000, "after_events": 0}}],
        "busy": [{"fault": {"status": 429, "code": "rate_limit_exceeded", "headers": {"Retry-After": "7"}}}],
    },
}


@pytest.fixture
def server() -> Iterator[PlaybookServer]:
    with PlaybookServer(Playbook.model_validate(SCRIPT)) as running:
        yield running


@pytest.fixture
def connection(server: PlaybookServer) -> Iterator[http.client.HTTPConnection]:
    address = server.base_url.removeprefix("http://").removesuffix("/v1")
    client = http.client.HTTPConnection(address, timeout=10)
    yield client
    client.close()


def post(connection: http.client.HTTPConnection, ask: AnswerKey, **headers: str) -> http.client.HTTPResponse:
    connection.request("POST", "/v1/responses", body(user("go"), ask=ask), headers)
    return connection.getresponse()


def events(response: http.client.HTTPResponse) -> list[Any]:
    lines = response.read().decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def error(response: http.client.HTTPResponse) -> str:
    return str(json.loads(response.read())["error"]["message"])


def test_one_connection_serves_many_requests(server: PlaybookServer, connection: http.client.HTTPConnection) -> None:
    for _ in range(3):
        response = post(connection, PLANNER)
        assert response.headers["Server"] == "codex-multi-role-playbook (no model is asked)"
        assert events(response)[-1]["type"] == "response.completed"
    assert server.requests == {PLANNER: 3}


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1"])
def test_foreign_host_name_is_refused(connection: http.client.HTTPConnection, host: str) -> None:
    response = post(connection, PLANNER, Host=host)
    assert (response.status, error(response)) == (403, "the playbook server only answers on its loopback address")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_web_page_is_refused(connection: http.client.HTTPConnection, origin: str) -> None:
    response = post(connection, PLANNER, Origin=origin)
    assert (response.status, error(response)) == (403, "the playbook server does not answer web pages")


def test_it_listens_on_loopback_only(server: PlaybookServer) -> None:
    port = int(server.base_url.split(":")[2].removesuffix("/v1"))
    listening = [each.laddr for each in psutil.Process().net_connections("tcp") if each.status == psutil.CONN_LISTEN]
    assert ("127.0.0.1", port) in listening
    assert not [address for address in listening if address.port == port and address.ip != "127.0.0.1"]


def test_unknown_path_is_refused(connection: http.client.HTTPConnection) -> None:
    connection.request("POST", "/v1/chat/completions", b"{}")
    response = connection.getresponse()
    assert (response.status, error(response)) == (404, "the playbook server has no POST /v1/chat/completions")


@pytest.mark.parametrize(
    ("length", "status"), [(str(LARGEST_BODY_BYTES + 1), 413), ("-1", 411), ("many", 411), ("9" * 5000, 411)]
)
def test_body_has_a_known_and_bounded_size(connection: http.client.HTTPConnection, length: str, status: int) -> None:
    connection.request("POST", "/v1/responses", headers={"Content-Length": length})
    assert connection.getresponse().status == status


def test_request_without_metadata_is_refused_clearly(connection: http.client.HTTPConnection) -> None:
    connection.request("POST", "/v1/responses", body(user("go"), ask=None))
    response = connection.getresponse()
    assert response.status == 422
    assert "Only turns started by codex-multi-role can be answered." in error(response)


def test_visit_that_is_not_written_is_refused_clearly(connection: http.client.HTTPConnection) -> None:
    response = post(connection, PLANNER._replace(visit=2))
    assert (response.status, error(response)) == (
        422,
        "playbook demo has no visit 2 of role planner (it has 1): "
        "asked for role planner, visit 2, repair 0, attempt 1, step 1",
    )


def test_http_fault_has_its_status_code_and_headers(connection: http.client.HTTPConnection) -> None:
    response = post(connection, AnswerKey("busy", 1, 0, 1))
    assert (response.status, response.headers["Retry-After"]) == (429, "7")
    assert json.loads(response.read())["error"]["code"] == "rate_limit_exceeded"


@pytest.mark.parametrize("role", ["slow", "stalled", "silent"])
def test_stop_ends_every_wait(server: PlaybookServer, connection: http.client.HTTPConnection, role: str) -> None:
    connection.request("POST", "/v1/responses", body(user("go"), ask=AnswerKey(role, 1, 0, 1)))
    if role == "stalled":
        assert connection.getresponse().status == 200
    else:
        while not server.requests:
            threading.Event().wait(0.01)
    server.stop()
    assert connection.sock
    while connection.sock.recv(1000):
        pass


def test_stop_closes_quiet_connections_and_the_port(server: PlaybookServer) -> None:
    host, _, port = server.base_url.removeprefix("http://").removesuffix("/v1").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as quiet:
        server.stop()
        server.stop()
        assert quiet.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=10)


def test_without_descriptors_it_pauses_and_then_continues(
    server: PlaybookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused = threading.Event()

    def wait(seconds: float) -> bool:
        paused.set()
        return threading.Event().wait(seconds)

    monkeypatch.setattr(server.stopping, "wait", wait)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as client:
        client.settimeout(20)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            client.connect((LOOPBACK, server.server_port))
            assert paused.wait(20)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert client.recv(9) == b"HTTP/1.1 "


def test_server_continues_where_another_stopped() -> None:
    playbook = Playbook.model_validate({"name": "x", "roles": {"planner": [{"text": "1"}, {"text": "2"}]}})
    for visit in (1, 2):
        with PlaybookServer(playbook) as server:
            client = http.client.HTTPConnection(server.base_url.split("/")[2], timeout=10)
            done = events(post(client, AnswerKey("planner", visit, 0, 1)))[-2]
            client.close()
        assert done["item"]["content"][0]["text"] == str(visit)
