"""The embedded model: a loopback server that speaks the Responses API and plays a playbook. No model is asked.

It keeps no memory of a run: the request says which answer is wanted, so a new server goes on where another stopped.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections import Counter, deque
from contextlib import suppress
from http.server import ThreadingHTTPServer
from socketserver import TCPServer
from typing import Self

from codex_multi_role.errors import CodexUnavailable, UsageError
from codex_multi_role.playbook.handler import ResponsesHandler
from codex_multi_role.playbook.request import Ask
from codex_multi_role.playbook.script import Playbook

LOOPBACK = "127.0.0.1"
MOST_CONNECTIONS = 256
REMEMBERED_REQUESTS = 10_000
STOP_SECONDS = 5.0


class PlaybookServer:
    """Serves one playbook on 127.0.0.1, on a port of the system's choice, between `start` and `stop`."""

    def __init__(self, playbook: Playbook) -> None:
        self.playbook = playbook
        self._asks: deque[Ask] = deque(maxlen=REMEMBERED_REQUESTS)
        self._server: _LoopbackServer | None = None

    def start(self) -> None:
        """Raises `CodexUnavailable` if the loopback interface gives no port."""
        try:
            self._server = _LoopbackServer(self.playbook, self._asks)
        except OSError as error:
            raise CodexUnavailable(f"the playbook server cannot listen on 127.0.0.1: {error}") from error
        self._server.begin()

    def stop(self) -> None:
        """Ends every connection, stalls and delays included, and waits up to 5 s for their threads. Idempotent."""
        if self._server:
            self._server.end()
            self._server = None

    @property
    def base_url(self) -> str:
        """What ``model_providers.<name>.base_url`` has to be, while the server runs."""
        if self._server is None:
            raise UsageError("the playbook server is not running")
        return f"http://{LOOPBACK}:{self._server.server_port}/v1"

    @property
    def requests(self) -> Counter[Ask]:
        """How often each answer was asked for, among the latest 10,000 model requests."""
        return Counter(self._asks.copy())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _LoopbackServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # its join has no deadline; `end` waits for the connections instead
    request_queue_size = 128

    def __init__(self, playbook: Playbook, asks: deque[Ask]) -> None:
        self.playbook = playbook
        self.stopping = threading.Event()
        self._asks = asks
        self._connections: set[socket.socket] = set()
        self._changed = threading.Condition()
        self._acceptor = threading.Thread(target=self._accept, name="playbook", daemon=True)
        super().__init__((LOOPBACK, 0), ResponsesHandler)

    def server_bind(self) -> None:
        """Without the reverse name look-up of `HTTPServer`, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    def remember(self, ask: Ask) -> None:
        self._asks.append(ask)

    def begin(self) -> None:
        self._acceptor.start()

    def end(self) -> None:
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
        """Waits in accept and needs no polling: `end` wakes it with a connection."""
        while not self.stopping.is_set():
            self.handle_request()

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
        """A client that hangs up, as Codex does on an interrupted turn, is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]
