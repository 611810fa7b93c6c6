"""Addresses of results: web pages, and documents below a provider's folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit


def is_web_address(address: str) -> bool:
    """Whether the address may be given to a reader as a link."""
    parts = _parts(address)
    return parts is not None and parts.scheme in ("http", "https")


def place(result: Mapping[str, Any]) -> str:
    """The normalized address of a result; a path belongs to its provider."""
    parts = _parts(result["address"])
    if parts is None:
        return f"{result.get('provider', '')}:{result['address']}"
    port = "" if parts.port in (None, 80, 443) else f":{parts.port}"
    query = "&".join(sorted(part for part in parts.query.split("&") if part and not part.startswith("utm_")))
    return f"{host(parts)}{port}{parts.path.rstrip('/')}?{query}"


def origin(result: Mapping[str, Any]) -> str:
    """The speaker of a result: a page's host, or a document. Several pages of one host are one speaker."""
    parts = _parts(result["address"])
    return place(result) if parts is None else host(parts)


def host(parts: SplitResult) -> str:
    return (parts.hostname or "").removeprefix("www.")


def _parts(address: str) -> SplitResult | None:
    """The parts of a page's address, or None."""
    try:
        parts = urlsplit(address.strip())
        return parts if parts.hostname and parts.port != -1 else None
    except ValueError:
        return None
