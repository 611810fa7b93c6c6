"""The server's life: it listens, says where, and ends promptly when it is asked to."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from codex_multi_role.errors import UsageError
from codex_multi_role.web.access import Access
from codex_multi_role.web.application import create_application

ENDING_SECONDS = 5
CONNECTIONS = 400
BACKLOG = 128


class _Server(uvicorn.Server):
    """As uvicorn's, but a signal is no failure of it: it is how a server ends."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for number in (signal.SIGINT, signal.SIGTERM):
                stack.callback(signal.signal, number, signal.signal(number, self.handle_exit))
            yield


def serve(runs_dir: Path, roles: Path | None, access: Access, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; ``on_ready`` gets the address to open.

    Raises `UsageError` where it cannot listen there.
    """
    listening = _listen(access.host, port)
    application = create_application(runs_dir, roles, access, lambda: server.should_exit)
    config = uvicorn.Config(
        application,
        access_log=False,  # an address may hold the token
        log_level="warning",
        lifespan="off",
        timeout_graceful_shutdown=ENDING_SECONDS,
        limit_concurrency=CONNECTIONS,
        server_header=False,
        proxy_headers=False,
    )
    server = _Server(config)
    with listening:
        on_ready(_address(access, listening))
        server.run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"cannot listen on {host}, port {port}: {why}", "Name another --port or --host.") from error
    return listening


def _address(access: Access, listening: socket.socket) -> str:
    port = listening.getsockname()[1]
    host = socket.gethostname() if access.host in ("0.0.0.0", "::", "") else access.host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + (f"?token={access.token}" if access.token else "")
