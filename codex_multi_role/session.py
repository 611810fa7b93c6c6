"""One process's work on a run, from taking ownership to the last state written, however it ends."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from functools import cache
from typing import Any

from codex_multi_role import __version__
from codex_multi_role.assembly import live_parts
from codex_multi_role.definitions import Definitions
from codex_multi_role.ending import Ending, ending_for
from codex_multi_role.errors import ReviewWaiting, RoleFailed, RunInterrupted, StorageError
from codex_multi_role.flow import FlowState, new_state
from codex_multi_role.options import RunReport
from codex_multi_role.processes import Family, processes_below
from codex_multi_role.run_folder import (
    AskPerson,
    Cancellations,
    EventLog,
    Owner,
    Questions,
    Record,
    RunFolder,
    close_unfinished,
    list_turns,
    own_turns,
)
from codex_multi_role.run_folder.atomic import write_text
from codex_multi_role.run_folder.events import RunEnded, RunStarted, Warning, now
from codex_multi_role.run_folder.states import RUN, States
from codex_multi_role.state_file import write_state
from codex_multi_role.steps import RunResources
from codex_multi_role.steps.review import answered_meanwhile
from codex_multi_role.steps.work_clock import WorkClock
from codex_multi_role.stop_signals import Stop, stop_signals

STOP_SECONDS = 20.0
LOOK_SECONDS = 0.2
"""How often a run looks whether it is to stop."""
ENDED = (0, 1, 2, 3)
"""The exit codes of a run that is not to go on by itself: neither parked nor interrupted."""
MOUNT_POINTS = (".git", ".codex", ".agents", ".aws")
"""What Codex's sandbox makes in a workspace to keep it from being written."""
OnEvent = Callable[[Record], None]


