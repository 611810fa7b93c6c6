"""The signals that stop a run, and those that do not.

Costs: a run in a process of its own; the first such process of a worker imports all that it may need.
"""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_multi_role.errors import ExitCode, RunInterrupted, ending_for
from codex_multi_role.lifecycle.stopping import Stop, stopping_signals
from tests.support.console import TAKE_TERMINAL
from tests.support.leftovers import processes_of
from tests.support.processes import wait_for
from tests.support.teams import NEVER, TeamFolder, read

WAIT_SECONDS = 60.0


@pytest.fixture
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in signal.Signals}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
def test_signals_ignored_by_whoever_started_us_stay_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    assert stopping_signals() == [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGXCPU]


@pytest.mark.parametrize(("second", "hurries"), [(signal.SIGHUP, 0), (signal.SIGINT, 1), (signal.SIGQUIT, 1)])
def test_second_hangup_does_not_hurry_stop(second: signal.Signals, hurries: int) -> None:
    """A shell that exits passes on to its jobs what the system has already sent them."""
    calls: list[None] = []
    stop = Stop(lambda: calls.append(None))
    stop.interrupts = False
    stop(signal.SIGHUP, None)
    stop.announce()
    stop(second, None)
    assert len(calls) == hurries


@pytest.mark.parametrize(("number", "words"), [(signal.SIGXCPU, "CPU time"), (signal.SIGTERM, "was stopped")])
def test_used_up_cpu_time_is_the_reason_of_the_stop(number: signal.Signals, words: str) -> None:
    calls: list[None] = []
    stop = Stop(lambda: calls.append(None))
    stop.interrupts = False
    stop(number, None)
    stop(signal.SIGXCPU, None)  # the system repeats it every second
    stop.announce()
    ending = stop.explain(ending_for(RunInterrupted()))
    assert words in ending.reason
    assert (ending.exit_code, calls) == (ExitCode.INTERRUPTED, [])


@pytest.mark.real
def test_closed_terminal_interrupts_a_run(tmp_path: Path) -> None:
    """Nothing of it is left, not even its guard."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [NEVER]})
    ours, theirs = pty.openpty()
    take_terminal = [*team.command()[:1], "-c", TAKE_TERMINAL]
    child = subprocess.Popen(
        [*take_terminal, *team.command()],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        wait_for(team.runs / "latest/one/turn_001/turn.json")
        os.close(ours)
        assert child.wait(WAIT_SECONDS) == 130
        assert processes_of(tmp_path) == []
    finally:
        child.kill()
        child.wait()
    record = read(team.runs / "latest/run.json")
    assert (record["status"], record["exit_code"]) == ("interrupted", 130)
