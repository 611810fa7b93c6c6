"""Workers whose clocks are minutes apart: only the server's clock says who is dead, and what is due."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codex_multi_role.extensions.machines.workers.queued_runs import RunState
from tests.support.shared_runs import SharedRuns
from tests.support.teams import TeamFolder, say

AHEAD, BEHIND = 300, -300
TURNS = 6
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*original)(clockid_t, struct timespec *);
    if (!original)
        original = dlsym(RTLD_NEXT, "clock_gettime");
    int result = original(clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += SECONDS;
    return result;
}
"""
"""A library in front of the C library's, which changes the time of day."""


@pytest.mark.long
def test_workers_with_wrong_clocks_leave_each_other_alone(tmp_path: Path, on_postgres: SharedRuns) -> None:
    """Only here clocks differ. Until one is killed: then the other takes its run, and no finished turn is repeated."""
    try:
        variables = {name: wrong_clock(tmp_path, seconds) for name, seconds in (("a", AHEAD), ("b", BEHIND))}
    except FileNotFoundError:
        pytest.skip("no C compiler")
    assert clock_of(variables["a"]) - clock_of(variables["b"]) > AHEAD - BEHIND - 60
    shared = on_postgres
    plays = [{**say(f"step {number}"), "delay_seconds": 2} for number in range(TURNS)]
    team = TeamFolder(tmp_path / "team", {"one": {}}, {"one": plays})
    shared.submit(team.options(cycles=TURNS), "first", "second", "third", "fourth")
    for name, environment in variables.items():
        shared.start(name, env=environment)
    shared.wait(lambda: sum(run.state is RunState.ENDED for run in shared.queued.list()) == 2)
    assert {(run.attempt, run.worker) for run in shared.queued.list() if run.state is RunState.ENDED} == {
        (1, "a"),
        (1, "b"),
    }
    shared.wait(lambda: any(run.worker == "a" and run.state is RunState.RUNNING for run in shared.queued.list()))
    shared.kill("a")
    shared.wait_for(RunState.ENDED, "first", "second", "third", "fourth")
    assert sorted(run.attempt for run in shared.queued.list()) == [1, 1, 1, 2]
    assert {(run.record or {})["totals"]["turns"] for run in shared.queued.list()} <= {TURNS, TURNS + 1}


def clock_of(environment: dict[str, str]) -> float:
    """What a process with these variables takes for the time."""
    program = [sys.executable, "-c", "import time; print(time.time())"]
    printed = subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout
    assert abs(float(printed) - time.time()) > 60
    return float(printed)


def wrong_clock(folder: Path, seconds: int) -> dict[str, str]:
    """Variables for a process whose clock is wrong by that. Raises ``FileNotFoundError`` without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("cc")
    library = folder / f"clock{seconds:+}.so"
    source = library.with_suffix(".c")
    source.write_text(CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", f"-DSECONDS=({seconds})", "-o", library, source, "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}
