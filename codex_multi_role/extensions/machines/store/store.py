"""One address where runs are saved: its objects, checked when they are read, and its identity."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import uuid
import zlib
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.extensions.machines.store.objects import LocalObjects, Objects
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.host.unpacking import UnpackBudget, UnpackingRefused, inflate
from codex_multi_role.host.user_cache import expanded

Given = TypeVar("Given")
Result = TypeVar("Result")

MARKER = "codex-multi-role-store.json"
PROBE = "probe"
PROBE_BYTES = 256 * 1024
"""More than most turns add; random, because a file system may compress it."""
LOCAL_SCHEMES = ("", "file", "local")
COMPRESSION = 1
"""The fastest: logs shrink to a fifth, and a turn is not kept waiting."""
REQUESTS = 8
"""How many requests are sent at once."""
OBJECT = UnpackBudget(max_bytes=256 * 1024 * 1024, max_entries=1, max_depth=1, max_seconds=60.0)
"""Of one object; a damaged one could otherwise fill the memory."""


class StoreUnwritable(StorageError):
    """Nothing can be written now: the store is full, read-only or cannot be reached. That can pass."""


class Store:
    """The objects at ``address``. Threads may share it. Every method raises `StorageError`, which names the address.

    ``identity``: a random ID, written by the first user; two machines that see the same ID use the same store.
    """

    def __init__(self, address: str, objects: Objects) -> None:
        self.address = address
        self._objects = objects
        self.identity = self._read_identity()

    @classmethod
    def open(cls, address: str) -> Store:
        """The store at ``address``: a folder, ``file:///folder``, ``s3://bucket/prefix`` or another of fsspec.

        Raises `UsageError` for an address that cannot be used, `StorageError` for a store that cannot.
        """
        scheme = urlsplit(address).scheme if "://" in address or address.startswith("file:") else ""
        _refuse_secrets(address)
        if scheme in LOCAL_SCHEMES:
            folder = _local_folder(address, scheme)
            return cls(folder.as_uri(), LocalObjects(folder))
        from codex_multi_role.extensions.machines.store.remote_objects import RemoteObjects  # lazy: slow to import

        with _words(address, "opened"):
            objects = RemoteObjects(address, scheme)
        return cls(address.rstrip("/"), objects)

    @property
    def folder(self) -> Path | None:
        """The folder that it is on this machine; None for a store elsewhere."""
        return _local_folder(self.address, "file").resolve() if self.address.startswith("file:") else None

    def put(self, content: bytes) -> str:
        """Store ``content`` under its SHA-256, which is returned; an existing object is not sent again."""
        digest = hashlib.sha256(content).hexdigest()
        name = _blob(digest)
        with _words(self.address, "written"):
            if not self._objects.exists(name):
                self._objects.write(name, zlib.compress(content, COMPRESSION))
        return digest

    def get(self, digest: str) -> bytes:
        """The content with that SHA-256; `StorageError` if it is missing or damaged."""
        return self._read_checked(_blob(digest), digest)

    def put_named(self, prefix: str, suffix: str, content: bytes) -> str:
        """Store ``content`` under ``<prefix><its SHA-256><suffix>``, which is returned."""
        name = f"{prefix}{hashlib.sha256(content).hexdigest()}{suffix}"
        with _words(self.address, "written"):
            self._objects.write(name, zlib.compress(content, COMPRESSION))
        return name

    def get_named(self, name: str, suffix: str) -> bytes:
        """What `put_named` stored under ``name``; `StorageError` if it is missing or damaged."""
        return self._read_checked(name, name.removesuffix(suffix)[-64:])

    def require_room(self) -> None:
        """Raise `StoreUnwritable` unless something can be written now."""
        with _words(self.address, "written"):
            self._objects.write(PROBE, os.urandom(PROBE_BYTES))

    def _read_checked(self, name: str, digest: str) -> bytes:
        try:
            with _words(self.address, READ):
                packed = self._objects.read(name)
        except FileNotFoundError as error:
            raise self._damaged(name, "is missing from") from error
        try:
            content = inflate(packed, OBJECT)
        except UnpackingRefused as error:
            raise self._damaged(name, "is damaged in") from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise self._damaged(name, "is damaged in")
        return content

    def _damaged(self, name: str, how: str) -> StorageError:
        return StorageError(f"{name} {how} the store {self.address}", "Restore the store from a copy.")

    def _read_identity(self) -> str:
        """The ID in the marker file, which is written if it is missing: of two first users, one writes it."""
        with _words(self.address, READ):
            for _ in range(2):
                try:
                    return str(json.loads(self._objects.read(MARKER))["identity"])
                except FileNotFoundError:
                    marker = json.dumps({"identity": uuid.uuid4().hex, "version": 1}) + "\n"
                    with _words(self.address, "written"):
                        self._objects.create(MARKER, marker.encode())
                except (ValueError, LookupError, TypeError) as error:
                    raise self._damaged(MARKER, "is damaged in") from error
        raise StorageError(f"the store {self.address} does not keep what is written to it", "Use another store.")


def in_parallel(work: Callable[[Given], Result], items: Collection[Given]) -> list[Result]:
    """What ``work`` returns for each of ``items``, in order, several at once: most of the time is spent waiting."""
    if not items:
        return []
    # waits: for files, and requests, ended by REQUEST_SECONDS
    with ThreadPoolExecutor(min(REQUESTS, len(items)), thread_name_prefix="store") as pool:
        return list(pool.map(work, items))


def _blob(digest: str) -> str:
    return f"blobs/{digest[:2]}/{digest}"


def _refuse_secrets(address: str) -> None:
    parts = urlsplit(address)
    if parts.password or parts.username or "::" in address:
        hint = "Give only the place, such as s3://bucket/prefix; credentials come from the environment."
        raise UsageError("the address of the store contains credentials, or leads through another one with '::'", hint)


def _local_folder(address: str, scheme: str) -> Path:
    if not address.strip():
        message = "the address of the store is empty"
        raise UsageError(message, "Name a folder, or an address such as s3://bucket/prefix.")
    if not scheme:
        return expanded(address).absolute()
    parts = urlsplit(address)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise UsageError(f"the store {address} is not an absolute path", "Write file:///folder with three slashes.")
    return Path(unquote(parts.path))


HINTS = {
    errno.ENOSPC: "Free some space there.",
    errno.EDQUOT: "Free some space there.",
    errno.EROFS: "Make it writable, or use another store.",
    errno.EACCES: "Check the rights of this user there.",
    errno.EPERM: "Check the rights of this user there.",
}
READ = "read"
REACH_HINT = "Check the address, the network and the credentials in the environment."


@contextmanager
def _words(address: str, done: str) -> Iterator[None]:
    """Convert any failure of the library behind the store to a `StorageError`, except a missing object when reading."""
    try:
        yield
    except (StorageError, UsageError):
        raise
    except Exception as error:  # each library has classes of its own, without a common one
        if isinstance(error, FileNotFoundError) and done == READ:
            raise
        text = Redactor(os.environ)(f"the store {address} cannot be {done}: {_reason(error)}")
        number = errno.EACCES if isinstance(error, PermissionError) else getattr(error, "errno", None)
        kind = StorageError if done == READ else StoreUnwritable
        raise kind(text, HINTS.get(number or 0, REACH_HINT)) from error


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
