"""One ``codex app-server`` child: JSON lines over its pipes, read in the background, every wait with a deadline.

Replies go to the caller, everything else in order to a bounded inbox. A full inbox makes the child wait, and nothing is
lost.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import threading
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import IO, Any

from codex_multi_role.codex.child import GRACE_SECONDS, Child, Launch
from codex_multi_role.codex.incoming import Incoming, Message
from codex_multi_role.codex.wire_log import WireLog
from codex_multi_role.errors import CodexCrashed, CodexRefused, CodexStartFailed, CodexTimeout

INBOX_SIZE = 10_000
CANCELLED_SECONDS = 1.0


class Cancelled:
    """The inbox entry of `AppServerTransport.wake`."""


CANCELLED = Cancelled()
_END = object()


class AppServerTransport:
    """Speaks JSON-RPC lines with one child process. One thread reads the inbox; any thread may ask and cancel."""

    def __init__(self, launch: Launch, log: WireLog) -> None:
        self._launch = launch
        self._log = log
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[Message]] = {}
        self._inbox: queue.Queue[object] = queue.Queue(INBOX_SIZE)
        self._cancelling: Future[Message] = Future()
        self._spawn_lock = threading.Lock()  # waits: for one start of a program
        self._stop_lock = threading.Lock()  # waits: for the end of a child, ended by GRACE_SECONDS a step
        self._stopped = False
        self._write_lock = threading.Lock()  # waits: for one message, ended by WRITE_SECONDS
        self._closing = threading.Event()
        self._ended = threading.Event()
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def _running(self) -> Child:
        if self._child is None:
            raise CodexStartFailed("the Codex process was not started")
        return self._child

    def start(self) -> None:
        """Spawn the child in its own session and start reading. Raises `CodexStartFailed`."""
        with self._spawn_lock:
            if self._closing.is_set():
                raise CodexStartFailed("the run is stopping")
            self._child = child = Child(self._launch, self._log.redact)
            self._log.open()
        child.listen(self._read)

    def ask(self, method: str, params: Mapping[str, Any]) -> Future[Message]:
        """Send a request; the future yields its ``result``, `CodexRefused` or `CodexCrashed`. Raises `CodexError`."""
        number = next(self._ids)
        future: Future[Message] = Future()
        self._waiting[number] = future
        if self._ended.is_set():
            raise self._crash()
        self._write({"id": number, "method": method, "params": params})
        return future

    def request(self, method: str, params: Mapping[str, Any], deadline_seconds: float) -> Message:
        """Send a request and wait for its result. Raises `CodexRefused`, `CodexCrashed`, `CodexTimeout`."""
        return self.answer(self.ask(method, params), method, deadline_seconds)

    def answer(self, asked: Future[Message], method: str, deadline_seconds: float) -> Message:
        """Wait for the result of what was `asked`. Raises like `request`."""
        wait([asked, self._cancelling], deadline_seconds, FIRST_COMPLETED)
        try:
            return asked.result(CANCELLED_SECONDS if self._cancelling.done() else 0)
        except FutureTimeoutError:
            raise CodexTimeout(f"{method} was not answered within {deadline_seconds:g} s") from None

    def notify(self, method: str) -> None:
        self._write({"method": method})

    def reply(self, request_id: object, body: Mapping[str, Any]) -> None:
        """Answer a server request; its id keeps its JSON type."""
        self._write({"id": request_id, **body})

    def next_message(self, timeout_seconds: float) -> Message | Cancelled | None:
        """The next notification or server request; None after the timeout. Raises `CodexCrashed`."""
        try:
            entry = self._inbox.get(timeout=max(timeout_seconds, 0))
        except queue.Empty:
            return None
        if entry is _END:
            self._put(_END)
            raise self._crash()
        return entry  # type: ignore[return-value]  # the inbox holds messages, CANCELLED and _END only

    def cancel(self) -> None:
        """`wake`, and give pending requests `CANCELLED_SECONDS` more. Never waits."""
        with contextlib.suppress(InvalidStateError):
            self._cancelling.set_result({})
        self.wake()

    def wake(self) -> None:
        """Wake the reader of the inbox: one of its next messages is `CANCELLED`. Never waits."""
        with contextlib.suppress(queue.Full):
            self._inbox.put_nowait(CANCELLED)

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """End the child and everything it started: stdin EOF, SIGTERM, SIGKILL. Later calls wait for the first."""
        with self._spawn_lock:
            self._closing.set()
            child = self._child
        with self._stop_lock:
            if child is not None and not self._stopped:
                self._stopped = True
                child.end(grace_seconds)
                self._log.close()

    def _crash(self) -> CodexCrashed:
        child = self._running
        return CodexCrashed(f"the Codex process {child.ending()}", error_line=child.error_line())

    def _write(self, message: Mapping[str, Any]) -> None:
        line = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        with self._write_lock:
            self._log.write("out", line)
            try:
                self._running.write(line + b"\n")
            except (OSError, ValueError) as error:
                self._running.drain_stderr()  # its pipes close before its exit code is known
                raise self._crash() from error

    def _read(self, stream: IO[bytes]) -> None:
        try:
            for line, message in Incoming(stream.fileno()):
                if message is None:  # malformed lines are only logged
                    self._log.write_text("in", line)
                else:
                    self._log.write("in", line)
                    self._route(message)
        finally:
            self._running.drain_stderr()
            self._ended.set()
            for future in list(self._waiting.values()):
                if not future.done():
                    future.set_exception(self._crash())
            self._put(_END)
            stream.close()

    def _route(self, message: Message) -> None:
        if isinstance(message.get("method"), str):
            self._put(message)
            return
        number = message.get("id")
        future = self._waiting.pop(number, None) if isinstance(number, int) else None
        if future is None or future.done():
            return
        error = message.get("error")
        if error is None:
            future.set_result(message.get("result") or {})
        else:
            future.set_exception(_refusal(error))

    def _put(self, entry: object) -> None:
        """Wait for room in the inbox, except while the child is being stopped, when nobody needs to read on."""
        while True:  # waits: for the consumer, ended by its deadlines or by the child's end
            try:
                self._inbox.put(entry, timeout=0.5)
            except queue.Full:
                if not self._closing.is_set():
                    continue
            return


def _refusal(error: object) -> CodexRefused:
    """Convert a JSON-RPC error, even one that does not have the protocol's shape."""
    details = error if isinstance(error, Mapping) else {}
    code = details.get("code")
    return CodexRefused(str(details.get("message", error)), code if isinstance(code, int) else 0)
