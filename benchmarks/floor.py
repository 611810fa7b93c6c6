"""How much our whole command costs above the least that could do the same turns.

Four roles, three cycles, a model that answers at once, the same Codex flags. *Raw* is a script with four pipes: it
starts the processes in parallel, sends twelve turns one after the other and closes the pipes; it keeps, checks and
recovers nothing. *Ours* is ``codex-multi-role --goal … --cycles 3``, run folder, journal and all.

    python benchmarks/floor.py [--runs 7]

Prints medians of whole-process wall time, in pairs taken in turn, and the ratio with and without our start-up (the
time until Python has imported what the command needs).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import Any

from codex_multi_role.codex.locator import find_codex
from codex_multi_role.codex.settings import app_server_argv, as_settings
from codex_multi_role.playbook import Playbook, PlaybookServer

ROLES = ("planner", "architect", "implementer", "integrator")
CYCLES = 3
ANSWER = {"json": {"summary": "one more step", "status": "CONTINUE"}, "deltas": 1}
IMPORTS = "import codex_multi_role.cli.run, codex_multi_role.app, codex_multi_role.engine"


def provider(base_url: str) -> tuple[str, ...]:
    table = {
        "name": "bench",
        "base_url": base_url,
        "wire_api": "responses",
        "request_max_retries": 0,
        "stream_max_retries": 0,
    }
    return as_settings({"model_provider": "bench", "model": "bench", "model_providers.bench": table})


class RawRole:
    """A pipe, and the least of the protocol."""

    def __init__(self, settings: tuple[str, ...], folder: Path, role: str) -> None:
        home = folder / role
        home.mkdir()
        self.role, self.number = role, 0
        self.child = subprocess.Popen(
            app_server_argv(find_codex(None, os.environ), settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, "CODEX_HOME": str(home), "NO_PROXY": "127.0.0.1"},
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

    def open(self, folder: Path) -> None:
        self.ask(
            "initialize", {"clientInfo": {"name": "raw", "version": "0"}, "capabilities": {"experimentalApi": True}}
        )
        self.send({"method": "initialized"})
        params = {"cwd": str(folder), "sandbox": "read-only", "approvalPolicy": "on-request"}
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
        self.read_until(lambda message: message.get("method") == "turn/completed")

    def close(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait()


def raw(base_url: str) -> None:
    """The raw driver, in this process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        roles = [RawRole(provider(base_url), folder, role) for role in ROLES]
        openers = [Thread(target=role.open, args=(folder,)) for role in roles]
        for opener in openers:
            opener.start()
        for opener in openers:
            opener.join()
        for cycle in range(CYCLES):
            for role in roles:
                role.turn(cycle + 1, "Say what comes next." * 40)
        closers = [Thread(target=role.close) for role in roles]
        for closer in closers:
            closer.start()
        for closer in closers:
            closer.join()


def ours(base_url: str) -> list[str]:
    flags = [part for setting in provider(base_url) for part in ("-c", setting)]
    goal = ["--goal", "measure the floor", "--cycles", str(CYCLES), "--no-run-tests", "--quiet"]
    return [sys.executable, "-m", "codex_multi_role", *goal, *flags]


def timed(command: list[str], expected: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
    if done.returncode != expected:
        raise SystemExit(f"{command[:4]} ended with {done.returncode}: {done.stderr}")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--raw", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.raw:
        raw(options.raw)
        return
    playbook = Playbook.model_validate(
        {"name": "bench", "roles": {role: [ANSWER] for role in ROLES}, "repeat_last": True}
    )
    with PlaybookServer(playbook) as server:
        figures = measure(server.base_url, options.runs)
    report(figures)


def measure(base_url: str, runs: int) -> dict[str, float]:
    commands = {
        "raw": ([sys.executable, __file__, "--raw", base_url], 0),
        "ours": (ours(base_url), 1),
        "start-up": ([sys.executable, "-c", IMPORTS], 0),
        "raw start-up": ([sys.executable, __file__, "--help"], 0),
    }
    rounds = [{name: timed(*command) for name, command in commands.items()} for _ in range(runs + 1)][1:]
    return {name: statistics.median(each[name] for each in rounds) for name in commands}


def report(figures: dict[str, float]) -> None:
    for name, seconds in figures.items():
        print(f"{name:<14}{seconds:7.3f} s")
    start_up = figures["start-up"] - figures["raw start-up"]
    print(f"ours / raw                         {figures['ours'] / figures['raw']:.2f}")
    print(f"(ours - its extra start-up) / raw  {(figures['ours'] - start_up) / figures['raw']:.2f}")


if __name__ == "__main__":
    main()
