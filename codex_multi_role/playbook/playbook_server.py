"""The embedded model: a loopback server that speaks the Responses API and plays a playbook. No model is asked.

It keeps no state of a run: the request says which answer is wanted, so a new server continues where another stopped.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from http import HTTPStatus
from typing import cast
from uuid import uuid4

from codex_multi_role.errors import UsageError
from codex_multi_role.playbook.loopback import END_OF_STREAM, JSON, LoopbackHandler, LoopbackServer
from codex_multi_role.playbook.request import AnswerKey, ModelRequest, NextStepRequest, call_id, read_request
from codex_multi_role.playbook.responses import Event, StreamIds, encode, http_error, stream
from codex_multi_role.playbook.script import Fault, Playbook
from codex_multi_role.playbook.selection import Scripted, select

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


class ResponsesHandler(LoopbackHandler):
    """``POST /v1/responses``, the only request that Codex sends."""

    server_version = "codex-multi-role-playbook"
    sys_version = "(no model is asked)"

    @property
    def playbook_server(self) -> PlaybookServer:
        return cast(PlaybookServer, self.server)

    def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
        if not self.admit() or (body := self.body()) is None:
            return
        try:
            request = read_request(body)
            if isinstance(request, NextStepRequest):
                self.playbook_server.remember(request.ask)
            scripted = select(self.playbook_server.playbook, request)
        except UsageError as error:
            # Not 400: Codex reports that as class "other", which looks retryable.
            self.refuse(HTTPStatus.UNPROCESSABLE_ENTITY, " ".join(filter(None, [str(error), error.hint])))
        else:
            self._play(scripted, request)

    def _play(self, scripted: Scripted, request: ModelRequest) -> None:
        answer = scripted.answer
        if self.playbook_server.stopping.wait(scripted.delay_seconds):
            self.close_connection = True
        elif isinstance(answer, Fault) and answer.status:
            self.answer(answer.status, http_error(answer), {"Content-Type": JSON} | answer.headers)
        elif isinstance(answer, Fault) and answer.garbage is not None:
            self.answer(HTTPStatus.OK, answer.garbage.encode(), {"Content-Type": "text/html"})
        elif isinstance(answer, Fault) and answer.breaks_connection:
            self._break_connection(answer, _events(scripted, request))
        else:
            self._stream(_events(scripted, request))
            self.chunk(END_OF_STREAM)

    def _break_connection(self, fault: Fault, events: Iterator[Event]) -> None:
        if fault.after_events:
            self._stream(events)
        self.wfile.flush()
        self.playbook_server.stopping.wait(fault.stall_seconds or 0)
        self.close_connection = True

    def _stream(self, events: Iterator[Event]) -> None:
        self.begin_stream()
        for event in events:
            self.chunk(encode(event))


def _events(scripted: Scripted, request: ModelRequest) -> Iterator[Event]:
    fresh = uuid4().hex
    ids = StreamIds(f"resp_{fresh}", f"msg_{fresh}", call_id(request.turn_id, request.step))
    return stream(scripted.answer, scripted.usage, ids)
