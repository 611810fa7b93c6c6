"""Run one command to its end, with limits on its time and output, and end whatever it leaves running."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from codex_multi_role.errors import RunInterrupted, not_started
from codex_multi_role.host.processes import Family

OUTPUT_LIMIT_BYTES = 2 * 1024 * 1024
_POLL_SECONDS = 0.1
_DRAIN_SECONDS = 1.0
_CHUNK_BYTES = 65_536
_SANDBOX_STARTS = 10
_NOT_MOUNTED = re.compile(r"(WARNING: proceeding, [^\n]*\n)?bwrap: Can't [^\n]*\n?")
"""All that a sandbox says that did not start its command. It makes mount points, such as `.git`, for what is missing in
the workspace, and removes them at its end: another sandbox that starts there at this moment fails (measured). The same
happens to links that Codex makes for itself, of which it warns."""

Sandbox = Callable[[Sequence[str], Path], list[str]]
"""Wraps a command so that it can write only to the workspace and to the given folder."""


def no_sandbox(argv: Sequence[str], writable: Path) -> list[str]:
    """The disabled sandbox: ``argv`` unchanged."""
    return list(argv)


@dataclass(frozen=True)
class CommandResult:
    """How a command ended.

    ``returncode`` is None after a timeout, negative if a signal ended the command. ``output`` is standard output and
    error combined, without its middle if ``truncated``. ``seconds`` is the whole duration. With separate errors,
    ``output`` is standard output alone, and ``errors`` is standard error with the same limit.
    """

    returncode: int | None
    output: str
    timed_out: bool
    seconds: float
    truncated: bool
    errors: str = ""

    @property
    def not_sandboxed(self) -> bool:
        """Whether the sandbox did not start the command."""
        return self.returncode == 1 and _NOT_MOUNTED.fullmatch(self.errors or self.output) is not None


def run_command(
    argv: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    timeout_seconds: float,
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    stopping: Event | None = None,
    separate_errors: bool = False,
) -> CommandResult:
    """Run ``argv`` in ``cwd`` with exactly ``environment``, without input, and end everything it started.

    At the deadline the command and all its descendants get SIGTERM, then SIGKILL; descendants that outlive the command
    are ended too. A sandbox that did not start the command is tried again. Raises UsageError if the command cannot be
    started, RunInterrupted once ``stopping`` is set.
    """
    deadline = time.monotonic() + timeout_seconds
    for _ in range(_SANDBOX_STARTS):
        left = max(0.0, deadline - time.monotonic())
        result = _run_once(argv, cwd, environment, left, output_limit_bytes, stopping or Event(), separate_errors)
        if not result.not_sandboxed:
            break
    return result


def _run_once(
    argv: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    timeout_seconds: float,
    output_limit_bytes: int,
    stopping: Event,
    separate_errors: bool,
) -> CommandResult:
    started = time.monotonic()
    family = Family()
    output, errors = _Output(output_limit_bytes), _Output(output_limit_bytes)
    process = _started(argv, cwd, family.marked(environment), separate_errors)
    family.leader = process.pid
    streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
    pipes = {stream.fileno(): kept for stream, kept in zip(streams, (output, errors), strict=False)}
    for pipe in pipes:
        os.set_blocking(pipe, False)
    try:
        _collect(process, pipes, started + timeout_seconds, stopping)
        timed_out = _still_runs(process, started + timeout_seconds, stopping)
        if stopping.is_set():
            raise RunInterrupted
    finally:
        family.end()
        _still_runs(process, time.monotonic() + _DRAIN_SECONDS, Event())
        _read_rest(pipes)
        for stream in streams:
            stream.close()
    return CommandResult(
        returncode=None if timed_out else process.returncode,
        output=output.text(),
        timed_out=timed_out,
        seconds=round(time.monotonic() - started, 3),
        truncated=output.omitted > 0,
        errors=errors.text(),
    )


def _started(
    argv: Sequence[str], cwd: Path, environment: Mapping[str, str], separate_errors: bool
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            argv,
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if separate_errors else subprocess.STDOUT,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise not_started(f"cannot run {argv[0]}", error, "is it installed, and on PATH?") from error


def _collect(process: subprocess.Popen[bytes], pipes: Mapping[int, _Output], deadline: float, stopping: Event) -> None:
    """Read until the pipes close, the deadline passes, or the run is stopping.

    A process that inherited a pipe can hold it open after the command has ended; we wait for it only briefly.
    """
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map() and (now := time.monotonic()) < deadline and not stopping.is_set():
            ready = selector.select(min(_POLL_SECONDS, deadline - now))
            for key, _ in ready:
                if not pipes[key.fd].read(key.fd):
                    selector.unregister(key.fd)
            if process.poll() is not None:
                if not ready:
                    return
                deadline = min(deadline, time.monotonic() + _DRAIN_SECONDS)


def _read_rest(pipes: Mapping[int, _Output]) -> None:
    """Read what is left in the pipes after all writers have ended.

    The end of a process may be seen before its last output. A process that escaped with a pipe must not block us.
    """
    deadline = time.monotonic() + _DRAIN_SECONDS
    for pipe, output in pipes.items():
        with contextlib.suppress(BlockingIOError):
            while output.read(pipe) and time.monotonic() < deadline:
                pass


def _still_runs(process: subprocess.Popen[bytes], deadline: float, stopping: Event) -> bool:
    """Wait until the process ends, the deadline passes or the run is stopping; returns whether it still runs."""
    while process.poll() is None and time.monotonic() < deadline and not stopping.is_set():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(_POLL_SECONDS, max(0.0, deadline - time.monotonic())))
    return process.returncode is None


class _Output:
    """Keeps the first and the last half of ``limit`` bytes; the bytes in between are only counted."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.omitted = 0

    def read(self, descriptor: int) -> bool:
        """Read what is available; False at the end of the stream."""
        chunk = os.read(descriptor, _CHUNK_BYTES)  # waits: for nothing: it was set not to block
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        surplus = len(self._tail) - self._half
        if surplus > 0:
            del self._tail[:surplus]
            self.omitted += surplus
        return bool(chunk)

    def text(self) -> str:
        gap = f"\n… {self.omitted} bytes left out …\n".encode() if self.omitted else b""
        return (bytes(self._head) + gap + bytes(self._tail)).decode("utf-8", "replace")
