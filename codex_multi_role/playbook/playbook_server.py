"""The embedded model: a loopback server that speaks the Responses API and plays a playbook. No model is asked.

It keeps no state of a run: the request says which answer is wanted, so a new server continues where another stopped.
"""

from __future__ import annotations

from collections import Counter, deque

from codex_multi_role.playbook.handler import ResponsesHandler
from codex_multi_role.playbook.loopback import LoopbackServer
from codex_multi_role.playbook.request import AnswerKey
from codex_multi_role.playbook.script import Playbook

REMEMBERED_REQUESTS = 10_000


class PlaybookServer(LoopbackServer):
    """Serves one playbook. Raises `CodexUnavailable` if the loopback interface gives no port."""

    def __init__(self, playbook: Playbook) -> None:
        self.playbook = playbook
        self._asks: deque[AnswerKey] = deque(maxlen=REMEMBERED_REQUESTS)
        super().__init__("playbook", ResponsesHandler)

    @property
    def base_url(self) -> str:
        """The value for ``model_providers.<name>.base_url``."""
        return f"{self.address}/v1"

    @property
    def requests(self) -> Counter[AnswerKey]:
        """The number of requests for each answer, among the latest 10,000 model requests."""
        return Counter(self._asks.copy())

    def remember(self, ask: AnswerKey) -> None:
        self._asks.append(ask)
