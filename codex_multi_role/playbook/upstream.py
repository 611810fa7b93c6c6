"""One request to a real model provider, over HTTP or HTTPS, by way of the proxy that the environment names.

`http.client`, because its socket can be shut from another thread: a run that is stopped does not wait for an answer.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

CONNECT_SECONDS = 30.0
QUIET_SECONDS = 600.0
"""How long a provider may say nothing at all: Codex gives up sooner, by its `stream_idle_timeout_ms`."""
PIECE_BYTES = 64 * 1024
OWN_CERTIFICATES = "CODEX_CA_CERTIFICATE"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")


class NoAnswer(Exception):
    """The provider could not be asked, or its answer broke off; says why."""


class Upstream:
    """A request that is under way. `close` may be called from any thread, and wakes the one that reads."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._connection = _connection(url)
        self._response: HTTPResponse | None = None

    def send(self, method: str, headers: Mapping[str, str], body: bytes | None) -> tuple[int, dict[str, str]]:
        """The status and the headers of the answer, names in lower case. Raises `NoAnswer`."""
        target = f"{self._url.path or '/'}{f'?{self._url.query}' if self._url.query else ''}"
        try:
            self._connection.connect()
            self._connection.sock.settimeout(QUIET_SECONDS)
            self._connection.request(method, self._target(target), body, dict(headers))
            self._response = self._connection.getresponse()
        except (OSError, HTTPException, ValueError) as error:
            raise NoAnswer(f"{self._url.scheme}://{self._url.netloc} cannot be reached: {error}") from error
        return self._response.status, {name.lower(): value for name, value in self._response.getheaders()}

    def piece(self) -> bytes:
        """What has come next, empty at the end. Raises `NoAnswer` where the answer broke off."""
        response = self._response
        try:
            data = response.read1(PIECE_BYTES) if response is not None else b""
        except (OSError, HTTPException, ValueError, AttributeError) as error:  # the last: it was closed meanwhile
            raise NoAnswer(f"the answer of {self._url.netloc} broke off: {error}") from error
        if not data and response is not None and response.length:
            raise NoAnswer(f"the answer of {self._url.netloc} broke off, {response.length} bytes before its end")
        return data

    def close(self) -> None:
        with suppress(OSError, AttributeError):  # not connected yet, or not any more
            self._connection.sock.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        self._connection.close()

    def _target(self, target: str) -> str:
        """With a proxy and no tunnel through it, the whole address."""
        whole = self._connection.host != self._url.hostname and self._url.scheme == "http"
        return f"http://{self._url.netloc}{target}" if whole else target


def _connection(url: str) -> HTTPConnection:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    proxy = _proxy(parts.scheme, host)
    if parts.scheme != "https":
        return HTTPConnection(*(proxy or (host, port)), timeout=CONNECT_SECONDS)
    if proxy is None:
        return HTTPSConnection(host, port, timeout=CONNECT_SECONDS, context=_certificates())
    connection = HTTPSConnection(*proxy, timeout=CONNECT_SECONDS, context=_certificates())
    connection.set_tunnel(host, port or 443)
    return connection


def _proxy(scheme: str, host: str) -> tuple[str, int | None] | None:
    address = getproxies().get(scheme)
    if not address or host in LOOPBACK_NAMES or proxy_bypass(host):
        return None
    parts = urlsplit(address if "://" in address else f"http://{address}")
    return (parts.hostname, parts.port) if parts.hostname else None


@cache
def _certificates() -> ssl.SSLContext:
    """Those of the system, and those that Codex is told to trust."""
    context = ssl.create_default_context()
    if own := os.environ.get(OWN_CERTIFICATES):
        context.load_verify_locations(own)
    return context
