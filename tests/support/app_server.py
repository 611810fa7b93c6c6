"""A raw driver of the real ``codex app-server``: enough of the protocol to play turns, every wait with a deadline."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import codex_cli_bin

from codex_multi_role.codex.codex_settings import LEAN
from codex_multi_role.playbook import AnswerKey

DEADLINE_SECONDS = 15.0
PLAYED = (*LEAN, 'model_provider="playbook"', 'model="playbook"')


@dataclass
class PlayedTurn:
    """What the app-server sent about one turn."""

    status: str = ""
    error: dict[str, Any] = field(default_factory=dict)
    deltas: list[str] = field(default_factory=list)
    items: list[dict[str, Any]] = field(default_factory=list)
    tokens: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str | None:
        messages = self.kind("agentMessage")
        return messages[-1]["text"] if messages else None

    def kind(self, kind: str) -> list[dict[str, Any]]:
        return [item for item in self.items if item["type"] == kind]


class AppServer:
    """One Codex process whose provider is the playbook server at ``base_url``."""

    def __init__(self, base_url: str, home: Path, *config: str) -> None:
        provider = (
            f'model_providers.playbook={{name="playbook",base_url="{base_url}",wire_api="responses",'
            "request_max_retries=0,stream_max_retries=0,stream_idle_timeout_ms=700}"
        )
        command = [str(codex_cli_bin.bundled_codex_path()), "app-server"]
        for setting in (*PLAYED, provider, *config):
            command += ["-c", setting]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**os.environ, "CODEX_HOME": str(home), "NO_PROXY": "127.0.0.1"},
            start_new_session=True,
        )
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue(maxsize=100_000)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._last_id = 0
        self.request("initialize", clientInfo={"name": "tests", "version": "1"}, capabilities={"experimentalApi": True})
        self._send({"method": "initialized"})

    def thread(self, cwd: Path, sandbox: str = "read-only", **params: Any) -> str:
        """Start a thread that works in ``cwd``; its id."""
        started = self.request("thread/start", cwd=str(cwd), approvalPolicy="never", sandbox=sandbox, **params)
        thread_id: str = started["thread"]["id"]
        return thread_id

    def turn(self, thread_id: str, prompt: str, ask: AnswerKey) -> PlayedTurn:
        """Play one turn to its end. ``ask``: which answer of the playbook it gets."""
        self.begin(thread_id, prompt, ask)
        return self.finish()

    def begin(self, thread_id: str, prompt: str, ask: AnswerKey) -> None:
        """Start a turn without waiting for what comes of it."""
        metadata = {f"multi_role_{key}": str(value) for key, value in ask._asdict().items()}
        text = [{"type": "text", "text": prompt}]
        self.request("turn/start", threadId=thread_id, input=text, responsesapiClientMetadata=metadata)

    def finish(self) -> PlayedTurn:
        """Collect messages until the turn is completed. Raises `queue.Empty` after `DEADLINE_SECONDS` of silence."""
        turn = PlayedTurn()
        while not turn.status:
            self._note(self._next(), turn)
        return turn

    def wait_for(self, method: str) -> None:
        """Skip messages up to the first notification ``method``."""
        while self._next().get("method") != method:
            pass

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request; its result. Messages before the response are dropped."""
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        while True:
            message = self._next()
            if message.get("id") == self._last_id and "method" not in message:
                assert "result" in message, message
                result: dict[str, Any] = message["result"]
                return result

    def close(self) -> None:
        """End the process: by the end of its input, or by a kill after 5 seconds."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)
        self._reader.join(5)
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _note(self, message: dict[str, Any], turn: PlayedTurn) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "item/agentMessage/delta":
                turn.deltas.append(params["delta"])
            case "item/completed":
                turn.items.append(params["item"])
            case "thread/tokenUsage/updated":
                turn.tokens = params["tokenUsage"]["last"]
            case "item/tool/call":
                content = [{"type": "inputText", "text": f"{params['tool']} got {json.dumps(params['arguments'])}"}]
                self._send({"id": message["id"], "result": {"contentItems": content, "success": True}})
            case "turn/completed":
                turn.status = params["turn"]["status"]
                turn.error = params["turn"]["error"] or {}

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _next(self) -> dict[str, Any]:
        message = self._messages.get(timeout=DEADLINE_SECONDS)
        assert message is not None, "codex app-server ended"
        return message

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._messages.put(json.loads(line))
        self._messages.put(None)
