"""A model provider as real as it can be had here, and the files of recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codex_multi_role.extensions.replays.recording import RecordingFile
from codex_multi_role.playbook import AnswerKey, Playbook
from codex_multi_role.playbook.loopback import JSON, LoopbackServer
from codex_multi_role.playbook.playbook_server import ResponsesHandler
from tests.support.teams import read_lines

KEY_VARIABLE = "MY_PROVIDER_KEY"
KEY = "sk-test-0123456789ABCDEF0123456789"
WHO: dict[str, Any] = {"role": "one", "visit": 1, "repair": 0, "attempt": 1, "provider": "p", "model": "m"}
WHOLE = {"status": 200, "end": "completed", "items": [], "response": {}}
HEADER: dict[str, Any] = {"run": "r1", "goal": "g", "flow": "f", "inputs": {}, "cycles": 1, "repair_attempts": 0,
    "run_tests": True, "workspace": "tree"}  # fmt: skip
ENDED: dict[str, Any] = {"type": "ended", "status": "ended", "outcome": "timeout", "exit_code": 1, "answers": [],
    "handoffs": [], "files": {}}  # fmt: skip


class _Hearing(ResponsesHandler):
    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        """What Codex asks about an account before anything else; the shape is that of the pinned binary (measured)."""
        assert isinstance(self.server, Provider)
        told = self.server.about_accounts
        status = 200 if told and self.path.endswith("/accounts/check") else 404
        self.answer(status, json.dumps(told or {}).encode(), {"Content-Type": JSON})

    def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
        assert isinstance(self.server, Provider)
        self.server.received.append({name.lower(): value for name, value in self.headers.items()})
        super().do_POST()


class Provider(LoopbackServer):
    """``received`` are the headers of every request to the model, names in lower case.

    ``about_accounts``: what it returns about the account of a login.
    """

    def __init__(self, playbook: Playbook) -> None:
        self.playbook = playbook
        self.received: list[dict[str, str]] = []
        self.about_accounts: dict[str, Any] = {}
        super().__init__("playbook", _Hearing)

    def remember(self, ask: AnswerKey) -> None:
        """What was asked for is in the recording."""

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    def settings(self, **more: str) -> tuple[str, ...]:
        """The ``-c`` settings that lead to it."""
        table = {"name": "Mine", "base_url": self.base_url, "wire_api": "responses", "env_key": KEY_VARIABLE, **more}
        inline = ", ".join(f"{name} = {json.dumps(value)}" for name, value in table.items())
        return ('model_provider="mine"', f"model_providers.mine={{{inline}}}")


@contextmanager
def provider_of(plays: dict[str, list[Any]], **more: Any) -> Iterator[Provider]:
    """A provider that plays ``plays``; ``more``: further keys of its playbook."""
    with Provider(Playbook.model_validate({"name": "provider", "roles": plays, **more})) as server:
        yield server


def exchanges_of(path: Path) -> list[dict[str, Any]]:
    """The exchanges with the model in a recording, in order."""
    return [line for line in read_lines(path) if line["type"] == "exchange"]


def exchange(turn: str = "t", step: int = 0, **more: Any) -> dict[str, Any]:
    """A line of a recording: one completed exchange; ``more``: keys that differ."""
    line = {"type": "exchange", **WHO, "turn": turn, "kind": "turn", "step": step, **WHOLE, **more}
    return line if step else {"prompt": "do it", **line}


def written(path: Path, *lines: dict[str, Any]) -> RecordingFile:
    """A recording at ``path`` with these lines after its header."""
    file = RecordingFile(path, lambda line: line)
    file.begin(HEADER)
    for line in lines:
        file.add(line)
    return file
