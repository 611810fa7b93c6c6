"""The least that can drive Codex: a pipe a role. It keeps, checks and recovers nothing.

What the benchmarks compare our command with, and what they share: a provider's settings, and a command's wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from codex_multi_role.codex.codex_settings import as_settings

IMPORTS = "import codex_multi_role.cli.run, codex_multi_role.api, codex_multi_role.engine.journal_file"


def read_options(about: str | None, runs: int, *raw: str) -> argparse.Namespace:
    """``--runs``, and ``--raw`` with these words, by which a script starts itself as the raw driver."""
    parser = argparse.ArgumentParser(description=about and about.splitlines()[0])
    parser.add_argument("--runs", type=int, default=runs)
    if raw:
        parser.add_argument("--raw", nargs=len(raw), metavar=raw, help=argparse.SUPPRESS)
    return parser.parse_args()


def provider(base_url: str) -> tuple[str, ...]:
    """The settings that make a playbook's server the model."""
    table = {
        "name": "bench",
        "base_url": base_url,
        "wire_api": "responses",
        "request_max_retries": 0,
        "stream_max_retries": 0,
    }
    return as_settings({"model_provider": "bench", "model": "bench", "model_providers.bench": table})


class RawRole:
    """A pipe, and the least of the protocol. ``name``: its Codex home below ``folder``; ``role``: who it plays."""

    def __init__(
        self, argv: Sequence[str], folder: Path, role: str, name: str = "", environment: Mapping[str, str] | None = None
    ) -> None:
        home = folder / (name or role)
        home.mkdir()
        self.role, self.folder, self.number = role, folder, 0
        self.child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, "CODEX_HOME": str(home), "NO_PROXY": "127.0.0.1", **(environment or {})},
        )

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        return self.read_until(lambda message: message.get("id") == self.number)["result"]

    def send(self, message: dict[str, Any]) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps(message).encode() + b"\n")
        self.child.stdin.flush()

    def read_until(self, wanted: Any) -> Any:
        assert self.child.stdout is not None
        while not wanted(message := json.loads(self.child.stdout.readline())):
            pass
        return message

    def open(self) -> None:
        self.ask(
            "initialize", {"clientInfo": {"name": "raw", "version": "0"}, "capabilities": {"experimentalApi": True}}
        )
        self.send({"method": "initialized"})
        params = {"cwd": str(self.folder), "sandbox": "read-only", "approvalPolicy": "on-request"}
        self.thread = self.ask("thread/start", params)["thread"]["id"]

    def turn(self, visit: int, prompt: str) -> None:
        metadata = {
            "multi_role_role": self.role,
            "multi_role_visit": str(visit),
            "multi_role_repair": "0",
            "multi_role_attempt": "1",
        }
        text = {"type": "text", "text": prompt}
        params = {"threadId": self.thread, "input": [text], "responsesapiClientMetadata": metadata}
        self.ask("turn/start", params)
        ended = self.read_until(lambda message: message.get("method") == "turn/completed")["params"]["turn"]
        assert ended["status"] == "completed", ended

    def close(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait()


def at_once(work: Callable[[RawRole], object], roles: Sequence[RawRole]) -> None:
    """``work(role)`` for all ``roles`` at the same time. Raises what the first one raised."""
    with ThreadPoolExecutor(len(roles)) as pool:
        list(pool.map(work, roles))


@cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="benchmark-")


def kept_folder() -> Path:
    """A new, empty folder that is removed when this process ends.

    Removed between two rounds, it would slow down the next one: on an ext4 file system without a journal, a new file
    then took up to 0.4 instead of 0.02 ms (measured). Such a file system does not use an inode again within a minute
    after its file was deleted, but looks at it each time. Each Codex home takes 3 MB.
    """
    return Path(tempfile.mkdtemp(dir=_kept().name))


def timed(command: Sequence[str], expected: int, folder: Path | None = None) -> float:
    """The wall seconds of ``command``, in ``folder`` or an empty one. Any exit code but the ``expected`` ends us.

    Python may keep our modules compiled, as pip does when it installs them: to compile them takes 0.13 s each time.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    folder = folder or kept_folder()
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode != expected:
        raise SystemExit(f"{list(command[:4])} ended with {done.returncode}: {done.stderr}")
    return seconds


def medians(commands: Mapping[str, Callable[[], float]], runs: int) -> dict[str, float]:
    """The median seconds of each command; they are run in turn, ``runs`` rounds after one that is not counted."""
    rounds = [{name: command() for name, command in commands.items()} for _ in range(runs + 1)][1:]
    return {name: statistics.median(each[name] for each in rounds) for name in commands}
