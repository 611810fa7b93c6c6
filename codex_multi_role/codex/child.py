"""A child process: its pipes, its stderr and its shutdown, each with a deadline."""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from codex_multi_role.codex.incoming import LONGEST_LINE
from codex_multi_role.errors import SYSTEM_HINTS, CodexStartFailed, CodexTimeout
from codex_multi_role.host.processes import Family, ending_in_words, processes_below

TERMINAL_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
STDERR_LIMIT = 8 * 1024 * 1024
STDERR_TAIL_LINES = 20
WRITE_SECONDS = 30.0
GRACE_SECONDS = 3.0
JOIN_SECONDS = 2.0
LAST_WORDS_SECONDS = 10.0
"""A busy machine may need seconds for milliseconds of work; only a blocked child needs the full time."""


@dataclass(frozen=True)
class Launch:
    """How to start a child: its command, environment, working folder and stderr file.

    ``family`` marks the child and the commands it starts.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    stderr_path: Path
    family: Family = field(default_factory=Family)


class Child:
    """A running child in its own session; ``redact`` masks secrets in the stored stderr."""

    def __init__(self, launch: Launch, redact: Callable[[str], str]) -> None:
        """Raises `CodexStartFailed`."""
        self._launch, self._redact = launch, redact
        self._tail: deque[str] = deque(maxlen=STDERR_TAIL_LINES)
        self._room = STDERR_LIMIT
        self._threads: list[threading.Thread] = []
        self._process = _spawn(launch)
        stdin = self._process.stdin
        assert stdin is not None
        os.set_blocking(stdin.fileno(), False)
        self._stdin = stdin

    def listen(self, read: Callable[[IO[bytes]], None]) -> None:
        """Start two threads: ``read`` consumes stdout to its end, the other drains stderr.

        Raises `CodexStartFailed` if the system cannot start a thread.
        """
        for what, target, stream in (
            ("stderr", self._drain, self._process.stderr),
            ("stdout", read, self._process.stdout),
        ):
            thread = threading.Thread(target=target, args=(stream,), name=f"codex-{what}-{self.pid}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                raise CodexStartFailed(f"cannot read from Codex: {error}") from error
            self._threads.append(thread)

    @property
    def pid(self) -> int:
        return self._process.pid

    def ending(self) -> str:
        """Describe how the child ended."""
        code = self._process.poll()
        return "closed its output" if code is None else f"ended with {ending_in_words(code)}"

    def error_line(self) -> str:
        """The latest stderr line that begins with ``Error``, the reason for the child's end, or an empty string."""
        return next((line for line in reversed(self._tail) if line.startswith("Error")), "")

    def write(self, data: bytes) -> None:
        """Write all ``data``. Raises `CodexTimeout` after `WRITE_SECONDS`, OSError or ValueError for a closed pipe."""
        deadline = time.monotonic() + WRITE_SECONDS
        view = memoryview(data)
        writable = select.poll()  # waits: for the child to read, ended by WRITE_SECONDS
        writable.register(self._stdin, select.POLLOUT)
        while view:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not writable.poll(remaining * 1000):
                raise CodexTimeout(f"Codex accepted no input for {WRITE_SECONDS:g} s")
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._stdin.fileno(), view) :]

    def drain_stderr(self) -> None:
        """Wait for the exit code and the rest of stderr, so that both are known before the end is reported."""
        deadline = time.monotonic() + LAST_WORDS_SECONDS
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(LAST_WORDS_SECONDS)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(deadline - time.monotonic(), 0))

    def end(self, grace_seconds: float) -> None:
        """End the child and all it started: stdin EOF, SIGTERM, SIGKILL; without a grace period SIGKILL at once."""
        self._launch.family.adopt(processes_below(self.pid))
        if grace_seconds <= 0:
            self._process.kill()
        with contextlib.suppress(OSError):
            self._stdin.close()
        for step in (self._process.terminate, self._process.kill):
            try:
                self._wait(grace_seconds if grace_seconds > 0 else GRACE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                step()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        self._launch.family.end()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)

    def _wait(self, seconds: float) -> None:
        """Wait for the exit code. Raises `subprocess.TimeoutExpired`.

        `Popen.wait` alone looks every 50 ms, which is how long Codex takes to end.
        """
        deadline = time.monotonic() + seconds
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # its exit code is known already
                process = os.pidfd_open(self.pid)
                ended = select.poll()  # waits: for the child's end, ended by the seconds of each poll
                ended.register(process, select.POLLIN)
                ended.poll(seconds * 1000)
                os.close(process)
        self._process.wait(max(0.0, deadline - time.monotonic()))

    def _drain(self, stream: IO[bytes]) -> None:
        """Read stderr to its end, even if its file fails: a child would block if nobody read its stderr."""
        # waits: for the child's lines, ended by its end, which has deadlines
        while line := stream.readline(LONGEST_LINE):
            text = self._redact(TERMINAL_COLOUR.sub("", line.decode("utf-8", "replace")))
            self._tail.append(text.rstrip())
            self._keep(text.encode("utf-8", "replace"))
        stream.close()

    def _keep(self, text: bytes) -> None:
        if self._room > 0:
            try:
                with self._launch.stderr_path.open("ab") as file:
                    self._room -= file.write(text)
            except OSError:  # a full disk: losing the log must not fail the turn
                self._room = 0


def _spawn(launch: Launch) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(launch.argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=-1,
            cwd=launch.folder,
            env=launch.family.marked(launch.environment),
            start_new_session=True,
        )
    except OSError as error:
        hint = SYSTEM_HINTS.get(error.errno or 0, "")
        raise CodexStartFailed(f"cannot start {launch.argv[0]}: {error}", hint) from error
