"""One HTTP connection of the embedded model: guard, read, select, stream."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from types import MappingProxyType
from typing import Protocol, cast
from uuid import uuid4

from codex_multi_role.errors import UsageError
from codex_multi_role.playbook.request import Ask, ModelRequest, TurnRequest, call_id, read_request
from codex_multi_role.playbook.responses import Event, StreamIds, encode, http_error, stream
from codex_multi_role.playbook.script import Fault, Playbook
from codex_multi_role.playbook.selection import Scripted, select

LARGEST_BODY_BYTES = 64 * 1024 * 1024
LONGEST_NUMBER = 18
QUIET_CONNECTION_SECONDS = 300.0
JSON = "application/json"
END_OF_STREAM = b""


class Stage(Protocol):
    """What a connection needs of its server."""

    playbook: Playbook
    stopping: threading.Event
    server_port: int

    def remember(self, ask: Ask) -> None: ...


class ResponsesHandler(BaseHTTPRequestHandler):
    """``POST /v1/responses``, all that Codex asks for, over HTTP/1.1 with keep-alive."""

    protocol_version = "HTTP/1.1"
    server_version = "codex-multi-role-playbook"
    sys_version = "(no model is asked)"
    timeout = QUIET_CONNECTION_SECONDS
    wbufsize = 64 * 1024

    @property
    def stage(self) -> Stage:
        return cast(Stage, self.server)

    def setup(self) -> None:
        threading.current_thread().name = "playbook-connection"
        super().setup()

    def log_message(self, format: str, *args: object) -> None:
        """Standard error belongs to the command line."""

    def do_POST(self) -> None:
        if not self._admit() or (body := self._body()) is None:
            return
        try:
            request = read_request(body)
            if isinstance(request, TurnRequest):
                self.stage.remember(request.ask)
            scripted = select(self.stage.playbook, request)
        except UsageError as error:
            # Not 400: Codex reports that as class "other", which looks like something to try again.
            self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, " ".join(filter(None, [str(error), error.hint])))
        else:
            self._play(scripted, request)

    def _admit(self) -> bool:
        """A web page can reach loopback, too: under a host name of its own (DNS rebinding), or telling its origin."""
        port = self.stage.server_port
        if self.headers.get("Host") not in {f"127.0.0.1:{port}", f"localhost:{port}"}:
            self._reject(HTTPStatus.FORBIDDEN, "the playbook server answers to its loopback address only")
        elif "Origin" in self.headers:
            self._reject(HTTPStatus.FORBIDDEN, "the playbook server answers to no web page")
        elif self.path.partition("?")[0] != "/v1/responses":
            self._reject(HTTPStatus.NOT_FOUND, f"the playbook server has no {self.command} {self.path}")
        else:
            return True
        return False

    def _body(self) -> bytes | None:
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or len(size) > LONGEST_NUMBER:
            self._reject(HTTPStatus.LENGTH_REQUIRED, "the playbook server needs a Content-Length")
        elif int(size) > LARGEST_BODY_BYTES:
            self._reject(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{size} bytes, the most is {LARGEST_BODY_BYTES}")
        else:
            return self.rfile.read(int(size))
        return None

    def _play(self, scripted: Scripted, request: ModelRequest) -> None:
        answer = scripted.answer
        if self.stage.stopping.wait(scripted.delay_seconds):
            self.close_connection = True
        elif isinstance(answer, Fault) and answer.status:
            self._send(answer.status, http_error(answer), {"Content-Type": JSON} | answer.headers)
        elif isinstance(answer, Fault) and answer.garbage is not None:
            self._send(HTTPStatus.OK, answer.garbage.encode(), {"Content-Type": "text/html"})
        elif isinstance(answer, Fault) and answer.breaks_off:
            self._break_off(answer, _events(scripted, request))
        else:
            self._stream(_events(scripted, request))
            self._chunk(END_OF_STREAM)

    def _break_off(self, fault: Fault, events: Iterator[Event]) -> None:
        if fault.after_events:
            self._stream(events)
        self.wfile.flush()
        self.stage.stopping.wait(fault.stall_seconds or 0)
        self.close_connection = True

    def _stream(self, events: Iterator[Event]) -> None:
        self._begin(HTTPStatus.OK, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        for event in events:
            self._chunk(encode(event))

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _reject(self, status: HTTPStatus, message: str) -> None:
        """Refuses a request whose body was not read: what follows on the connection would be that body."""
        self.close_connection = True
        self._refuse(status, message, {"Connection": "close"})

    def _refuse(self, status: HTTPStatus, message: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        error = {"message": message, "type": "invalid_request_error", "code": "playbook", "param": None}
        self._send(status, json.dumps({"error": error}).encode(), {"Content-Type": JSON} | dict(headers))

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self._begin(status, {"Content-Length": str(len(body))} | dict(headers))
        self.wfile.write(body)

    def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def _events(scripted: Scripted, request: ModelRequest) -> Iterator[Event]:
    fresh = uuid4().hex
    ids = StreamIds(f"resp_{fresh}", f"msg_{fresh}", call_id(request.turn_id, request.step))
    return stream(scripted.answer, scripted.usage, ids)
