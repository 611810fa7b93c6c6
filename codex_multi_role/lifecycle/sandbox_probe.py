"""Whether Codex's sandbox works on this machine: for `doctor`, and before the first turn of a run that needs it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from codex_multi_role.codex.permissions import sandboxed
from codex_multi_role.errors import RESOURCE_HINTS, CodexUnavailable
from codex_multi_role.host.processes import ending_in_words
from codex_multi_role.workspace.commands import run_command

PROBE_SECONDS = 60.0
_RESTRICTIONS = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),  # Ubuntu since 24.04
    ("kernel.unprivileged_userns_clone", "0", "1"),  # Debian before 11
    ("user.max_user_namespaces", "0", "15000"),
)
"""Kernel parameter, the value that forbids user namespaces, and one that allows them."""
_working = set[Path]()


def require_sandbox(codex: Path, stopping: Event | None = None) -> None:
    """Try the sandbox, until it worked once in this process. Raises `CodexUnavailable`, `RunInterrupted`."""
    if codex in _working:
        return
    with TemporaryDirectory(prefix="codex-home-") as home:
        argv, environment = sandboxed(codex, ["true"], Path(home)), {**os.environ, "CODEX_HOME": home}
        done = run_command(argv, Path(home), environment, PROBE_SECONDS, stopping=stopping)
    if done.returncode != 0:
        lines = re.split("\n[Ss]tack backtrace:", done.output)[0].strip().splitlines()
        last = lines[-1] if lines else ending_in_words(done.returncode)
        problem = f"no answer in {PROBE_SECONDS:g} s" if done.timed_out else last
        raise CodexUnavailable(f"Codex's sandbox does not work on this machine: {problem}", _advice(problem))
    _working.add(codex)


@contextmanager
def trying_sandbox(codex: Path, *, needed: bool) -> Iterator[Callable[[], object]]:
    """Do `require_sandbox` beside the block if ``needed``; yields a function that waits for it, and raises the same."""
    stopping = Event()
    with ThreadPoolExecutor(1, thread_name_prefix="sandbox") as pool:  # waits: for one command, ended by PROBE_SECONDS
        tried = pool.submit(require_sandbox, codex, stopping) if needed else None
        try:
            yield lambda: tried and tried.result()  # waits: for one command, ended by PROBE_SECONDS
        finally:
            stopping.set()


def _advice(problem: str) -> str:
    number = re.search(r"\(os error (\d+)\)$", problem)
    if number and (lacking := RESOURCE_HINTS.get(int(number[1]))):  # no sandbox was tried: Codex did not start
        return lacking
    allow = [f"`sudo sysctl -w {name}={good}`" for name, bad, good in _RESTRICTIONS if _parameter(name) == bad]
    how = " and ".join(allow) or "on the host, or with `docker run --security-opt seccomp=unconfined …`"
    return f"Allow unprivileged user namespaces: {how}. Or run tests and checks without the sandbox: --no-test-sandbox."


def _parameter(name: str) -> str:
    with suppress(OSError):
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    return ""