class Session:
    """Works on one run in this process. ``earlier`` is the ``run.json`` of the session before, when resuming.

    ``forked_from`` (run_id, step, visit) says where a fork's first session comes from; ``notes`` are told at the start.
    """

    def __init__(
        self,
        definitions: Definitions,
        folder: RunFolder,
        catalog_file: str,
        on_event: OnEvent | None,
        earlier: Mapping[str, Any] | None = None,
        ask_person: AskPerson | None = None,
        forked_from: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self._definitions = definitions
        self._folder = folder
        self._on_event = on_event
        self._ask_person = ask_person
        self._earlier = earlier
        self._forked_from = forked_from or (earlier or {}).get("forked_from")
        self._notes = list(notes)
        self._clock = WorkClock(self._worked_before())
        self._killed_turns = 0
        self._record = self._first_record(catalog_file)
        self._state = self._first_state()

    def _first_state(self) -> FlowState:
        options = self._definitions.options
        return new_state(self._definitions.flow, options.goal, self._definitions.inputs, options.cycles)

    def work(self) -> RunReport:
        """Run or go on, write the state, report. Raises `RunBusy`, `StorageError`."""
        owner = Owner(self._folder.owner_path)
        owner.acquire()
        family = Family.of_run(self._folder.path)
        family.others = set(processes_below(os.getpid()))  # a program that runs us may have children of its own
        try:
            self._require_journal()
            self._end_left_over(family)
            self._remove_mount_points()
            self._killed_turns = close_unfinished(self._folder)
            Questions(self._folder.path).close_words()
            self._folder.write_record(self._record)
            write_state(self._folder, self._state)
            return self._work(family)
        finally:
            family.end()
            self._remove_mount_points()
            owner.release()

    def _end_left_over(self, family: Family) -> None:
        if left := family.end():
            self._notes.append(f"an earlier session had left {left} of its processes running; they were ended")

    def _remove_mount_points(self) -> None:
        """Codex's sandbox leaves empty folders in the workspace when a command of it is cut short (measured)."""
        for name in self._record["absent_at_start"]:
            with contextlib.suppress(OSError):  # not there, or not empty: then it is someone's
                (self._definitions.workspace / name).rmdir()

    def _require_journal(self) -> None:
        """A run with turns has a journal; without it they would all be paid for again."""
        path = self._folder.journal_path
        if self._definitions.options.database_url or (path.exists() and path.stat().st_size):
            return
        if any(list_turns(self._folder)):
            raise StorageError(
                f"the journal {path} is gone, and with it the account of what was done",
                "Restore it from a copy, or start another run.",
            )

    def _work(self, family: Family) -> RunReport:
        events = EventLog(self._folder.events_path, self._folder.redact)
        states = States(self._folder, events)  # the first to be told
        if self._on_event is not None:
            events.subscribe(self._on_event)
        try:
            with stop_signals(family.kill) as stop:
                ending = self._run(events, states, stop)
            report = self._close(ending)
            self._tell_last_state(states, report)
            events.publish(self._ended(report))
        finally:
            events.close()
        return report

    def _tell_last_state(self, states: States, report: RunReport) -> None:
        """A run that is parked or was interrupted stays in the state it is in."""
        declared = self._definitions.flow.states
        if declared is not None and report.exit_code in ENDED:
            states.move(RUN, "", declared.failure if report.exit_code else declared.success, report.reason)

    def _run(self, events: EventLog, states: States, stop: Stop) -> Ending:
        """The ending, whatever happens."""
        events.publish(self._started())
        if self._definitions.flow.states is not None and not states.latest(RUN):
            states.move(RUN, "", self._definitions.flow.states.begin)
        for note in self._notes:
            events.publish(Warning(note))
        try:
            with live_parts(self._definitions, self._folder, events, self._clock) as parts:
                lent = replace(parts, ask_person=self._ask_person, killed_turns=self._killed_turns, states=states)
                return self._drive(lent, stop)
        except (Exception, KeyboardInterrupt) as error:
            return ending_for(error)

    def _drive(self, parts: RunResources, stop: Stop) -> Ending:
        # Here and not above: it takes a while, and the processes start meanwhile.
        from codex_multi_role.engine import DurableRun, Flows, begin, open_journal, sqlite_url

        flows = Flows(self._definitions.flows, cache(self._definitions.bound))
        journal = self._definitions.options.database_url or sqlite_url(self._folder.journal_path)
        with open_journal(journal, self._folder.run_id):
            stop.interrupts = False
            while True:
                durable = DurableRun(flows, self._state, parts)
                begin(self._folder.run_id, durable)
                ending = self._wait(durable.ending, parts, stop)
                if ending.outcome != ReviewWaiting.reason or not answered_meanwhile(parts):
                    break
                # An answer came while other work was being finished. It is recorded now, so this is repeated once a
                # question at most: the journal is replayed, and the processes stay.
                parts.waits_for.clear()
                self._state = self._first_state()
            parts.fleet.stop_soon()  # the processes end while the journal closes
            return ending

    def _wait(self, ending: Future[Ending], parts: RunResources, stop: Stop) -> Ending:
        cancellations = Cancellations(self._folder.path)
        while not stop.asked:  # every step of the run has its own deadline, but a person at the terminal
            for unit, stopping in list(parts.at_work.items()):
                if not stopping.is_set() and cancellations.find(unit) is not None:
                    stopping.set()
            with contextlib.suppress(FutureTimeoutError):
                return ending.result(LOOK_SECONDS)
        parts.stopping.set()
        parts.fleet.cancel()
        stop.told()
        with contextlib.suppress(FutureTimeoutError):
            ended = ending.result(STOP_SECONDS)
            if not (stop.in_a_hurry and ended.status == RoleFailed.status):  # whose programs were killed must fail
                return ended
        return ending_for(RunInterrupted())

    def _close(self, ending: Ending) -> RunReport:
        """Write the final state, then say how it ended."""
        totals = self._totals()
        self._record |= {
            "status": ending.status,
            "outcome": ending.outcome,
            "reason": ending.reason,
            "exit_code": ending.exit_code,
            "ended_at": now(),
            "resets_at": ending.resets_at or None,
            "totals": totals,
        }
        if ending.details:
            write_text(self._folder.path / "traceback.txt", self._folder.redact(ending.details))
        write_state(self._folder, self._state)
        self._folder.write_record(self._record)
        return RunReport(
            run_id=self._folder.run_id,
            folder=self._folder.path,
            status=ending.status,
            outcome=ending.outcome,
            reason=ending.reason,
            exit_code=ending.exit_code,
            hint=ending.hint,
            totals=totals,
        )

    def _first_record(self, catalog_file: str) -> dict[str, Any]:
        definitions, options = self._definitions, self._definitions.options
        earlier = self._earlier or {}
        absent = [name for name in MOUNT_POINTS if not os.path.lexists(definitions.workspace / name)]
        return {
            "run_id": self._folder.run_id,
            "goal": options.goal,
            "flow": definitions.flow.name,
            "inputs": dict(definitions.inputs),
            "status": "running",
            "outcome": "",
            "reason": "",
            "exit_code": None,
            "forked_from": self._forked_from,
            "started_at": earlier.get("started_at") or now(),
            "resumed_at": [*earlier.get("resumed_at", []), now()] if earlier else [],
            "ended_at": None,
            "resets_at": None,
            "versions": {"codex_multi_role": __version__, "python": platform.python_version()},
            "workspace": str(definitions.workspace),
            "absent_at_start": earlier.get("absent_at_start", absent),
            "playbook": definitions.playbook.name if definitions.playbook else None,
            "playbook_file": definitions.playbook.source.name if definitions.playbook else None,
            "catalog_file": catalog_file,
            "options": options.as_record(),
            "totals": earlier.get("totals", {}),
        }

    def _worked_before(self) -> float:
        """The seconds of earlier sessions. One that was killed is known to have lasted up to its latest turn."""
        totals = (self._earlier or {}).get("totals", {})
        turns = [float(turn.get("worked_seconds", 0.0)) for _, turn in own_turns(self._folder)]
        return max([float(totals.get("seconds", 0.0)), *turns])

    def _totals(self) -> dict[str, float]:
        turns = [turn for _, turn in own_turns(self._folder)]
        return {
            "turns": len(turns),
            "repairs": sum(turn.get("repair_of") is not None for turn in turns),
            "input_tokens": sum(turn.get("tokens", {}).get("input", 0) for turn in turns),
            "output_tokens": sum(turn.get("tokens", {}).get("output", 0) for turn in turns),
            "seconds": round(self._clock.seconds, 3),
        }

    def _started(self) -> RunStarted:
        definitions = self._definitions
        return RunStarted(
            run_id=self._folder.run_id,
            goal=definitions.options.goal,
            flow=definitions.flow.name,
            cycles=definitions.options.cycles,
            roles=[role.name for role in definitions.roles],
            workspace=str(definitions.workspace),
            folder=str(self._folder.path),
            playbook=self._record["playbook"],
            resumed=self._earlier is not None,
        )

    def _ended(self, report: RunReport) -> RunEnded:
        return RunEnded(
            status=report.status,
            outcome=report.outcome,
            reason=report.reason,
            exit_code=report.exit_code,
            totals=dict(report.totals),
            folder=str(report.folder),
        )
