"""What the pages of `serve` cost: the first page of 500 runs, and how late an event reaches 20 viewers.

The server is the command in a process of its own. The runs are written as runs leave them; one of them is live: an
event is appended every 20 ms, and every viewer reports when it received each of them.

    python benchmarks/serve.py

Exits with 1 when the first page takes 0.5 s, when an event takes a second to any viewer or does not come, or when the
server does not end within 2 s while all of them watch.
"""

from __future__ import annotations

import http.client
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunOptions

RUNS, VIEWERS, EVENTS = 500, 20, 300
EVENT_PAUSE_SECONDS = 0.02
PATIENCE_SECONDS = 30.0
PAGE_SECONDS, EVENT_SECONDS, END_SECONDS = 0.5, 1.0, 2.0
LATEST = "20260131_235959_00000000"
ADDRESS = re.compile(r"http://\S+(?=\s)")
SENT = re.compile(r"sent ([0-9.]+)")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(RUNS - 1):
            write_run(folder / "runs", f"20260130_{number:06d}_{number:08x}", number)
        live = write_run(folder / "runs", LATEST, RUNS)
        with serving(folder) as (server, address):
            first, *later = [page_seconds(address) for _ in range(11)]
            process = psutil.Process(server.pid)
            before = process.cpu_times()
            delays = viewed(address, live)
            after = process.cpu_times()
            memory = process.memory_info().rss / 2**20
            began = time.monotonic()
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=PATIENCE_SECONDS)
            ended = time.monotonic() - began
    cpu = (after.user + after.system) - (before.user + before.system)
    sys.exit(0 if report(first, later, delays, cpu, memory, ended) else 1)


def write_run(runs: Path, run_id: str, number: int) -> RunFolder:
    """A run that ended, its log included."""
    folder = RunFolder.create(runs, run_id)
    at = datetime(2026, 1, 30, tzinfo=UTC) + timedelta(seconds=number)
    started = at.isoformat(timespec="milliseconds")
    options = RunOptions(goal=f"Reach goal number {number}, with tests that notice when it is missed")
    folder.write_record(
        {
            "run_id": run_id,
            "goal": options.goal,
            "flow": "cycles",
            "status": "ended",
            "outcome": "cycles_used_up",
            "reason": "all 3 cycles are used up",
            "exit_code": 1,
            "started_at": started,
            "workspace": str(runs.parent),
            "playbook": None,
            "options": options.as_record(),
            "totals": {"turns": 12, "repairs": 1, "input_tokens": 240_000, "output_tokens": 6800, "seconds": 125.5},
        }
    )
    names = {"run_id": run_id, "goal": options.goal, "flow": "cycles", "cycles": 3, "roles": ["planner"]}
    start = {"type": "run_started", "at": started, **names, "workspace": "", "folder": "", "playbook": None}
    folder.events_path.write_text(json.dumps({**start, "resumed": False}) + "\n")
    return folder


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], tuple[str, int]]]:
    """The server of ``folder``, and where it listens."""
    command = [sys.executable, "-m", "codex_multi_role", "serve", "--port", "0"]
    log = folder / "serve.log"
    with log.open("w") as said, subprocess.Popen(command, cwd=folder, stderr=said) as server:
        try:
            parts = urlsplit(told_address(server, log))
            yield server, (str(parts.hostname), int(parts.port or 0))
        finally:
            server.kill()


def told_address(server: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end and server.poll() is None:
        if found := ADDRESS.search(log.read_text()):
            return found[0]
        time.sleep(EVENT_PAUSE_SECONDS)
    raise SystemExit(f"the server told no address: {log.read_text()}")


def page_seconds(address: tuple[str, int]) -> float:
    began = time.monotonic()
    connection = http.client.HTTPConnection(*address, timeout=PATIENCE_SECONDS)
    connection.request("GET", "/")
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status != 200 or LATEST.encode() not in content:
        raise SystemExit(f"the first page came with {answer.status}")
    return time.monotonic() - began


def viewed(address: tuple[str, int], live: RunFolder) -> list[float]:
    """How late each event came to each viewer, in seconds; they are still there afterwards."""
    delays: list[float] = []
    ready = threading.Barrier(VIEWERS + 1)
    viewers = [
        threading.Thread(target=view, args=(address, delays, ready), name="viewer", daemon=True) for _ in range(VIEWERS)
    ]
    for viewer in viewers:
        viewer.start()
    ready.wait(PATIENCE_SECONDS)
    with live.events_path.open("a") as log:
        for _ in range(EVENTS):
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            log.write(json.dumps({"type": "warning", "at": at, "message": f"sent {time.monotonic()}"}) + "\n")
            log.flush()
            time.sleep(EVENT_PAUSE_SECONDS)
    end = time.monotonic() + PATIENCE_SECONDS
    while len(delays) < EVENTS * VIEWERS and time.monotonic() < end:
        time.sleep(EVENT_PAUSE_SECONDS)
    return delays


def view(address: tuple[str, int], delays: list[float], ready: threading.Barrier) -> None:
    """One viewer: a page's stream, read until the server ends it."""
    connection = http.client.HTTPConnection(*address, timeout=PATIENCE_SECONDS)
    connection.request("GET", f"/runs/{LATEST}/events")
    answer = connection.getresponse()
    waits = True
    while line := answer.readline():
        if line.startswith(b"data:"):
            now = time.monotonic()
            told = json.loads(line[5:])["lines"]
            delays += [now - float(found[1]) for each in told if (found := SENT.search(each))]
            if waits:
                waits = False
                ready.wait(PATIENCE_SECONDS)


def report(first: float, later: list[float], delays: list[float], cpu: float, memory: float, ended: float) -> bool:
    """Print the table; returns whether the aims are met, each of them."""
    came = len(delays) / (EVENTS * VIEWERS)
    worst = max(delays, default=float("inf"))
    print(f"{VIEWERS} viewers, {EVENTS} events: half of them within {statistics.median(delays or [0]):.3f} s")
    print(f"the server: {cpu:.2f} s of CPU for it, {memory:.0f} MB; later pages {statistics.median(later):.3f} s")
    aims = [
        (f"first page of {RUNS} runs, s", first, PAGE_SECONDS),
        ("slowest event to any viewer, s", worst, EVENT_SECONDS),
        ("events that did not come, share", 1 - came, 0.0),
        ("end with all of them watching, s", ended, END_SECONDS),
    ]
    for name, figure, most in aims:
        print(f"{name:<36}{figure:.3f} (at most {most:.2f}: {'met' if figure <= most else 'missed'})")
    return all(figure <= most for _, figure, most in aims)


if __name__ == "__main__":
    main()
