"""What more workers bring, and what the database has to do for it.

    python benchmarks/scale.py                      all parts, about 20 minutes
    python benchmarks/scale.py throughput
    python benchmarks/scale.py turns
    python benchmarks/scale.py idle
    python benchmarks/scale.py waiting --goals 10000
    python benchmarks/scale.py memory --goals 1000

Everything runs on this machine, in a Postgres server of its own.

throughput  goals per minute with 1, 2 and 4 workers, one run each at a time; the model takes 2 s per answer
turns       statements, bytes and connections that one run needs, and what each further turn adds; what both keep
idle        statements per second, and connections: of a worker without runs, and of a run whose model is thinking
waiting     how long an urgent run waits until a worker has it, while thousands of others wait
memory      of a worker that starts a thousand run processes one after another; their runs cannot start
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from codex_multi_role.extensions.machines.workers.queued_runs import RunState
from codex_multi_role.extensions.machines.workers.run_requests import RunRequest
from tests.support.databases import PASSWORD, DatabaseServer, execute, new_database, running_server
from tests.support.shared_runs import SharedRuns
from tests.support.teams import TeamFolder, say

LATENCY_SECONDS = 2.0
TURNS = 4
GOALS = 8
SAMPLES = 5
IDLE_SECONDS = 30
LOOK_SECONDS = 0.02


def team(folder: Path, turns: int, seconds: float) -> TeamFolder:
    plays = [{**say(f"step {number}"), "delay_seconds": seconds} for number in range(1, turns + 1)]
    return TeamFolder(folder, {"one": {}}, {"one": plays})


@contextmanager
def shared_runs(server: DatabaseServer) -> Iterator[SharedRuns]:
    with tempfile.TemporaryDirectory(prefix="scale-") as name, new_database(server.url) as url:
        shared = SharedRuns(Path(name), url)
        try:
            yield shared
        finally:
            shared.close()


def throughput(server: DatabaseServer) -> None:
    """Measured from the first claim to the last end, so that the start of the workers does not count."""
    rates: dict[int, float] = {}
    for workers in (1, 2, 4):
        with shared_runs(server) as shared:
            names = [f"goal-{number}" for number in range(GOALS)]
            shared.submit(team(shared.folder / "team", TURNS, LATENCY_SECONDS).options(cycles=TURNS), *names)
            for number in range(workers):
                shared.start(f"worker-{number}")
            shared.wait(partial(has_begun, shared))
            began = time.monotonic()
            shared.wait_for(RunState.ENDED, *names)
            rates[workers] = GOALS * 60 / (time.monotonic() - began)
            print(
                f"{workers} workers  {rates[workers]:6.1f} goals per minute  {rates[workers] / rates[1]:.2f} x",
                flush=True,
            )


def has_begun(shared: SharedRuns, run_id: str = "goal-0") -> bool:
    return shared.run(run_id).attempt > 0


def turns(server: DatabaseServer) -> None:
    """Counted by the server (its log of statements) and by a relay in front of it (bytes, connections)."""
    figures = {}
    for count in (2, 12):
        with shared_runs(server) as shared, relay(server) as counted:
            url = f"postgresql://tester@127.0.0.1:{counted.port}{urlsplit(shared.url).path}"
            shared.submit(team(shared.folder / "team", count, 0).options(cycles=count), "one")
            log = server.folder / "log"
            before = log.stat().st_size
            environment = {**os.environ, "PGPASSWORD": PASSWORD}
            command = shared.worker_command("only", "--until-empty", url=url)
            subprocess.run(command, env=environment, stderr=subprocess.DEVNULL, check=True, timeout=300)
            assert shared.run("one").state is RunState.ENDED
            statements = statements_since(log, before)
            figures[count] = (statements, counted.bytes, *kept(shared))
            sent = f"{counted.bytes:8} bytes  {counted.connections} connections"
            print(f"{count:3} turns  {statements:5} statements  {sent}  {kept_in_words(*figures[count][2:])}")
    per_turn = [(more - fewer) / 10 for fewer, more in zip(figures[2], figures[12], strict=True)]
    print(f"each turn  {per_turn[0]:5.1f} statements  {per_turn[1]:8.0f} bytes  {kept_in_words(*per_turn[2:])}")


def statements_since(log: Path, position: int) -> int:
    with log.open("rb") as file:
        file.seek(position)
        return sum(b"LOG:  execute" in line or b"LOG:  statement" in line for line in file)


def kept(shared: SharedRuns) -> tuple[float, float, float]:
    """Bytes of rows, without indexes; objects in the store, and their bytes."""
    tables = ("dbos.operation_outputs", "dbos.workflow_status", "codex_multi_role.runs")
    sums = [execute(shared.url, f"SELECT sum(pg_column_size(each.*)) FROM {table} AS each")[0][0] for table in tables]
    sizes = [path.stat().st_size for path in (shared.folder / "store").rglob("*") if path.is_file()]
    return sum(sums), len(sizes), sum(sizes)


def kept_in_words(rows: float, objects: float, size: float) -> str:
    return f"keeps {rows:7.0f} bytes of rows, {objects:6.1f} objects of {size:8.0f} bytes"


def idle(server: DatabaseServer) -> None:
    """With the usual heartbeat of 5 s. The connections of this process do not count."""
    with shared_runs(server) as shared:
        own = connections(shared)
        shared.start("only", "--dead-after", "45")
        shared.wait(lambda: connections(shared) > own)
        alone = report_idle(server, shared, "a worker without runs", own)
        patient = {"limits": {"idle_seconds": 600, "turn_seconds": 600}}
        plays = [{**say("late"), "delay_seconds": 300}]
        shared.submit(TeamFolder(shared.folder / "team", {"one": patient}, {"one": plays}).options(), "goal-0")
        shared.wait_for(RunState.RUNNING, "goal-0")
        report_idle(server, shared, "a worker with a run", own)
        print(f"(without the worker's {alone:.1f} statements per second, the rest is the run's)")
        shared.kill("only")


def connections(shared: SharedRuns) -> int:
    return int(execute(shared.url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")[0][0])


def report_idle(server: DatabaseServer, shared: SharedRuns, name: str, own: int) -> float:
    time.sleep(5)  # until it has started
    before = (log := server.folder / "log").stat().st_size
    time.sleep(IDLE_SECONDS)
    rate = statements_since(log, before) / IDLE_SECONDS
    print(f"{name:22}  {rate:5.1f} statements per second  {connections(shared) - own} connections", flush=True)
    return rate


class Counted:
    """A relay that counts."""

    def __init__(self) -> None:
        self.port = 0
        self.bytes = 0
        self.connections = 0


@contextmanager
def relay(server: DatabaseServer) -> Iterator[Counted]:
    counted = Counted()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        counted.port = listening.getsockname()[1]
        threading.Thread(target=_accept, args=(listening, server, counted), daemon=True).start()
        yield counted


def _accept(listening: socket.socket, server: DatabaseServer, counted: Counted) -> None:
    with suppress(OSError):
        while True:
            client, _ = listening.accept()
            counted.connections += 1
            target = socket.create_connection(("127.0.0.1", server.port))
            for one, other in ((client, target), (target, client)):
                threading.Thread(target=_pass_on, args=(one, other, counted), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, counted: Counted) -> None:
    with suppress(OSError):
        while content := source.recv(1 << 16):
            counted.bytes += len(content)
            target.sendall(content)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def waiting(server: DatabaseServer, goals: int) -> None:
    """No run here can start, so each is over at once; what counts is how long the urgent one waited."""
    with shared_runs(server) as shared:
        began = time.monotonic()
        shared.queued.submit([broken(f"waiting-{number}", queue="later") for number in range(goals)])
        print(f"{goals} goals submitted in {time.monotonic() - began:.1f} s")
        shared.start("only", "--queues", "goals,later", "--concurrency", "1")
        shared.wait(partial(has_begun, shared, "waiting-0"))
        delays = []
        for number in range(SAMPLES):
            shared.queued.submit([broken(f"urgent-{number}", priority=50)])
            began = time.monotonic()
            shared.wait(partial(has_begun, shared, f"urgent-{number}"))
            delays.append(time.monotonic() - began)
        print(f"an urgent run is taken after {statistics.median(delays):.1f} s (most {max(delays):.1f} s)")
        statement = (
            "EXPLAIN ANALYZE SELECT queue, count(*) FROM codex_multi_role.runs WHERE state = 'waiting' GROUP BY 1"
        )
        print(f"one look of a worker: {execute(shared.url, statement)[-1][0].strip()}")


def broken(run_id: str, **place: Any) -> RunRequest:
    """A run whose repository does not exist."""
    source = {"repository": "/nowhere/at/all"}
    return RunRequest(run_id=run_id, options={"goal": "none"}, definitions={}, workspace=source, **place)


def memory(server: DatabaseServer, goals: int) -> None:
    with shared_runs(server) as shared:
        shared.queued.submit([broken(f"goal-{number}") for number in range(goals)])
        process = psutil.Process(shared.start("only", "--concurrency", str(os.cpu_count() or 1)).pid)
        for share in (0.05, 0.25, 0.5, 0.75, 1.0):
            ended_at_least(shared, round(goals * share))
            print(f"{round(goals * share):5} goals  {process.memory_info().rss / 2**20:6.1f} MB", flush=True)


def ended_at_least(shared: SharedRuns, count: int) -> None:
    statement = "SELECT count(*) FROM codex_multi_role.runs WHERE state = 'ended'"
    while execute(shared.url, statement)[0][0] < count:
        time.sleep(1)


@click.command(help=__doc__)
@click.argument("part", required=False)
@click.option("--goals", type=int, help="For the parts waiting and memory.")
def main(part: str | None, goals: int | None) -> None:
    parts: dict[str, Callable[[DatabaseServer], None]] = {
        "throughput": throughput,
        "turns": turns,
        "idle": idle,
        "waiting": lambda server: waiting(server, goals or 10_000),
        "memory": lambda server: memory(server, goals or 1000),
    }
    for name in [part] if part else parts:
        print(f"-- {name}", flush=True)
        with running_server(log_statement="all" if name in ("turns", "idle") else "none") as server:
            parts[name](server)


if __name__ == "__main__":
    main()
