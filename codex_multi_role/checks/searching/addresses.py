"""Addresses of results: of pages, and of documents below a provider's folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit


def is_web_address(address: str) -> bool:
    """Whether a reader may be led there."""
    parts = _parts(address)
    return parts is not None and parts.scheme in ("http", "https")


def place(result: Mapping[str, Any]) -> str:
    """Where a result comes from, the same however its address is written; a path is one of its provider."""
    parts = _parts(result["address"])
    if parts is None:
        return f"{result.get('provider', '')}:{result['address']}"
    port = "" if parts.port in (None, 80, 443) else f":{parts.port}"
    query = "&".join(sorted(part for part in parts.query.split("&") if part and not part.startswith("utm_")))
    return f"{host(parts)}{port}{parts.path.rstrip('/')}?{query}"


def origin(result: Mapping[str, Any]) -> str:
    """Who speaks: a page's host, or a document. What several pages of one host say, one says."""
    parts = _parts(result["address"])
    return place(result) if parts is None else host(parts)


def host(parts: SplitResult) -> str:
    return (parts.hostname or "").removeprefix("www.")


def _parts(address: str) -> SplitResult | None:
    """None for what is no address of a page."""
    try:
        parts = urlsplit(address.strip())
        return parts if parts.hostname and parts.port != -1 else None
    except ValueError:
        return None
