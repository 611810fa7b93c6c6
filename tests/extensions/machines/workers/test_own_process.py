"""Processes that work on runs: what they get and report, and when they end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from codex_multi_role.extensions.machines.workers import own_process
from codex_multi_role.extensions.machines.workers.own_process import OwnProcess

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
