"""The command ``serve`` in a process of its own, as a user starts it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.cli.console import environment

DEADLINE_SECONDS = 60
LIFE_SECONDS = 900
ADDRESS = re.compile(r"http://\S+")
FORM_SECRET = re.compile(r'name="form_secret" value="([^"]+)"')


@dataclass
class Served:
    """``address`` as the terminal shows it."""

    address: str
    process: subprocess.Popen[str]
    client: httpx2.Client

    def post(self, path: str, seen_at: str, **fields: str) -> httpx2.Response:
        """Send a form as the page ``seen_at`` has it."""
        secret = form_secret(self.client.get(seen_at).text)
        return self.client.post(path, data={"form_secret": secret, **fields})

    def news(self, path: str, headers: dict[str, str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """The stream's events: ``(id, data)``."""
        with self.client.stream("GET", path, headers=headers) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            number = 0
            for line in answer.iter_lines():
                if line.startswith("id:"):
                    number = int(line[3:])
                if line.startswith("data:"):
                    yield number, json.loads(line[5:])

    def end(self, how: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Ask it to end; its exit code and what more it said."""
        self.process.send_signal(how)
        _, said = self.process.communicate(timeout=DEADLINE_SECONDS)
        return self.process.returncode, said


@contextmanager
def served(folder: Path, *arguments: str, **variables: str) -> Iterator[Served]:
    """The server of ``folder`` with these arguments; gone afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "codex_multi_role", "serve", "--port", "0", *arguments],
        cwd=folder,
        env=environment(**variables),
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(LIFE_SECONDS, process.kill)
    watchdog.start()
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = ADDRESS.search(line)
        assert found is not None, line
        with httpx2.Client(base_url=found[0].split("?")[0], timeout=DEADLINE_SECONDS) as client:
            yield Served(found[0], process, client)
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


def form_secret(html: str) -> str:
    """What every form of that page has."""
    found = FORM_SECRET.search(html)
    assert found is not None, html
    return found[1]
