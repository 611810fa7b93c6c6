"""Kill `batch --database-url` at any use of the database, the store or its files, and let `--resume` do the rest.

    python -m tests.endurance.batch_kills                 every place, up to the first looks of watching
    python -m tests.endurance.batch_kills --points 20 --seed 7
    python -m tests.endurance.batch_kills --only 31

A played worker ends the goals meanwhile. However early or late the command was killed, each goal is then submitted and
executed once, and the results are those of an undisturbed batch. The exit code is 1 if anything was wrong, or if too
few places were reached.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_multi_role.extensions.machines.workers.database_tables import batches
from tests.endurance.kill_command import kill_command
from tests.support.batches import OF_TEAM, one_role, results, write_goals
from tests.support.console import console_process, environment
from tests.support.databases import execute, new_database
from tests.support.played_workers import PlayedWorker, ending
from tests.support.teams import TeamFolder

GOALS = 5
SECONDS = 120
PROGRAM = """
import os, signal, sys, threading
from contextlib import contextmanager
from codex_multi_role.extensions.machines.batches.goal_results import ResultFile
from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.cli.main import group
from codex_multi_role.extensions.machines.store.objects import LocalObjects
from codex_multi_role.extensions.machines.workers import queued_runs
from codex_multi_role.extensions.machines.workers.database import Database

queued_runs.ROWS_AT_ONCE = 2
place, passed, lock = int(sys.argv[1]), 0, threading.Lock()

def count():
    global passed
    with lock:
        if passed == place:
            os.kill(os.getpid(), signal.SIGKILL)
        passed += 1

def struck(owner, name):
    original = getattr(owner, name)
    def method(*args, **keywords):
        count()
        result = original(*args, **keywords)
        count()
        return result
    setattr(owner, name, method)

transaction = Database.transaction

@contextmanager
def struck_transaction(self):
    with transaction(self) as connection:
        yield connection
        count()
    count()

Database.transaction = struck_transaction
struck(LocalObjects, "write")
struck(ResultFile, "write")
code = run_guarded(group, sys.argv[2:])
print(passed, file=sys.stderr, flush=True)
os._exit(code)
"""
NEVER = -1


@dataclass(frozen=True)
class Outcome:
    """What is left: the exit code of the last command, the goals' results, the rows and the attempts of their runs."""

    exit_code: int
    results: list[tuple[str, str, int]]
    rows: list[tuple[Any, ...]]
    workflows: int

    def differences(self, expected: Outcome) -> list[str]:
        found = ((name, getattr(self, name), getattr(expected, name)) for name in vars(expected))
        return [f"{name} {mine}" for name, mine, wanted in found if mine != wanted]


@dataclass
class Trials:
    """One batch again and again, each in a database and a folder of its own."""

    server_url: str
    folder: Path

    def undisturbed(self) -> tuple[Outcome, int]:
        """What should be left, and how many places there are to kill at."""
        with self._batch("undisturbed") as (team, url):
            done = command(team, url, NEVER)
            assert done.returncode == 0, done.stderr
            return outcome(team, url, 0), int(done.stderr.splitlines()[-1])

    def killed_at(self, place: int) -> tuple[Outcome, bool]:
        """What is left after a kill at that place and one `--resume`; whether the place was reached."""
        with self._batch(f"place-{place}") as (team, url):
            killed = command(team, url, place)
            assert killed.returncode in (0, -signal.SIGKILL), killed.stderr
            resumed = console_process(*arguments(url), "--resume", folder=team.folder)
            return outcome(team, url, resumed.returncode), killed.returncode != 0

    @contextmanager
    def _batch(self, name: str) -> Iterator[tuple[TeamFolder, str]]:
        """A goal file and a database for it, whose runs a played worker ends."""
        team = one_role(self.folder / name)
        write_goals(team, *({"goal": f"goal {number}"} for number in range(GOALS)))
        with new_database(self.server_url) as url:
            worker = PlayedWorker(url, 10 * GOALS, **ending(0, "succeeded"))
            worker.start()
            try:
                yield team, url
            finally:
                worker.end()


def arguments(url: str) -> list[str]:
    return ["batch", "goals.jsonl", *OF_TEAM, "--database-url", url, "--max-turns=4", "--total-max-turns=40", "--json"]


def command(team: TeamFolder, url: str, place: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(place), *arguments(url)],
        cwd=team.folder, env=environment(), capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip


def outcome(team: TeamFolder, url: str, exit_code: int) -> Outcome:
    found = [(name, each["status"], each["totals"]["turns"]) for name, each in results(team).items()]
    rows = execute(url, "SELECT run_id, batch, line, state, attempt FROM codex_multi_role.runs ORDER BY line")
    limits = execute(url, f"SELECT name, limits::text FROM codex_multi_role.{batches.name}")
    workflows = execute(url, "SELECT count(*) FROM dbos.workflow_status")[0][0]
    return Outcome(exit_code, found, [*rows, *limits], workflows)


main = kill_command("batch-kills", __doc__, Trials)


if __name__ == "__main__":
    main()
