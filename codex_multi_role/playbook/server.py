"""The embedded model: a loopback server that speaks the Responses API and plays a playbook. No model is asked.

It keeps no memory of a run: the request says which answer is wanted, so a new server goes on where another stopped.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Self

from codex_multi_role.errors import UsageError
from codex_multi_role.playbook.handler import ResponsesHandler
from codex_multi_role.playbook.loopback import LOOPBACK, LoopbackServer
from codex_multi_role.playbook.request import Ask
from codex_multi_role.playbook.script import Playbook

REMEMBERED_REQUESTS = 10_000


class PlaybookServer:
    """Serves one playbook on 127.0.0.1, on a port of the system's choice, between `start` and `stop`."""

    def __init__(self, playbook: Playbook) -> None:
        self.playbook = playbook
        self._asks: deque[Ask] = deque(maxlen=REMEMBERED_REQUESTS)
        self._server: _Stage | None = None

    def start(self) -> None:
        """Raises `CodexUnavailable` if the loopback interface gives no port."""
        self._server = _Stage(self.playbook, self._asks)
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


class _Stage(LoopbackServer):
    def __init__(self, playbook: Playbook, asks: deque[Ask]) -> None:
        self.playbook = playbook
        self._asks = asks
        super().__init__("playbook", ResponsesHandler)

    def remember(self, ask: Ask) -> None:
        self._asks.append(ask)
