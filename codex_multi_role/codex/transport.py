"""One ``codex app-server`` child: JSON lines over its pipes, read in the background, every wait with a deadline.

Two threads a child: one reads stdout, one drains stderr. Replies go to whoever asked, everything else goes in order to
a bounded inbox; a full inbox makes the child wait, and nothing is lost.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import re
import select
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from codex_multi_role.codex.incoming import LONGEST_LINE, Incoming, Message
from codex_multi_role.codex.wire_log import WireLog
from codex_multi_role.errors import CodexCrashed, CodexRefused, CodexStartFailed, CodexTimeout
from codex_multi_role.processes import Family, processes_below

INBOX_SIZE = 10_000
TERMINAL_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
STDERR_LIMIT = 8 * 1024 * 1024
STDERR_TAIL_LINES = 20
WRITE_SECONDS = 30.0
CANCELLED_SECONDS = 1.0
GRACE_SECONDS = 3.0
JOIN_SECONDS = 2.0
LAST_WORDS_SECONDS = 0.5


class Cancelled:
    """What `AppServerTransport.cancel` puts into the inbox."""


CANCELLED = Cancelled()
_END = object()


@dataclass(frozen=True)
class Launch:
    """How to start a child: its command, environment, working folder, and where what it says is kept.

    ``family``: what marks it and the commands it starts.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    stderr_path: Path
    family: Family = field(default_factory=Family)


