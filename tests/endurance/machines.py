"""Many machines as what is struck: a worker's process with a run, and a batch of goals, both by a Postgres server."""

from __future__ import annotations

import atexit
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache, partial
from pathlib import Path

from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.machines.store.restoring import fill_workspace, restore_run
from codex_multi_role.extensions.machines.workers.database_tables import batches
from codex_multi_role.extensions.machines.workers.queued_runs import RunState
from codex_multi_role.run_folder import RunFolder, list_turns
from tests.endurance.bench import ATTEMPT, Bench, Trial
from tests.endurance.evidence import Evidence, evidence_of
from tests.endurance.faults.fault import Fault
from tests.endurance.findings import TURN_ENDS, findings
from tests.endurance.points import Point
from tests.endurance.scenarios import BATCH, WORKER, Struck
from tests.support.batches import OF_TEAM, one_role, results, write_goals
from tests.support.databases import DatabaseServer, execute, new_database, running_server
from tests.support.disks import git_in
from tests.support.played_workers import PlayedWorker, ending
from tests.support.shared_runs import SharedRuns
from tests.support.teams import TeamFolder, say

GOALS = 5
RUN_ID = "struck"
SEVERAL = range(100)
"""How often a run may have been continued."""


@contextmanager
def machine_bench(fault: Fault, scenario: Struck, folder: Path) -> Iterator[Bench]:
    """Make ``folder`` and a database, and in them what is struck."""
    folder.mkdir(parents=True)
    opened = {WORKER.name: _worker, BATCH.name: _batch}[scenario.name]
    with new_database(_server().url) as url, opened(fault, folder, url) as bench:
        yield bench


@cache
def _server() -> DatabaseServer:
    """One until this process ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(running_server())


class WorkerBench(Bench):
    """The process in which a worker has a run; after its end, another one continues in other folders."""

    def __init__(self, fault: Fault, shared: SharedRuns) -> None:
        super().__init__(fault, WORKER, shared.folder)
        self._shared = shared

    def go_on(self, trial: Trial, point: Point | None) -> int:
        if self.has_ended():
            return ExitCode.GOAL_REACHED
        trial.resumes += self._is_given_back()
        machine = self.folder / f"machine-{self.processes}"
        machine.mkdir()
        order = {
            "database_url": self._shared.url,
            "store": self._shared.store.address,
            "queue": "goals",
            "worker": f"worker-{self.processes}",
            "identity": f"identity-{self.processes}",
            "max_crashes": 20,
            "folder": str(machine),
        }
        (machine / "order.json").write_text(json.dumps(order))
        return self.drive([ATTEMPT, str(machine / "order.json")], point)

    def _is_given_back(self) -> bool:
        """Do what the housekeeping of another worker does with the run of a dead one."""
        run = self._shared.run(RUN_ID)
        if run.state is RunState.RUNNING:
            assert self._shared.queued.enqueue_again(run, "its worker died")
        elif self.processes:
            self._shared.queued.tell_engine(run)
        return self.processes > 0

    def has_ended(self) -> bool:
        return self._shared.run(RUN_ID).state is RunState.ENDED

    def evidence(self, exit_code: int) -> Evidence:
        """What the store has, restored to folders of its own."""
        row = self._shared.run(RUN_ID)
        run, workspace = RunFolder(self.folder / "seen" / RUN_ID), self.folder / "seen/workspace"
        state = restore_run(self._shared.store, row.manifest or "", run.path)
        workspace.mkdir()
        fill_workspace(state, run, workspace)
        if wrong := findings(run, row.exit_code or 0, (), TURN_ENDS, SEVERAL):
            raise AssertionError("; ".join(wrong))
        turns = [turn.result() for _, turn in list_turns(run)]
        completed = Counter(f"{turn['journal_step']}" for turn in turns if turn["status"] == "completed")
        return {**evidence_of(run, workspace, exit_code, partial(git_in, workspace, None)), "completed": completed}


class BatchBench(Bench):
    """`batch`, whose runs a played worker ends meanwhile; after its end, ``--resume`` does the rest."""

    def __init__(self, fault: Fault, team: TeamFolder, url: str) -> None:
        super().__init__(fault, BATCH, team.folder)
        self._team, self._url = team, url
        self._code: int | None = None

    def go_on(self, trial: Trial, point: Point | None) -> int:
        trial.resumes += self.processes > 0
        again = ["--resume"] if self.processes else []
        limits = ("--max-turns=4", "--total-max-turns=40")
        arguments = ["batch", "goals.jsonl", *OF_TEAM, "--database-url", self._url, *limits, "--json", *again]
        self._code = self.drive(arguments, point, self.folder)
        return self._code

    def has_ended(self) -> bool:
        return self._code == ExitCode.GOAL_REACHED

    def evidence(self, exit_code: int) -> Evidence:
        """Of the command, the goals' results, the rows, and the attempts of their runs."""
        rows = execute(self._url, "SELECT line, run_id, batch, state, attempt FROM codex_multi_role.runs")
        limits = execute(self._url, f"SELECT name, limits::text FROM codex_multi_role.{batches.name}")
        return {
            "ending": {"process": exit_code},
            "results": {goal: (each["status"], each["totals"]["turns"]) for goal, each in results(self._team).items()},
            "rows": {f"{line}": row for line, *row in rows},
            "limits": dict(limits),
            "engine": {"workflows": execute(self._url, "SELECT count(*) FROM dbos.workflow_status")},
        }


@contextmanager
def _worker(fault: Fault, folder: Path, url: str) -> Iterator[Bench]:
    """A team of one role that writes a file in each of two cycles, of which the second is the last."""
    files = [[{"path": f"{number}.txt", "content": f"{number}\n"}] for number in (1, 2)]
    plays = [say("step 1", files=files[0]), say("step 2", files=files[1], status="DONE")]
    role = {"behaviors": {"apply_files": True, "can_finish": True}}
    team = TeamFolder(folder / "team", {"one": role}, {"one": plays})
    (team.workspace / "kept.txt").write_text("was there before\n")
    with closing(SharedRuns(folder, url)) as shared:
        shared.submit(team.options(cycles=2), RUN_ID)
        yield WorkerBench(fault, shared)


@contextmanager
def _batch(fault: Fault, folder: Path, url: str) -> Iterator[Bench]:
    team = one_role(folder)
    write_goals(team, *({"goal": f"goal {number}"} for number in range(GOALS)))
    worker = PlayedWorker(url, 10 * GOALS, **ending(0, "succeeded"))
    worker.start()
    try:
        yield BatchBench(fault, team, url)
    finally:
        worker.end()
