"""A worker whose run processes are played, and such processes: what they get, report and are told at the end."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.workers import own_process
from codex_multi_role.extensions.machines.workers import worker as module
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.membership import Membership, WorkerSettings
from codex_multi_role.extensions.machines.workers.own_process import OwnProcess
from codex_multi_role.extensions.machines.workers.worker import RunChild, Worker, WorkerFolders


def test_drain_without_the_database_interrupts_nothing(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With or without the database, the worker signals its run process to drain, and waits for it."""
    monkeypatch.setattr(module, "LOOK_SECONDS", 0)
    child, told = Mock(spec=RunChild, queue="goals", problem="", run_id="first", result="given back"), list[str]()
    child.lines.return_value = child.close.return_value = []
    child.exit_code = None
    child.drain.side_effect = lambda: setattr(child, "exit_code", 0)
    monkeypatch.setattr(module, "RunChild", lambda *_: child)
    worker = Worker(database, "", WorkerFolders(tmp_path), WorkerSettings("a", ("goals",), (), 1), told.append)
    monkeypatch.setattr(worker, "_takeable", lambda: {"goals": 1})
    worker._fill()
    monkeypatch.setattr(Membership, "beat", Mock(side_effect=StorageError("the database cannot be reached")))
    worker.draining.set()
    worker.work()
    assert child.drain.called
    assert not child.stop.called
    assert told == ["run first: given back", "the database cannot be reached. "]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("heartbeat", "no database"),
        ("queue", "no database"),
        ("log", "no database"),
        ("processes", "run processes in a row ended"),
    ],
)
def test_worker_until_empty_ends_with_what_keeps_it_from_working(
    broken: str, words: str, tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that stays waits until the database is back."""
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(module, "EMPTY_PAUSE_SECONDS", 0.0)
    failing = Mock(side_effect=StorageError("no database"))
    child = Mock(spec=RunChild, queue="goals", problem="", run_id="", result="", exit_code=2)
    child.lines.return_value = child.close.return_value = []
    crashes = 2 if broken == "processes" else 100
    settings = WorkerSettings("a", ("goals",), (), 1, dead_after_seconds=0.3, max_crashes=crashes)
    worker = Worker(database, "", WorkerFolders(tmp_path), settings, lambda _: None)
    monkeypatch.setattr(module, "RunChild", failing if broken == "log" else lambda *_: child)
    monkeypatch.setattr(worker, "_takeable", failing if broken == "queue" else lambda: {"goals": 1})
    if broken == "heartbeat":
        monkeypatch.setattr(Membership, "beat", failing)
    with pytest.raises(StorageError, match=words):
        worker.work(until_empty=True)


REPORTS = """
import json, sys
from codex_multi_role.host.own_python import read_order
order = read_order(int(sys.argv[2]))
print(json.dumps(order))
print("no line end", end="", flush=True)
sys.stdin.read()
print("", flush=True)
"""


@pytest.mark.real
def test_process_takes_its_order_and_reports_until_its_pipe_closes(tmp_path: Path) -> None:
    order = {"goal": "ü" * 100_000}
    process = OwnProcess([sys.executable, "-c", REPORTS], order, tmp_path / "log")
    lines: list[bytes] = []
    while not lines:
        lines += process.lines()
    assert json.loads(lines[0]) == order
    assert process.close() == [b"no line end"]
    assert process.exit_code == 0
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.real
def test_longest_line_is_dropped_and_the_next_one_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_process, "MAX_LINE_BYTES", 100)
    process = OwnProcess([sys.executable, "-c", "print('x' * 9000, flush=True); print('next')"], {}, tmp_path / "log")
    found: list[bytes] = []
    while not process.is_silent:
        found += process.lines()
    assert found[-1] == b"next"
    assert process.close() == []


@pytest.mark.real
def test_process_that_does_not_stop_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_process, "STOP_SECONDS", 0.1)
    process = OwnProcess(["sleep", "86400"], {}, tmp_path / "log")
    process.close()
    assert process.exit_code in (1, -9)  # `sleep` may refuse the option before
