"""A run as what is struck: a folder with a scenario's team, and the model that all processes of the run ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from codex_multi_role.codex.locator import find_codex
from codex_multi_role.errors import ExitCode, RunStatus
from codex_multi_role.playbook import AnswerKey, Playbook, PlaybookServer
from codex_multi_role.run_folder import RunFolder, read_events
from codex_multi_role.run_folder.events import RoleRestarted, RunEnded, TestsEnded, TurnEnded, Warning
from codex_multi_role.run_folder.owner import read_owner
from tests.endurance.bench import Bench, Trial, Undisturbed
from tests.endurance.deadlines import longest_silence
from tests.endurance.evidence import Evidence, evidence_of
from tests.endurance.faults.fault import Fault
from tests.endurance.findings import disordered, findings
from tests.endurance.ledger import Turn, audit, in_flight, turns_by_place
from tests.endurance.points import Point
from tests.endurance.scenarios import Scenario
from tests.support.disks import Disk, git_in, small_disk
from tests.support.leftovers import end, wait_until_gone
from tests.support.recorded_steps import recorded_steps
from tests.support.teams import LIMITS, TeamFolder, read

ENDED = ("succeeded", "ended")


class Workbench(Bench):
    """``run_id`` changes when a run is started again."""

    def __init__(
        self,
        fault: Fault,
        scenario: Scenario,
        folder: Path,
        server: PlaybookServer,
        team: TeamFolder,
        disk: Disk | None,
    ) -> None:
        super().__init__(fault, scenario, folder, disk)
        self.scenario, self.server, self.team = scenario, server, team
        self.run_id = "endurance"

    @property
    def run(self) -> RunFolder:
        return RunFolder(self.team.runs / self.run_id)

    def start(self, point: Point | None = None) -> int:
        """Run, struck at ``point``; returns the exit code. Raises `Hanging`."""
        return self._command(self.scenario.run_arguments(self.team, self.server.base_url, self.run_id), point)

    def resume(self, point: Point | None = None) -> int:
        """As `start`."""
        return self._command(self.scenario.resume_arguments(self.team, self.run_id), point)

    def _command(self, arguments: list[str], point: Point | None) -> int:
        codex = self.fault.codex(self.folder, point) if point else find_codex(None, {})
        return self.drive([*arguments, "--codex-bin", str(codex)], point)

    def go_on(self, trial: Trial, point: Point | None) -> int:
        """A run without ``run.json`` is started again under another name."""
        if self.run.record_path.exists():
            trial.resumes += not self.has_ended() or bool(read_owner(self.run))  # killed as it wrote its end
            code = self.resume(point)
            trial.struck_resumes += bool(self.struck)
            return code
        if self.processes:
            trial.restarts += 1
            trial.wrong += [f"paid for before there was a run.json: {ask}" for ask in self.server.requests]
            self.run_id = f"{self.run_id}-again"
        return self.start(point)

    def has_ended(self) -> bool:
        return self.run.record_path.exists() and self.run.record()["status"] in ENDED

    def evidence(self, exit_code: int) -> Evidence:
        git = partial(git_in, self.team.workspace, self.disk)
        return evidence_of(self.run, self.team.workspace, exit_code, git, self.scenario.racers)

    def last_told(self) -> float:
        with suppress(OSError):
            return self.run.events_path.stat().st_mtime
        return 0.0

    def look(self, trial: Trial, point: Point | None, code: int) -> None:
        super().look(trial, point, code)
        if not (self.struck and code == self.fault.exit_code):
            trial.wrong += self._found(trial, point, code)
        if self.processes == 1 and self.run.events_path.exists():
            trial.ended_by = list(_deadlines(self.run))
        unfinished = in_flight(self.run)
        trial.free |= unfinished
        if len(unfinished) > self.scenario.concurrency:
            trial.wrong.append(f"{len(unfinished)} turns were in flight at once")

    def _found(self, trial: Trial, point: Point | None, code: int) -> Iterator[str]:
        """What is wrong with a process that ended by itself."""
        fault, is_struck, has_ended = self.fault, bool(self.struck), self.has_ended()
        is_stale = is_struck and fault.loses_writes and not has_ended
        record = self.run.record() if self.run.record_path.exists() else {}
        if not record or (is_stale and record["status"] == RunStatus.RUNNING):
            trial.stops.append("before it could write why")
            if code != ExitCode.FAILED:
                yield f"exit code {code}, and run.json does not tell of the end"
            return
        honest = fault.honest_outcomes if is_struck and point and not fault.must_succeed(point) else ()
        turn_ends = {*fault.turn_ends, *((None, "running") if is_stale else ())}
        resumes = range(trial.resumes - trial.struck_resumes, trial.resumes + 1)
        yield from findings(self.run, code, honest, turn_ends, resumes)
        if not has_ended:
            trial.stops.append(f"{record['outcome']}: {record['reason']}")

    def bill(self) -> tuple[Counter[AnswerKey], dict[int, Turn]]:
        due, turns = self._asked(), turns_by_place(self.run, self.scenario.racers)
        assert self.scenario.racers or len(turns) == self.run.record()["totals"]["turns"]
        assert set(turns.values()) == {Turn(ask.role, ask.visit, ask.repair) for ask in due}
        assert turns.keys() <= recorded_steps(self.run.journal_path).keys()
        return due, turns

    def account(self, trial: Trial, expected: Undisturbed) -> list[str]:
        wrong = [*disordered(self.run)] if self.scenario.concurrency == 1 else []
        if not self.fault.is_paid_once:
            return wrong
        racers = self.scenario.racers
        free = {place: times for place, times in trial.free.items() if not racers or place in expected.turns}
        account = audit(expected.due, self._asked(), expected.turns, free)
        trial.twice = account.twice
        asked = Counter(ask.role for ask in self.server.requests.elements() if ask.role in racers)
        often = [f"{role} was asked {times} times" for role, times in asked.items() if times > self.processes]
        return [*wrong, *account.wrong, *often]

    def _asked(self) -> Counter[AnswerKey]:
        """The requests for all roles but the racers."""
        requests = self.server.requests
        return Counter({ask: times for ask, times in requests.items() if ask.role not in self.scenario.racers})


def _deadlines(run: RunFolder) -> Iterator[str]:
    """What the run's events and checks say of deadlines that passed."""
    for event in read_events(run.events_path):
        match event:
            case RoleRestarted(role, reason):
                yield f"{role} restarted: {reason}"
            case TurnEnded(role=role, status=status, reason=reason) if status != "completed":
                yield f"{role}'s turn: {reason}"
            case TestsEnded(status=status) if status != "passed":
                yield f"tests: {status}"
            case RunEnded(status=status, reason=reason) if status != "succeeded":
                yield f"run: {reason}"
            case Warning(message):
                yield f"warning: {message}"
    for result in map(read, sorted(run.path.glob("checks/*/result.json"))):
        if reason := result.get("reason"):
            yield f"check: {reason}"


@contextmanager
def workbench(fault: Fault, scenario: Scenario, folder: Path, point: Point | None = None) -> Iterator[Workbench]:
    """Make ``folder`` and a team in it, for a run that is struck at ``point``; what still runs in the end is killed.

    Raises `OSError` where the system gives no disk of one's own, and the fault needs one.
    """
    folder.mkdir(parents=True)
    limits = fault.limits(point) if point else LIMITS
    with ExitStack() as stack:
        disk = None
        if point and fault.disk_megabytes:
            (folder / "disk").mkdir()
            disk = stack.enter_context(small_disk(folder / "disk", fault.disk_megabytes))
        team = scenario.new_team(disk.folder if disk else folder, disk, limits)
        server = stack.enter_context(PlaybookServer(Playbook.load(team.playbook)))
        stack.callback(lambda: end(wait_until_gone(folder, 0)))
        bench = Workbench(fault, scenario, folder, server, team, disk)
        bench.silence_seconds = longest_silence(limits)
        yield bench
