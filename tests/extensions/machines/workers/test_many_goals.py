"""Sixty goals on three machines that lose power, network and database while they work."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from codex_multi_role.extensions.machines.store.restoring import restore_run
from codex_multi_role.extensions.machines.workers.database_tables import runs
from codex_multi_role.extensions.machines.workers.queued_runs import RunState
from codex_multi_role.run_folder import RunFolder, list_turns
from tests.support.databases import PASSWORD, DatabaseServer, new_database, running_server
from tests.support.relays import Relay, relayed
from tests.support.shared_runs import SharedRuns, left_of
from tests.support.teams import WRITER, TeamFolder, say

GOALS = 60
TURNS = 2
CUT_SECONDS = 30.0


@pytest.fixture
def server() -> Iterator[DatabaseServer]:
    with running_server() as found:
        yield found


def start(shared: SharedRuns, cable: Relay, name: str) -> None:
    """Start a worker whose only way to the database is ``cable``."""
    url = f"postgresql://tester@127.0.0.1:{cable.port}{urlsplit(shared.url).path}"
    command = shared.worker_command(name, "--dead-after", "6", "--concurrency", "2", url=url)
    environment = {**os.environ, "PGPASSWORD": PASSWORD}
    with (shared.folder / f"{name}.log").open("w") as log:
        shared.workers[name] = subprocess.Popen(command, text=True, env=environment, stderr=log)


@pytest.mark.long
def test_sixty_goals_survive_what_happens_to_machines(tmp_path: Path, server: DatabaseServer) -> None:
    """Only here workers are killed, cut off and without their database, one after the other, with runs on all."""
    plays = [
        {**say(f"step {number}", files=[{"path": f"{number}.txt", "content": f"{number}\n"}]), "delay_seconds": 1.5}
        for number in range(1, TURNS + 1)
    ]
    team = TeamFolder(tmp_path / "team", {"one": WRITER}, {"one": plays})
    names = [f"goal-{number:02}" for number in range(GOALS)]
    with ExitStack() as stack:
        shared = SharedRuns(tmp_path, stack.enter_context(new_database(server.url)))
        cables = [stack.enter_context(relayed(("127.0.0.1", server.port))) for _ in range(3)]
        shared.submit(team.options(cycles=TURNS), *names)
        for number, cable in enumerate(cables):
            start(shared, cable, f"worker-{number}")

        ended(shared, 6)
        busy(shared, "worker-0")
        shared.kill("worker-0")
        start(shared, cables[0], "worker-3")
        ended(shared, 20)
        busy(shared, "worker-1")
        cables[1].cut()
        time.sleep(CUT_SECONDS)  # the fault itself, not a wait for something
        cables[1].reconnect()
        ended(shared, 40)
        server.restart()
        ended(shared, GOALS)
        check(shared, names)
        shared.close()
    assert left_of(tmp_path) == []


def busy(shared: SharedRuns, worker: str) -> None:
    """Wait until the worker has recorded a part of a run, and works on the rest."""
    mine = (runs.c.worker == worker, runs.c.state == RunState.RUNNING, runs.c.manifest.is_not(None))
    shared.wait(lambda: shared.queued.list(*mine))


def ended(shared: SharedRuns, count: int) -> None:
    shared.wait(lambda: sum(run.state is RunState.ENDED for run in shared.queued.list()) >= count)


def check(shared: SharedRuns, names: list[str]) -> None:
    """Every goal ended once, no turn was paid twice, and the figures are those of the turns."""
    assert shared.results() == [(name, "ended", 1) for name in names]
    assert sum(run.attempt > 1 for run in shared.queued.list()) >= 2
    for run in shared.queued.list():
        folder = RunFolder(shared.folder / "seen" / run.run_id)
        restore_run(shared.store, run.manifest or "", folder.path)
        records = [turn.result() for _, turn in list_turns(folder)]
        completed = Counter(record["journal_step"] for record in records if record["status"] == "completed")
        assert (len(completed), max(completed.values())) == (TURNS, 1), (run, records)
        assert run.record is not None
        assert run.record["totals"]["turns"] == len(records)
        assert folder.record() == run.record