class AppServerTransport:
    """Speaks JSON-RPC lines with one child process. One thread consumes the inbox; any thread may ask and cancel."""

    def __init__(self, launch: Launch, log: WireLog) -> None:
        self._launch = launch
        self._log = log
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[Message]] = {}
        self._inbox: queue.Queue[object] = queue.Queue(INBOX_SIZE)
        self._cancelling: Future[Message] = Future()
        self._spawn_lock = threading.Lock()
        self._stop_lock = threading.Lock()
        self._stopped = False
        self._write_lock = threading.Lock()
        self._stderr_tail: deque[str] = deque(maxlen=STDERR_TAIL_LINES)
        self._stderr_room = STDERR_LIMIT
        self._closing = threading.Event()
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def _process(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            raise CodexStartFailed("the Codex process was not started")
        return self._child

    def start(self) -> None:
        """Spawn the child in its own session and begin to read. Raises `CodexStartFailed`."""
        with self._spawn_lock:
            if self._closing.is_set():
                raise CodexStartFailed("the run is stopping")
            self._child = child = self._spawn()
            self._log.open()
        stdin, stdout, stderr = child.stdin, child.stdout, child.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        os.set_blocking(stdin.fileno(), False)
        for what, target, stream in (("stderr", self._drain_stderr, stderr), ("stdout", self._read_stdout, stdout)):
            thread = threading.Thread(target=target, args=(stream,), name=f"codex-{what}-{child.pid}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _spawn(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                list(self._launch.argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=-1,
                cwd=self._launch.folder,
                env=self._launch.family.marked(self._launch.environment),
                start_new_session=True,
            )
        except OSError as error:
            raise CodexStartFailed(f"cannot start {self._launch.argv[0]}: {error}") from error

    def ask(self, method: str, params: Mapping[str, Any]) -> Future[Message]:
        """Send a request; the future holds the ``result`` or a `CodexRefused`, `CodexCrashed`. Raises `CodexError`."""
        number = next(self._ids)
        future: Future[Message] = Future()
        self._waiting[number] = future
        if self._ended.is_set():
            raise self._crash()
        self._write({"id": number, "method": method, "params": params})
        return future

    def request(self, method: str, params: Mapping[str, Any], deadline_seconds: float) -> Message:
        """Send a request and wait for its result. Raises `CodexRefused`, `CodexCrashed`, `CodexTimeout`."""
        future = self.ask(method, params)
        wait([future, self._cancelling], deadline_seconds, FIRST_COMPLETED)
        try:
            return future.result(CANCELLED_SECONDS if self._cancelling.done() else 0)
        except FutureTimeoutError:
            raise CodexTimeout(f"{method} was not answered within {deadline_seconds:g} s") from None

    def notify(self, method: str) -> None:
        self._write({"method": method})

    def reply(self, request_id: object, body: Mapping[str, Any]) -> None:
        """Answer a server request; its id goes back with the JSON type it came with."""
        self._write({"id": request_id, **body})

    def next_message(self, timeout_seconds: float) -> Message | Cancelled | None:
        """The next notification or server request, or None when the time is up. Raises `CodexCrashed`."""
        try:
            entry = self._inbox.get(timeout=max(timeout_seconds, 0))
        except queue.Empty:
            return None
        if entry is _END:
            self._put(_END)
            raise self._crash()
        return entry  # type: ignore[return-value]  # the inbox holds messages, CANCELLED and _END only

    def cancel(self) -> None:
        """Wake the consumer: its next message is `CANCELLED`. Requests get `CANCELLED_SECONDS` more. Never waits."""
        with contextlib.suppress(InvalidStateError):
            self._cancelling.set_result({})
        with contextlib.suppress(queue.Full):
            self._inbox.put_nowait(CANCELLED)

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """End the child and all it started: stdin EOF, then SIGTERM, then SIGKILL. Further calls wait for the first."""
        with self._spawn_lock:
            self._closing.set()
            child = self._child
        with self._stop_lock:
            if child is not None and not self._stopped:
                self._stopped = True
                self._end(child, grace_seconds)

    def _end(self, child: subprocess.Popen[bytes], grace_seconds: float) -> None:
        self._launch.family.adopt(processes_below(child.pid))
        if grace_seconds <= 0:
            child.kill()
        with contextlib.suppress(OSError):
            assert child.stdin is not None
            child.stdin.close()
        for step in (child.terminate, child.kill):
            try:
                child.wait(grace_seconds if grace_seconds > 0 else GRACE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                step()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE_SECONDS)
        self._launch.family.end()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
        self._log.close()

    def stderr_message(self) -> str:
        """The reason a child gave for its end: its latest line that begins with ``Error``, or nothing."""
        return next((line for line in reversed(self._stderr_tail) if line.startswith("Error")), "")

    def _crash(self) -> CodexCrashed:
        code = self._process.poll()
        ending = "closed its output" if code is None else f"ended with exit code {code}"
        return CodexCrashed(f"the Codex process {ending}", complaint=self.stderr_message())

    def _write(self, message: Mapping[str, Any]) -> None:
        line = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        with self._write_lock:
            self._log.write("out", line)
            self._write_all(line + b"\n")

    def _write_all(self, data: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        deadline = time.monotonic() + WRITE_SECONDS
        view = memoryview(data)
        try:
            while view:
                remaining = deadline - time.monotonic()
                if remaining <= 0 or not select.select([], [stdin], [], remaining)[1]:
                    raise CodexTimeout(f"Codex took no input for {WRITE_SECONDS:g} s")
                with contextlib.suppress(BlockingIOError):
                    view = view[os.write(stdin.fileno(), view) :]
        except (OSError, ValueError) as error:
            raise self._crash() from error

    def _read_stdout(self, stream: IO[bytes]) -> None:
        try:
            for line, message in Incoming(stream.fileno()):
                if message is None:  # not ours to mend
                    self._log.write_text("in", line)
                else:
                    self._log.write("in", line)
                    self._route(message)
        finally:
            self._hear_last_words()
            self._ended.set()
            for future in list(self._waiting.values()):
                if not future.done():
                    future.set_exception(self._crash())
            self._put(_END)
            stream.close()

    def _hear_last_words(self) -> None:
        """Wait a moment for the exit code and for what stderr says of it, before anyone is told of the end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(LAST_WORDS_SECONDS)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(LAST_WORDS_SECONDS)

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
        """Wait for room in the inbox, unless the child is being stopped: then no one need read on."""
        while True:
            try:
                self._inbox.put(entry, timeout=0.5)
            except queue.Full:
                if not self._closing.is_set():
                    continue
            return

    def _drain_stderr(self, stream: IO[bytes]) -> None:
        """Read to the end, whatever becomes of the file: a child that nobody hears would wait for ever."""
        while line := stream.readline(LONGEST_LINE):
            text = self._log.redact(TERMINAL_COLOUR.sub("", line.decode("utf-8", "replace")))
            self._stderr_tail.append(text.rstrip())
            self._keep_stderr(text.encode("utf-8", "replace"))
        stream.close()

    def _keep_stderr(self, text: bytes) -> None:
        if self._stderr_room > 0:
            try:
                with self._launch.stderr_path.open("ab") as file:
                    self._stderr_room -= file.write(text)
            except OSError:  # a full disk: the turn is worth more than its log
                self._stderr_room = 0


def _refusal(error: object) -> CodexRefused:
    """A JSON-RPC error, also one of another shape than the protocol gives it."""
    details = error if isinstance(error, Mapping) else {}
    code = details.get("code")
    return CodexRefused(str(details.get("message", error)), code if isinstance(code, int) else 0)
