"""Who may use the server: under which names it is reached, with which token, from which pages."""

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


@dataclass(frozen=True)
class Access:
    """``host``: where the server listens. ``token``: what a visitor needs to have, or None.

    ``form_secret`` is in every form of this server, and in no page that another site can read.
    """

    host: str
    token: str | None = None
    form_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @classmethod
    def to(cls, host: str, token: str | None) -> Access:
        """For a server on ``host``, which makes its own token where one is needed and none given.

        Raises `UsageError` for a token that could be guessed.
        """
        if token is not None and len(token) < LEAST_TOKEN_CHARACTERS:
            raise UsageError(
                f"the token has {len(token)} characters, {LEAST_TOKEN_CHARACTERS} are the least",
                "Leave it out: then one is made, where one is needed.",
            )
        return cls(host, token or (None if is_loopback(host) else secrets.token_urlsafe(32)))

    def serves(self, host_header: str) -> bool:
        """Whether a request for this ``Host`` is meant for us; other names belong to pages that point theirs here.

        Nobody can point a name's pages at us and have the browser say an address, so addresses are no risk.
        """
        try:
            parts = urlsplit(f"//{host_header}")
            name, _ = (parts.hostname or "").lower(), parts.port  # which is read for what it raises
        except ValueError:
            return False
        if is_loopback(name):
            return True
        if is_loopback(self.host):
            return False
        with suppress(ValueError):
            return bool(ipaddress.ip_address(name))
        return name in self._own_names

    @cached_property
    def _own_names(self) -> frozenset[str]:
        return frozenset(name.lower() for name in (self.host, socket.gethostname(), socket.getfqdn()))

    def admits(self, token: str) -> bool:
        """Whether that is the token, compared in constant time."""
        return self.token is None or hmac.compare_digest(token.encode(), self.token.encode())

    @cached_property
    def cookie(self) -> str:
        """What a visitor's browser keeps instead of the token."""
        return hmac.new((self.token or "").encode(), b"codex-multi-role cookie", hashlib.sha256).hexdigest()

    def knows(self, cookie: str) -> bool:
        """Whether that is the cookie, compared in constant time."""
        return self.token is None or hmac.compare_digest(cookie.encode(), self.cookie.encode())

    def is_own_form(self, secret: str) -> bool:
        """Whether a form with this secret comes from a page of this server, compared in constant time."""
        return hmac.compare_digest(secret.encode(), self.form_secret.encode())
