"""A small HTTP server on the loopback interface, in place of the model provider that Codex expects."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import MappingProxyType
from typing import Any, Self, cast

from codex_multi_role.errors import CodexUnavailable

LOOPBACK = "127.0.0.1"
MOST_CONNECTIONS = 256
LARGEST_BODY_BYTES = 64 * 1024 * 1024
LONGEST_NUMBER = 18
QUIET_CONNECTION_SECONDS = 300.0
STOP_SECONDS = 5.0
ACCEPT_PAUSE_SECONDS = 0.1
JSON = "application/json"
END_OF_STREAM = b""


class LoopbackServer(ThreadingHTTPServer):
    """Serves on 127.0.0.1, on a port chosen by the system, between entering and leaving. ``name`` is used in messages.

    Raises `CodexUnavailable` if the loopback interface gives no port.
    """

    daemon_threads = True
    block_on_close = False  # its join has no deadline; `stop` waits for the connections instead
    request_queue_size = 128

    def __init__(self, name: str, handler: type[LoopbackHandler]) -> None:
        self.name = name
        self.stopping = threading.Event()
        self._connections: set[socket.socket] = set()
        self._changed = threading.Condition()  # waits: for memory only, or ended by STOP_SECONDS
        self._acceptor = threading.Thread(target=self._accept, name=name, daemon=True)
        try:
            super().__init__((LOOPBACK, 0), handler)
        except OSError as error:
            raise CodexUnavailable(f"the {name} server cannot listen on 127.0.0.1: {error}") from error

    def get_request(self) -> tuple[socket.socket, Any]:
        """If no descriptor is left for a connection, it stays queued and is tried again after a pause."""
        try:
            return super().get_request()
        except OSError:
            self.stopping.wait(ACCEPT_PAUSE_SECONDS)
            raise

    def server_bind(self) -> None:
        """Without the reverse name lookup of `HTTPServer`, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}"

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End every connection, including stalls and delays, and wait up to 5 s for their threads. Idempotent."""
        self.stopping.set()
        with suppress(OSError), socket.create_connection((LOOPBACK, self.server_port), timeout=STOP_SECONDS):
            self._acceptor.join(STOP_SECONDS)
        self.server_close()
        with self._changed:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._changed.wait_for(lambda: not self._connections, STOP_SECONDS)

    def _accept(self) -> None:
        """Blocks in accept without polling: `stop` wakes it with a connection."""
        while not self.stopping.is_set():
            self.handle_request()  # waits: for a connection, ended by that of `end`

    def verify_request(self, request: socket.socket, client_address: object) -> bool:  # type: ignore[override]
        with self._changed:
            if self.stopping.is_set() or len(self._connections) >= MOST_CONNECTIONS:
                return False
            self._connections.add(request)
            return True

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        super().shutdown_request(request)
        with self._changed:
            self._connections.discard(request)
            self._changed.notify_all()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up, as Codex does on an interrupted turn, is not an error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class LoopbackHandler(BaseHTTPRequestHandler):
    """One connection, over HTTP/1.1 with keep-alive: which requests are admitted, and how answers are written."""

    protocol_version = "HTTP/1.1"
    server_version = "codex-multi-role"
    sys_version = "(loopback)"
    timeout = QUIET_CONNECTION_SECONDS
    wbufsize = 64 * 1024

    @property
    def loopback(self) -> LoopbackServer:
        return cast(LoopbackServer, self.server)

    def setup(self) -> None:
        threading.current_thread().name = f"{self.loopback.name}-connection"
        super().setup()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: standard error belongs to the command line."""

    def serves(self, path: str) -> bool:
        """Whether ``path``, which has no query, is served."""
        return path == "/v1/responses"

    def admit(self) -> bool:
        """Reject web pages, which can reach loopback too: by their own host name (DNS rebinding) or with an origin."""
        name, port = self.loopback.name, self.loopback.server_port
        if self.headers.get("Host") not in {f"127.0.0.1:{port}", f"localhost:{port}"}:
            self.reject(HTTPStatus.FORBIDDEN, f"the {name} server only answers on its loopback address")
        elif "Origin" in self.headers:
            self.reject(HTTPStatus.FORBIDDEN, f"the {name} server does not answer web pages")
        elif not self.serves(self.path.partition("?")[0]):
            self.reject(HTTPStatus.NOT_FOUND, f"the {name} server has no {self.command} {self.path}")
        else:
            return True
        return False

    def do_GET(self) -> None:
        """Refuse a WebSocket, which Codex's built-in provider asks for first.

        After any status but 426 it asks for five seconds before it turns to HTTP (measured on 0.163.0).
        """
        if self.admit():
            self.reject(HTTPStatus.UPGRADE_REQUIRED, f"the {self.loopback.name} server only answers POST requests")

    def body(self) -> bytes | None:
        """The request's body; None if it was rejected, or cut short by the client."""
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or len(size) > LONGEST_NUMBER:
            self.reject(HTTPStatus.LENGTH_REQUIRED, f"the {self.loopback.name} server needs a Content-Length")
        elif int(size) > LARGEST_BODY_BYTES:
            self.reject(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{size} bytes, more than {LARGEST_BODY_BYTES}")
        # waits: for the rest of a request, ended by QUIET_CONNECTION_SECONDS
        elif len(data := self.rfile.read(int(size))) < int(size):
            self.close_connection = True
        else:
            return data
        return None

    def begin_stream(self) -> None:
        self.begin(HTTPStatus.OK, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})

    def chunk(self, data: bytes) -> None:
        """Send one piece of a stream; `END_OF_STREAM` ends it."""
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def reject(self, status: HTTPStatus, message: str) -> None:
        """Refuse a request whose body was not read, and close the connection, where that body would follow."""
        self.close_connection = True
        self.refuse(status, message, {"Connection": "close"})

    def refuse(self, status: HTTPStatus, message: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        error = {"message": message, "type": "invalid_request_error", "code": self.loopback.name, "param": None}
        self.answer(status, json.dumps({"error": error}).encode(), {"Content-Type": JSON} | dict(headers))

    def answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.begin(status, {"Content-Length": str(len(body))} | dict(headers))
        self.wfile.write(body)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
