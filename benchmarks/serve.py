"""What the pages of `serve` cost: the first page of 500 runs, a run of 1,000 turns, and its events for 20 viewers.

The server is the command in a process of its own. The runs are written as runs leave them; one of them is live: an
event is appended every 20 ms, and every viewer reports when it received each of them.

    python benchmarks/serve.py

Exits with 1 when the first page takes 0.5 s, when the run's page takes a second or its report has 15 MB, when an event
takes half a second to any viewer or does not come, when the server needs 20 MB more for the second half of the events,
or when it does not end within 2 s while all of them watch.
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

sys.path.insert(0, str(Path(__file__).parents[1]))

from codex_multi_role.extensions.pages.report.page import write_report
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunOptions
from tests.support.recorded_runs import make_many_turns

RUNS, TURNS, VIEWERS, EVENTS = 500, 1000, 20, 300
EVENT_PAUSE_SECONDS = 0.02
PATIENCE_SECONDS = 30.0
PAGE_SECONDS, RUN_SECONDS, EVENT_SECONDS, END_SECONDS = 0.5, 1.0, 0.5, 2.0
REPORT_MEGABYTES, MORE_MEGABYTES = 15, 20
LATEST = f"{TURNS}_turns"
TEXT = 'A line of <code> & "words", as a model says it.\n'
ADDRESS = re.compile(r"http://\S+(?=\s)")
SENT = re.compile(r"sent ([0-9.]+)")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(RUNS - 1):
            write_run(folder / "runs", f"20260130_{number:06d}_{number:08x}", number)
        live = make_many_turns(folder / "runs", TURNS, prompt=TEXT * 200, answer=TEXT * 40)
        report_size = write_report(live).stat().st_size / 10**6
        with serving(folder) as (server, address):
            first, *later = [page_seconds(address) for _ in range(11)]
            run_page = page_seconds(address, f"/runs/{LATEST}")
            process = psutil.Process(server.pid)
            before = process.cpu_times()
            delays, grown = viewed(address, live, process)
            after = process.cpu_times()
            memory = process.memory_info().rss / 2**20
            began = time.monotonic()
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=PATIENCE_SECONDS)
            ended = time.monotonic() - began
    cpu = (after.user + after.system) - (before.user + before.system)
    print(f"{VIEWERS} viewers, {EVENTS} events: half of them within {statistics.median(delays or [0]):.3f} s")
    print(f"the server: {cpu:.2f} s of CPU for it, {memory:.0f} MB; later pages {statistics.median(later):.3f} s")
    aims = [
        (f"first page of {RUNS} runs, s", first, PAGE_SECONDS),
        (f"page of {TURNS} turns, s", run_page, RUN_SECONDS),
        (f"report of {TURNS} turns, MB", report_size, REPORT_MEGABYTES),
        ("slowest event to any viewer, s", max(delays, default=float("inf")), EVENT_SECONDS),
        ("events that did not come, share", 1 - len(delays) / (EVENTS * VIEWERS), 0.0),
        ("more memory in the second half, MB", grown, MORE_MEGABYTES),
        ("end with all of them watching, s", ended, END_SECONDS),
    ]
    for name, figure, most in aims:
        print(f"{name:<36}{figure:.3f} (at most {most:.2f}: {'met' if figure <= most else 'missed'})")
    sys.exit(0 if all(figure <= most for _, figure, most in aims) else 1)


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


def page_seconds(address: tuple[str, int], path: str = "/") -> float:
    began = time.monotonic()
    connection = http.client.HTTPConnection(*address, timeout=PATIENCE_SECONDS)
    connection.request("GET", path)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status != 200 or LATEST.encode() not in content:
        raise SystemExit(f"{path} came with {answer.status}")
    return time.monotonic() - began


def viewed(address: tuple[str, int], live: RunFolder, server: psutil.Process) -> tuple[list[float], float]:
    """How late each event came to each viewer, in seconds, and the MB that the server grew by in the second half.

    The viewers are still there afterwards.
    """
    delays: list[float] = []
    ready = threading.Barrier(VIEWERS + 1)
    viewers = [
        threading.Thread(target=view, args=(address, delays, ready), name="viewer", daemon=True) for _ in range(VIEWERS)
    ]
    for viewer in viewers:
        viewer.start()
    ready.wait(PATIENCE_SECONDS)
    with live.events_path.open("a") as log:
        for number in range(EVENTS):
            if number == EVENTS // 2:
                half = server.memory_info().rss
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            log.write(json.dumps({"type": "warning", "at": at, "message": f"sent {time.monotonic()}"}) + "\n")
            log.flush()
            time.sleep(EVENT_PAUSE_SECONDS)
    end = time.monotonic() + PATIENCE_SECONDS
    while len(delays) < EVENTS * VIEWERS and time.monotonic() < end:
        time.sleep(EVENT_PAUSE_SECONDS)
    return delays, (server.memory_info().rss - half) / 2**20


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
            delays += [now - float(found[1]) for each in told if (found := SENT.search(each[0]))]
            if waits:
                waits = False
                ready.wait(PATIENCE_SECONDS)


if __name__ == "__main__":
    main()
