"""Access control of the server: its names, its token, its cookie, and the origin of requests."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import urlsplit

from codex_multi_role.errors import UsageError

LEAST_TOKEN_CHARACTERS = 16
LOCAL_NAMES = frozenset({"localhost"})


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens on ``host``."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() in LOCAL_NAMES


def _name_in(public_url: str) -> str:
    """Return the host of a URL that has no path, because the pages' links begin at its root. Raises `UsageError`."""
    with suppress(ValueError):
        parts = urlsplit(public_url)
        if parts.hostname and parts.scheme in ("http", "https") and public_url == f"{parts.scheme}://{parts.netloc}":
            return parts.hostname
    raise UsageError(f"the public address '{public_url}' is invalid", "Use the form https://runs.example.com.")


@dataclass(frozen=True)
class Access:
    """``host``: where the server listens. ``token``: what visitors need, or None.

    ``names``: host names it is reached under, besides addresses. ``public_url``: of a proxy in front, or None.
    ``form_secret`` is in every form of this server, and in no page that another site can read.
    """

    host: str
    token: str | None = None
    names: frozenset[str] = frozenset()
    public_url: str | None = None
    form_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @classmethod
    def to(cls, host: str, token: str | None, public_url: str | None = None) -> Access:
        """Create the access to a server on ``host``; generates a token if one is needed but not given.

        Raises `UsageError` for a token that could be guessed and for an invalid public address.
        """
        if token is not None and len(token) < LEAST_TOKEN_CHARACTERS:
            message = f"the token has {len(token)} characters, but needs at least {LEAST_TOKEN_CHARACTERS}"
            raise UsageError(message, "Leave it out to have one generated if needed.")
        names = set() if is_loopback(host) else {host, socket.gethostname(), socket.getfqdn()}
        if public_url is not None:
            public_url = public_url.rstrip("/").lower()
            names.add(_name_in(public_url))
        generated = secrets.token_urlsafe(32) if names else None
        return cls(host, token or generated, frozenset(map(str.lower, names)), public_url)

    def serves(self, host_header: str) -> bool:
        """Whether the ``Host`` header means this server; other names belong to pages that point their names here.

        Addresses are safe: no page can make a browser send one by pointing its name here.
        """
        try:
            parts = urlsplit(f"//{host_header}")
            name, _ = (parts.hostname or "").lower(), parts.port  # reading the port validates it
        except ValueError:
            return False
        if is_loopback(name) or name in self.names:
            return True
        with suppress(ValueError):
            return not is_loopback(self.host) and bool(ipaddress.ip_address(name))
        return False

    def is_own_origin(self, origin: str, host_header: str) -> bool:
        """Whether a page of ``origin`` is ours, for a request with this ``Host``."""
        return origin in (f"http://{host_header}", self.public_url)

    def admits(self, token: str) -> bool:
        """Whether the token is valid, compared in constant time."""
        return self.token is None or hmac.compare_digest(token.encode(), self.token.encode())

    @cached_property
    def cookie(self) -> str:
        """What a visitor's browser stores instead of the token."""
        return hmac.new((self.token or "").encode(), b"codex-multi-role cookie", hashlib.sha256).hexdigest()

    def knows(self, cookie: str) -> bool:
        """Whether the cookie is valid, compared in constant time."""
        return self.token is None or hmac.compare_digest(cookie.encode(), self.cookie.encode())

    def is_own_form(self, secret: str) -> bool:
        """Whether the secret is that of this server's forms, compared in constant time."""
        return hmac.compare_digest(secret.encode(), self.form_secret.encode())
