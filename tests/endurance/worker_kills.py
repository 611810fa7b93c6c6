"""Kill a worker's run process at any write to the journal, to the store or to its row, and let another one continue.

    python -m tests.endurance.worker_kills                 every write, before it and after it
    python -m tests.endurance.worker_kills --points 20 --seed 7
    python -m tests.endurance.worker_kills --only 31

The runs are in a Postgres server of their own. After each kill, another process continues in other folders. Then every
turn was completed once, and the files are those of an undisturbed run. Prints each trial; the exit code is 1 if
anything was wrong, or if too few places were reached.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.extensions.machines.store import fill_workspace, restore_run
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRun, RunState
from codex_multi_role.host.own_python import Lifetime, start
from codex_multi_role.run_folder import RunFolder, list_turns
from tests.endurance.kill_command import kill_command
from tests.support.databases import new_database
from tests.support.shared_runs import SharedRuns
from tests.support.teams import WRITER, TeamFolder, say

CYCLES = 2
RUN_ID = "struck"
SECONDS = 120
PROGRAM = """
import os, signal, sys, threading
from dbos._sys_db import SystemDatabase
from codex_multi_role.extensions.machines.store.objects import LocalObjects
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRuns
from codex_multi_role.extensions.machines.workers import attempt_process

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

for owner, name in ((LocalObjects, "write"), (SystemDatabase, "record_operation_result"), (QueuedRuns, "save")):
    struck(owner, name)
code = attempt_process.main(int(sys.argv[3]))
print(passed, file=sys.stderr, flush=True)
os._exit(code)
"""
NEVER = -1


@dataclass(frozen=True)
class Outcome:
    """What a run left: its exit code, the completed turns by journal position, the files, and the result of it all."""

    exit_code: int | None
    turns: dict[int, int]
    files: dict[str, str]

    def differences(self, expected: Outcome) -> list[str]:
        found = [] if self.exit_code == expected.exit_code else [f"exit code {self.exit_code}"]
        twice = [place for place, count in self.turns.items() if count > 1]
        found += [f"paid twice: {twice}"] if twice else []
        found += [] if self.turns.keys() == expected.turns.keys() else [f"turns {sorted(self.turns)}"]
        return found + ([] if self.files == expected.files else [f"files {self.files}"])


@dataclass
class Trials:
    """Runs of one small team, each in a database and folders of its own."""

    server_url: str
    folder: Path

    def undisturbed(self) -> tuple[Outcome, int]:
        """What should be left, and how many places there are to kill at."""
        with new_database(self.server_url) as url, closing(self._shared("undisturbed", url)) as shared:
            printed = self._process(shared, NEVER).stderr
            return outcome(shared), int(printed.splitlines()[-1])

    def killed_at(self, place: int) -> tuple[Outcome, bool]:
        """What is left after a kill at that place; whether the place was reached."""
        with new_database(self.server_url) as url, closing(self._shared(f"place-{place}", url)) as shared:
            killed = self._process(shared, place)
            assert killed.returncode in (0, -signal.SIGKILL), killed.stderr
            attempts = 1
            while (run := shared.run(RUN_ID)).state is not RunState.ENDED and attempts < 4:
                give_back(shared, run)
                self._process(shared, NEVER)
                attempts += 1
            return outcome(shared), killed.returncode != 0

    def _shared(self, name: str, url: str) -> SharedRuns:
        folder = self.folder / name
        plays = [
            say(f"step {number}", files=[{"path": f"{number}.txt", "content": f"{number}\n"}])
            for number in range(1, CYCLES + 1)
        ]
        team = TeamFolder(folder / "team", {"one": WRITER}, {"one": plays})
        (team.workspace / "kept.txt").write_text("was there before\n")
        shared = SharedRuns(folder, url)
        shared.submit(team.options(cycles=CYCLES), RUN_ID)
        return shared

    @staticmethod
    def _process(shared: SharedRuns, place: int) -> subprocess.CompletedProcess[str]:
        """A run process as a worker starts it, with a leash that ends with this process."""
        attempt = len(list(shared.folder.glob("machine-*")))
        instructions = {
            "database_url": shared.url,
            "store": shared.store.address,
            "queue": "goals",
            "worker": f"worker-{attempt}",
            "identity": f"identity-{attempt}",
            "max_crashes": 20,
            "folder": str(shared.folder / f"machine-{attempt}"),
        }
        (shared.folder / f"machine-{attempt}").mkdir()
        log = shared.folder / f"machine-{attempt}.log"
        command = [sys.executable, "-c", PROGRAM, str(place)]
        process = start(command, Lifetime.ENDS_WITH_US, json.dumps(instructions), log)
        try:
            process.wait(SECONDS)
        finally:
            process.kill()
            process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, "", log.read_text())


def give_back(shared: SharedRuns, run: QueuedRun) -> None:
    """What the housekeeping of another worker does."""
    if run.state is RunState.RUNNING:
        assert shared.queued.enqueue_again(run, "its worker died")
    elif run.state is RunState.WAITING:
        shared.queued.tell_engine(run)


def outcome(shared: SharedRuns) -> Outcome:
    run = shared.run(RUN_ID)
    seen = shared.folder / "seen"
    state = restore_run(shared.store, run.manifest or "", seen / RUN_ID)
    (seen / "workspace").mkdir()
    folder = RunFolder(seen / RUN_ID)
    fill_workspace(state, folder, seen / "workspace")
    records = [turn.result() for _, turn in list_turns(folder)]
    turns = Counter(record["journal_step"] for record in records if record["status"] == "completed")
    files = {path.name: path.read_text() for path in sorted((seen / "workspace").glob("*.txt"))}
    return Outcome(run.exit_code, dict(turns), files)


main = kill_command("worker-kills", __doc__, Trials)


if __name__ == "__main__":
    main()
