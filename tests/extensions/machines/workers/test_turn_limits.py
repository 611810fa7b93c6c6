"""Limits on turns over all workers of a database: never exceeded, free again after a kill, and no deadlock."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from codex_multi_role.errors import RunInterrupted, UsageError
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.turn_limits import TurnLimits, limit_records, set_limit
from tests.support.databases import execute

TURNS = 40
WAIT_SECONDS = 60
PROCESS = """
import sys, threading, time
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.turn_limits import TurnLimits

limits, shown = TurnLimits(Database(sys.argv[1])), threading.Lock()

def turn(names):
    with limits.permit(names, threading.Event()):
        with shown:
            print(time.monotonic(), 1, names[-1], flush=True)
        time.sleep(float(sys.argv[2]))
        with shown:
            print(time.monotonic(), -1, names[-1], flush=True)

models = ["small", "large"] * (int(sys.argv[3]) // 2)
threads = [threading.Thread(target=turn, args=(["provider:openai", f"model:{each}"],)) for each in models]
for each in threads: each.start()
for each in threads: each.join()
"""
"""Turns on threads of their own; prints when each starts and ends."""


@pytest.fixture
def postgres(database_url: str) -> Iterator[Database]:
    database = Database.open(database_url)
    yield database
    database.close()


@pytest.fixture
def limits(postgres: Database) -> Iterator[TurnLimits]:
    with closing(TurnLimits(postgres)) as limits:
        yield limits


def started(database: Database, seconds: float, turns: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROCESS, database.url, str(seconds), str(turns)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def most_at_once(output: str, name: str = "") -> int:
    """The most turns, of the model with that name, that were in progress at the same time."""
    events = sorted(tuple(line.split()) for line in output.splitlines() if line.endswith(name))
    now = most = 0
    for _, change, _ in sorted((float(at), int(change), who) for at, change, who in events):
        now += change
        most = max(most, now)
    assert now == 0, "every turn that started has ended"
    return most


def cut_connections(url: str) -> None:
    """Let the server end all other sessions of the database."""
    execute(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                 "AND datname = current_database()")  # fmt: skip


def in_use(database: Database) -> dict[str, int]:
    return {record["limit"]: record["in_use"] for record in limit_records(database)}


@pytest.mark.parametrize(
    ("name", "most", "problem"),
    [("openai", 3, "cannot be limited"), ("provider:", 3, "cannot be limited"), ("model:a", 0, "limited to 0")],
)
def test_wrong_limit_is_refused(tmp_path: Path, name: str, most: int, problem: str) -> None:
    database = Database.open(f"sqlite:///{tmp_path}/queue.sqlite")
    with pytest.raises(UsageError, match=problem):
        set_limit(database, name, most)
    with pytest.raises(UsageError, match="need Postgres"):
        set_limit(database, "model:a", 1)
    with TurnLimits(database).permit(["model:a"], threading.Event()):
        assert limit_records(database) == []


@pytest.mark.long
def test_processes_never_exceed_a_limit(postgres: Database) -> None:
    set_limit(postgres, "provider:openai", 5)
    set_limit(postgres, "model:large", 2)
    processes = [started(postgres, 0.1, TURNS // 4) for _ in range(4)]
    output = "".join(process.communicate(timeout=WAIT_SECONDS)[0] for process in processes)
    assert len(output.splitlines()) == 2 * TURNS
    assert most_at_once(output) == 5
    assert most_at_once(output, "large") == 2
    assert in_use(postgres) == {"provider:openai": 0, "model:large": 0}


@pytest.mark.long
def test_killed_process_frees_its_places(postgres: Database, limits: TurnLimits) -> None:
    set_limit(postgres, "provider:openai", 2)
    process = started(postgres, 300, 2)
    assert process.stdout is not None
    for _ in range(2):
        process.stdout.readline()
    assert in_use(postgres) == {"provider:openai": 2}
    process.kill()
    process.communicate()
    with limits.permit(["provider:openai"], threading.Event()):
        pass  # waits until the server has noticed


@pytest.mark.long
def test_cut_connection_neither_blocks_nor_frees_another(postgres: Database, limits: TurnLimits) -> None:
    """A running turn gets its place back on the next connection, and its end frees no place but its own."""
    set_limit(postgres, "model:a", 2)
    never = threading.Event()
    with limits.permit(["model:a"], never):
        cut_connections(postgres.url)
        with limits.permit(["model:a"], never):
            assert in_use(postgres) == {"model:a": 2}
        assert in_use(postgres) == {"model:a": 1}
    assert in_use(postgres) == {"model:a": 0}


@pytest.mark.long
def test_place_taken_by_another_after_a_cut_stays_theirs(postgres: Database, limits: TurnLimits) -> None:
    set_limit(postgres, "model:a", 1)
    never = threading.Event()
    with limits.permit(["model:a"], never), closing(TurnLimits(postgres)) as others:
        cut_connections(postgres.url)
        with others.permit(["model:a"], never):
            stopped = threading.Event()
            stopped.set()
            with pytest.raises(RunInterrupted), limits.permit(["model:a"], stopped):
                pass  # reconnects, and sees that the place is taken
            assert in_use(postgres) == {"model:a": 1}


@pytest.mark.long
@pytest.mark.parametrize("most", [2, None])
def test_waiting_turn_sees_a_changed_limit(postgres: Database, limits: TurnLimits, most: int | None) -> None:
    set_limit(postgres, "model:a", 1)
    started_turn = threading.Event()

    def second() -> None:
        with closing(TurnLimits(postgres)) as others, others.permit(["model:a"], threading.Event()):
            started_turn.set()

    with limits.permit(["model:a"], threading.Event()):
        thread = threading.Thread(target=second)
        thread.start()
        set_limit(postgres, "model:a", most)
        assert started_turn.wait(WAIT_SECONDS)
    thread.join()
