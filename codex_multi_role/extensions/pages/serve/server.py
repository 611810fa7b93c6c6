"""The server's life cycle: it listens, says where, and ends promptly on request."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import h11
import uvicorn
from sse_starlette.sse import AppStatus
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.pages.serve.access import Access
from codex_multi_role.extensions.pages.serve.application import create_application
from codex_multi_role.lifecycle.stopping import stopping_signals

if TYPE_CHECKING:
    from codex_multi_role.extensions.machines.workers.shared_runs import SharedRuns

ENDING_SECONDS = 5
SEND_SECONDS = 30.0
"""Maximum time in which a visitor may read nothing."""
CONNECTIONS = 400
BACKLOG = 128


class Connection(H11Protocol):
    """Like uvicorn's, but disconnects a visitor who reads none of the waiting data, also at a response's end."""

    _abort_timer: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # any data that has to wait pauses the writing

    def pause_writing(self) -> None:
        super().pause_writing()
        self._abort_timer = self.loop.call_later(SEND_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._abort_timer.cancel()

    def send_400_response(self, msg: str) -> None:
        """Refuse what follows on the connection, and drop the answer to a request whose body is malformed."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        with contextlib.suppress(h11.LocalProtocolError):  # the answer was already started
            super().send_400_response(msg)
        self.transport.close()


class _Server(uvicorn.Server):
    """Like uvicorn's, but a signal is its normal end, not a failure."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for number in stopping_signals():
                stack.callback(signal.signal, number, signal.signal(number, self.handle_exit))
            yield


def serve(
    runs_dir: Path,
    roles: Path | None,
    access: Access,
    port: int,
    on_ready: Callable[[str], None],
    shared: SharedRuns | None = None,
) -> None:
    """Serve until one of `stopping_signals`; calls ``on_ready`` with the address to open.

    Raises `UsageError` if it cannot listen there.
    """
    AppStatus.enable_automatic_graceful_drain = False  # it cuts streams off; ours end by themselves
    listener = _listen(access.host, port)
    application = create_application(runs_dir, roles, access, lambda: server.should_exit, shared)
    server = _Server(configuration(application), lambda: on_ready(_address(access, listener)))
    with listener:
        server.run(sockets=[listener])


def configuration(application: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=Connection,
        access_log=False,  # a URL may contain the token
        log_level="warning",
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=ENDING_SECONDS,
        limit_concurrency=CONNECTIONS,
        server_header=False,
        proxy_headers=False,
    )


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:  # the host name may be invalid
        number = getattr(error, "errno", None)
        why = os.strerror(number) if isinstance(number, int) and number > 0 else str(error)
        raise UsageError(f"cannot listen on {host}, port {port}: {why}", "Name another --port or --host.") from error


def _address(access: Access, listener: socket.socket) -> str:
    port = listener.getsockname()[1]
    host = socket.gethostname() if access.host in ("0.0.0.0", "::", "") else access.host
    shown = f"[{host}]" if ":" in host else host
    return f"{access.public_url or f'http://{shown}:{port}'}/" + (
        f"?token={quote(access.token, safe='')}" if access.token else ""
    )
