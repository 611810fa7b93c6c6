"""One HTTP connection of the embedded model: guard, read, select, stream."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http import HTTPStatus
from typing import Protocol, cast
from uuid import uuid4

from codex_multi_role.errors import UsageError
from codex_multi_role.playbook.loopback import END_OF_STREAM, JSON, LoopbackHandler
from codex_multi_role.playbook.request import AnswerKey, ModelRequest, NextStepRequest, call_id, read_request
from codex_multi_role.playbook.responses import Event, StreamIds, encode, http_error, stream
from codex_multi_role.playbook.script import Fault, Playbook
from codex_multi_role.playbook.selection import Scripted, select


class Stage(Protocol):
    """What a connection needs of its server."""

    playbook: Playbook
    stopping: threading.Event

    def remember(self, ask: AnswerKey) -> None: ...


class ResponsesHandler(LoopbackHandler):
    """``POST /v1/responses``, the only request that Codex sends."""

    server_version = "codex-multi-role-playbook"
    sys_version = "(no model is asked)"

    @property
    def stage(self) -> Stage:
        return cast(Stage, self.server)

    def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
        if not self.admit() or (body := self.body()) is None:
            return
        try:
            request = read_request(body)
            if isinstance(request, NextStepRequest):
                self.stage.remember(request.ask)
            scripted = select(self.stage.playbook, request)
        except UsageError as error:
            # Not 400: Codex reports that as class "other", which looks retryable.
            self.refuse(HTTPStatus.UNPROCESSABLE_ENTITY, " ".join(filter(None, [str(error), error.hint])))
        else:
            self._play(scripted, request)

    def _play(self, scripted: Scripted, request: ModelRequest) -> None:
        answer = scripted.answer
        if self.stage.stopping.wait(scripted.delay_seconds):
            self.close_connection = True
        elif isinstance(answer, Fault) and answer.status:
            self.answer(answer.status, http_error(answer), {"Content-Type": JSON} | answer.headers)
        elif isinstance(answer, Fault) and answer.garbage is not None:
            self.answer(HTTPStatus.OK, answer.garbage.encode(), {"Content-Type": "text/html"})
        elif isinstance(answer, Fault) and answer.breaks_off:
            self._break_off(answer, _events(scripted, request))
        else:
            self._stream(_events(scripted, request))
            self.chunk(END_OF_STREAM)

    def _break_off(self, fault: Fault, events: Iterator[Event]) -> None:
        if fault.after_events:
            self._stream(events)
        self.wfile.flush()
        self.stage.stopping.wait(fault.stall_seconds or 0)
        self.close_connection = True

    def _stream(self, events: Iterator[Event]) -> None:
        self.begin_stream()
        for event in events:
            self.chunk(encode(event))


def _events(scripted: Scripted, request: ModelRequest) -> Iterator[Event]:
    fresh = uuid4().hex
    ids = StreamIds(f"resp_{fresh}", f"msg_{fresh}", call_id(request.turn_id, request.step))
    return stream(scripted.answer, scripted.usage, ids)
