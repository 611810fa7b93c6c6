"""The pages of ``serve``: by a process of its own or without one, and a small project to show."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
import yaml
from starlette.testclient import TestClient

from codex_multi_role.extensions.machines.workers.shared_runs import SharedRuns
from codex_multi_role.extensions.pages.serve import server
from codex_multi_role.extensions.pages.serve.access import Access
from codex_multi_role.extensions.pages.serve.application import create_application
from tests.support.console import environment
from tests.support.preloaded import started
from tests.support.reviews import ROUTES
from tests.support.teams import NEVER, WRITER, Record, TeamFolder, say
from tests.support.tools import calls, shell

HOST = "127.0.0.1:8765"
DEADLINE_SECONDS = 60
LIFE_SECONDS = 900
SMALL = 4096
ADDRESS = re.compile(r"http://\S+(?=\s)")
FORM_SECRET = re.compile(r'name="form_secret" value="([^"]+)"')


@dataclass
class Served:
    """``address`` as the terminal shows it."""

    address: str
    process: subprocess.Popen[str]
    said: Path
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
            end = time.monotonic() + DEADLINE_SECONDS
            for line in answer.iter_lines():
                assert time.monotonic() < end, "what was looked for did not come"  # though pings did
                if line.startswith("id:"):
                    number = int(line[3:])
                if line.startswith("data:"):
                    yield number, json.loads(line[5:])

    def end(self, how: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Ask it to end; its exit code and what more it said than where it listens."""
        self.process.send_signal(how)
        code = self.process.wait(DEADLINE_SECONDS)
        return code, self.said.read_text().partition("\n")[2]


@contextmanager
def served(folder: Path, *arguments: str, **variables: str) -> Iterator[Served]:
    """The server of ``folder`` with these arguments; gone afterwards."""
    command = [sys.executable, "-m", "codex_multi_role", "serve", "--port", "0", *arguments]
    with listening(command, folder, environment(**variables)) as server:
        yield server


@contextmanager
def listening(command: list[str], folder: Path, variables: dict[str, str]) -> Iterator[Served]:
    """The server that this command starts, once it says where it listens; gone afterwards."""
    with tempfile.NamedTemporaryFile() as said:
        process = started(command, cwd=folder, env=variables, stderr=said)
        watchdog = threading.Timer(LIFE_SECONDS, process.kill)
        watchdog.start()
        try:
            address = _address(process, Path(said.name))
            with httpx2.Client(base_url=address.split("?")[0], timeout=DEADLINE_SECONDS) as client:
                yield Served(address, process, Path(said.name), client)
        finally:
            watchdog.cancel()
            process.kill()
            process.wait(DEADLINE_SECONDS)


def _address(process: subprocess.Popen[str], said: Path) -> str:
    end = time.monotonic() + DEADLINE_SECONDS
    while (found := ADDRESS.search(said.read_text())) is None:
        assert process.poll() is None, said.read_text()
        assert time.monotonic() < end, said.read_text()
        time.sleep(0.02)
    return found[0]


def form_secret(html: str) -> str:
    """What every form of that page has."""
    found = FORM_SECRET.search(html)
    assert found is not None, html
    return found[1]


SHIP: Record = {
    "description": "Something is made, a person decides.",
    "inputs": {
        "size": {"type": "integer", "default": 3, "minimum": 1, "maximum": 9, "description": "how many"},
        "colour": {"default": "red", "choices": ["red", "blue"]},
        "careful": {"type": "boolean", "default": True},
        "names": {"type": "list", "default": ["a"]},
        "place": {"type": "path"},
    },
    "steps": [
        {"id": "make", "ask": "maker"},
        {
            "id": "ok",
            "review": {"question": "Ship {{ inputs.size }} {{ inputs.colour }}?", "show": "{{ roles.maker }}"},
            "next": ROUTES,
        },
    ],
}
PAGE = {"path": "a.html", "content": "<script>bad()</script>\ntwo\n"}
FLOWS: dict[str, Record] = {
    "ship": SHIP,
    "release": {
        "steps": [
            {"id": "make", "ask": "writer"},
            {
                "id": "look",
                "review": {
                    "question": "Release it?",
                    "options": ["ship", "hold"],
                    "fields": {
                        "tasks": {
                            "type": "array",
                            "items": {"type": "string"},
                            "default": "{{ roles.writer.tasks }}",
                        },
                        "version": {"type": "string", "pattern": "^v[0-9]+$"},
                    },
                },
            },
        ]
    },
    "ask": {"goal": {"default": "ask somebody"}, "steps": [{"ask": "asker"}]},
    "stall": {"goal": {"default": "wait"}, "steps": [{"ask": "sleeper"}]},
    "tasks": {
        "goal": {"default": "wait"},
        "states": {"begin": "IDLE", "success": "FINISHED", "failure": "FAILED"},
        "steps": [
            {"id": "each", "ask": "sleeper", "for_each": {"items": [{"id": "T1"}, {"id": "T2"}], "concurrency": 2}}
        ],
    },
}
PLAYBOOK = "scripted"
QUICK = {"CODEX_MULTI_ROLE_RUN_TESTS": "false"}


def project(folder: Path) -> TeamFolder:
    """Roles, flows and the playbook `PLAYBOOK` in ``folder/roles``."""
    question = {"question": "Which database?", "options": ["sqlite", "postgres"]}
    limits = {"idle_seconds": 120, "turn_seconds": 240}
    team = TeamFolder(
        folder,
        {"maker": {}, "asker": {"tools": ["ask_user"]}, "writer": WRITER, "sleeper": {"limits": limits}},
        {
            "maker": [shell("echo ran-$((40+2))", summary="it")],
            "writer": [say(files=[PAGE], tasks=["<i>docs", "later"])],
            "asker": [calls("ask_user", question)],
            "sleeper": [NEVER] * 4,
        },
    )
    for name, flow in FLOWS.items():
        path = folder / "roles/flows" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(flow))
    (folder / "roles/playbooks").mkdir()
    shutil.copyfile(team.playbook, folder / "roles/playbooks" / f"{PLAYBOOK}.yaml")
    return team


@contextmanager
def answering(runs: Path) -> Iterator[tuple[uvicorn.Server, int]]:
    """A server of this process, and its port; what it sends soon waits for the one who takes it."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
    serving = uvicorn.Server(server.configuration(create_application(runs, None, Access("127.0.0.1"))))
    thread = threading.Thread(target=serving.run, args=([listening],))
    thread.start()
    try:
        yield serving, listening.getsockname()[1]
    finally:
        serving.should_exit = True
        thread.join(DEADLINE_SECONDS)
        listening.close()


def client(runs: Path, access: Access | None = None, host: str = HOST, shared: SharedRuns | None = None) -> TestClient:
    """A client of the pages of ``runs`` without a server process: errors become answers, redirects are not followed."""
    application = create_application(runs, None, access or Access("127.0.0.1"), shared=shared)
    return TestClient(application, f"http://{host}", raise_server_exceptions=False, follow_redirects=False)
