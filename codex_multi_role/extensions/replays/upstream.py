"""One request to a real model provider, over HTTP or HTTPS, through the proxy that the environment names.

It uses `http.client`, whose socket can be shut down from another thread: a stopped run does not wait for an answer.
"""

from __future__ import annotations

import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

CONNECT_SECONDS = 30.0
QUIET_SECONDS = 600.0
"""Maximum silence of a provider; Codex gives up sooner, by its `stream_idle_timeout_ms`."""
PIECE_BYTES = 64 * 1024
OWN_CERTIFICATES = "CODEX_CA_CERTIFICATE"
FOR_PROXY = "proxy-authorization"
PROXY_PORT, HTTPS_PORT = 80, 443
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")


class ProviderFailed(Exception):
    """The provider could not be reached, or its answer broke off; the message says why."""


class Upstream:
    """A request in progress. `close` may be called from any thread, and wakes the reading one.

    ``url``: one that `is_address` accepts, followed by the request's path.
    """

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._place = self._url.netloc.rpartition("@")[2]
        self._connection: HTTPConnection | None = None
        self._response: HTTPResponse | None = None

    @property
    def login(self) -> dict[str, str]:
        """The header for the user and password in the URL, which Codex would send unless it has another one."""
        return _login("authorization", self._url)

    def send(self, method: str, headers: Mapping[str, str], body: bytes | None) -> tuple[int, dict[str, str]]:
        """The status and the headers of the answer, names in lower case. Raises `ProviderFailed`."""
        target = f"{self._url.path or '/'}{f'?{self._url.query}' if self._url.query else ''}"
        try:
            proxy = _proxy(self._url)
            self._connection = connection = _connection(self._url, proxy)
            if proxy is not None and self._url.scheme != "https":  # no tunnel: it needs the absolute address
                target = f"http://{self._place}{target}"
                headers = {**headers, **_login(FOR_PROXY, proxy)}
            connection.connect()
            connection.sock.settimeout(QUIET_SECONDS)
            connection.request(method, target, body, dict(headers))
            self._response = connection.getresponse()
        except (OSError, HTTPException, ValueError) as error:
            raise ProviderFailed(f"{self._url.scheme}://{self._place} cannot be reached: {error}") from error
        return self._response.status, {name.lower(): value for name, value in self._response.getheaders()}

    def piece(self) -> bytes:
        """The next piece, empty at the end. Raises `ProviderFailed` if the answer broke off."""
        response = self._response
        try:
            data = response.read1(PIECE_BYTES) if response is not None else b""
        except (OSError, HTTPException, ValueError, AttributeError) as error:  # AttributeError: closed meanwhile
            raise ProviderFailed(f"the answer of {self._place} broke off: {error}") from error
        if not data and response is not None and response.length:
            raise ProviderFailed(f"the answer of {self._place} broke off, {response.length} bytes before its end")
        return data

    def close(self) -> None:
        if self._connection is not None:
            with suppress(OSError, AttributeError):  # not connected yet, or no longer
                self._connection.sock.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        if self._connection is not None:
            self._connection.close()


def is_address(url: str) -> bool:
    """Whether a provider may be at ``url``."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # also from `port`
        return False


def _connection(url: SplitResult, proxy: SplitResult | None) -> HTTPConnection:
    host, port = url.hostname or "", url.port
    if proxy is not None:
        host, port = proxy.hostname or "", proxy.port or PROXY_PORT
    if url.scheme != "https":
        return HTTPConnection(host, port, timeout=CONNECT_SECONDS)
    connection = HTTPSConnection(host, port, timeout=CONNECT_SECONDS, context=certificates())
    if proxy is not None:
        connection.set_tunnel(url.hostname or "", url.port or HTTPS_PORT, _login(FOR_PROXY, proxy))
    return connection


def _proxy(url: SplitResult) -> SplitResult | None:
    """The proxy that Codex would use (measured on 0.163.0)."""
    proxies, host = getproxies(), url.hostname or ""
    address = proxies.get(url.scheme) or proxies.get("all")
    if not address or host in LOOPBACK_NAMES or proxy_bypass(host):
        return None
    proxy = urlsplit(address if "://" in address else f"http://{address}")
    if proxy.scheme != "http":
        raise ProviderFailed(
            f"the proxy for {host} is of the kind {proxy.scheme}; recording supports HTTP proxies only"
        )
    return proxy if proxy.hostname else None


def _login(header: str, url: SplitResult) -> dict[str, str]:
    if url.username is None and url.password is None:
        return {}
    words = f"{unquote(url.username or '')}:{unquote(url.password or '')}"
    return {header: f"Basic {b64encode(words.encode()).decode()}"}


@cache
def certificates() -> ssl.SSLContext:
    """The system's certificates, and those that Codex is configured to trust."""
    context = ssl.create_default_context()
    if own := os.environ.get(OWN_CERTIFICATES):
        context.load_verify_locations(own)
    return context
