"""Objects in whatever fsspec can address: S3, other object stores, file servers."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Any

import fsspec
from fsspec.core import url_to_fs

from codex_multi_role.errors import INSTALL, UsageError, how_to_add

REQUEST_SECONDS = 120.0
CONNECT_SECONDS = 10.0
WRITES_IN_ONE_STEP = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "memory"})
"""Protocols that show an object only once it is whole; elsewhere it is written under another name and moved."""
EXTRAS = {"s3": "s3", "s3a": "s3"}
"""By protocol, the extra of this package that brings what fsspec needs for it."""


class RemoteObjects:
    """Objects below ``address``. Credentials and endpoints come from the environment and fsspec's own configuration."""

    def __init__(self, address: str, protocol: str) -> None:
        self._files, self._prefix = _open(address, protocol)
        self._deadline = {"timeout": REQUEST_SECONDS} if self._files.async_impl else {}
        self._in_one_step = protocol in WRITES_IN_ONE_STEP

    def read(self, name: str) -> bytes:
        content: bytes = self._files.cat_file(self._path(name), **self._deadline)
        return content

    def exists(self, name: str) -> bool:
        # Not fsspec's `exists`, which takes missing rights for a missing object.
        try:
            self._files.invalidate_cache(self._path(name))
            self._files.info(self._path(name), **self._deadline)
        except FileNotFoundError:
            return False
        return True

    def write(self, name: str, content: bytes) -> None:
        if self._in_one_step:
            self._files.pipe_file(self._path(name), content, **self._deadline)
            return
        parent = self._path(name).rpartition("/")[0]
        temporary = f"{self._path(name)}.{secrets.token_hex(8)}"
        self._files.makedirs(parent, exist_ok=True)
        self._files.pipe_file(temporary, content, **self._deadline)
        self._files.mv(temporary, self._path(name))

    def create(self, name: str, content: bytes) -> None:
        if not self._in_one_step:
            self._files.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
        with suppress(FileExistsError):
            self._files.pipe_file(self._path(name), content, mode="create", **self._deadline)

    def _path(self, name: str) -> str:
        return f"{self._prefix}/{name}"


def _open(address: str, protocol: str) -> tuple[Any, str]:
    """fsspec's file system for ``address`` and the path in it. Raises `UsageError`."""
    if protocol not in fsspec.available_protocols():
        message = f"the store {address} has an unknown scheme: {protocol}"
        raise UsageError(message, "Use file:, s3: or another of fsspec.")
    try:
        files, prefix = url_to_fs(address, **_options(protocol))
    except ImportError as error:
        name = EXTRAS.get(protocol)
        how = how_to_add(name) if name else str(error)
        raise UsageError(f"the store {address} needs a package that is not installed", f"{INSTALL}{how}") from error
    return files, prefix.rstrip("/")


def _options(protocol: str) -> dict[str, Any]:
    if protocol not in EXTRAS:
        return {}
    # No cached listings: another machine may have written the object that was missing before.
    waits = {"connect_timeout": CONNECT_SECONDS, "read_timeout": REQUEST_SECONDS / 2}
    return {"config_kwargs": waits, "use_listings_cache": False}
