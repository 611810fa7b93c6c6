"""One process's work on a run, from taking ownership to writing the last state, however it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from codex_multi_role.errors import (
    CodexMultiRoleError,
    Ending,
    ExitCode,
    ReviewWaiting,
    RoleFailed,
    RunInterrupted,
    SetupFailed,
    StorageError,
    ending_for,
)
from codex_multi_role.flow import FlowState, new_state
from codex_multi_role.host.processes import Family
from codex_multi_role.lifecycle.assembly import live_parts
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.lifecycle.kept_definitions import keep_definitions
from codex_multi_role.lifecycle.live_roles import LiveRoles, named_keys
from codex_multi_role.lifecycle.model_providers import sources_of
from codex_multi_role.lifecycle.placement import Placement, is_elsewhere, journals_for
from codex_multi_role.lifecycle.preparing import differences, keep_worktree, prepare_first
from codex_multi_role.lifecycle.process_guard import end_earlier_guard, guarded
from codex_multi_role.lifecycle.run_record import RunRecord, ended, write_state
from codex_multi_role.lifecycle.run_result import changed_files, run_result
from codex_multi_role.lifecycle.steering import Steering
from codex_multi_role.lifecycle.stopping import Stop, stoppable
from codex_multi_role.reading.json_types import Json
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
)
from codex_multi_role.run_folder.events import FlowsReloaded, RunForked, Warning
from codex_multi_role.run_folder.folder import RELOADED, new_numbered
from codex_multi_role.run_folder.owner import StopRequests
from codex_multi_role.run_folder.states import RUN, States
from codex_multi_role.run_options import RunReport, bring_up_to_date
from codex_multi_role.steps import RunResources, RunServices
from codex_multi_role.steps.review import answered_meanwhile
from codex_multi_role.steps.work_clock import WorkClock
from codex_multi_role.workspace import occupied
from codex_multi_role.workspace.manifest import Manifest, place_around

if TYPE_CHECKING:
    from codex_multi_role.engine.durable_run import Begin

STOP_SECONDS = 20.0
LOOK_SECONDS = 0.2
"""Interval at which a run checks whether it must stop."""
OnEvent = Callable[[Record], None]


@dataclass
class Session:
    """Works on one run in this process. ``earlier``: the previous session's ``run.json`` if the run is resumed.

    ``forked_from`` (run_id, step, visit): the origin of a fork's first session. ``note``: what the person who forked
    or resumed should know. ``placement``: set if a worker's process works on the run.
    """

    definitions: Definitions
    folder: RunFolder
    catalog_file: str
    earlier: Mapping[str, Any] | None = None
    forked_from: Mapping[str, Any] | None = None
    note: str = ""
    placement: Placement | None = None

    def __post_init__(self) -> None:
        self._placement = self.placement or Placement()
        self._notes = [self.note] if self.note and not self.forked_from else []
        self._notes += bring_up_to_date(self.earlier) if self.earlier else []
        self._record = RunRecord(self.definitions, self.folder, self.catalog_file, self.earlier, self.forked_from)
        if wider := self._record.wider_rights:
            self._notes.append(
                f"{named_keys(wider)}: has more permissions from now on, because its file was changed during the run"
            )
        self._clock = WorkClock(self._record.worked_before)
        self._killed_turns = 0
        self._ending: Future[Ending] | None = None
        self._state = self._first_state()
        self._edited_flows: list[str] = []
        self._last_snapshot = ""
        self._found: Json = {"result": None, "files": None, "left_by_tests": None}

    def _first_state(self) -> FlowState:
        options = self.definitions.options
        return new_state(self.definitions.flow, options.goal, self.definitions.inputs, options.cycles)

    def work(
        self,
        on_event: OnEvent | None = None,
        ask_person: AskPerson | None = None,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> RunReport:
        """Start or resume the run, write its state, report. Raises `RunBusy`, `StorageError`, `UsageError`.

        ``meanwhile`` is called as soon as this thread has nothing else to do than to wait for the others.
        """
        self._on_event, self._ask_person, self._meanwhile = on_event, ask_person, meanwhile
        for source in sources_of(self.definitions.options.added).values():  # extensions may answer first
            self._ask_person = source.person(self.definitions, self.folder, self._ask_person)
        with ExitStack() as stack:
            owner = Owner(self.folder.owner_path)
            owner.acquire()  # waits: for nothing: it locks at once or raises RunBusy
            stack.callback(self._release, owner)
            stack.callback(self._remove_mount_points)
            if self.earlier is None:
                self._placement.begin(self.folder)
            family = self._family(stack, owner.abandoned)
            if stack.enter_context(occupied(self.definitions.workspace)):
                self._notes.append(
                    f"another run is working in {self.definitions.workspace}: they may overwrite each other's files "
                    "and mix up changes and tests; give each run its own workspace (--workspace)"
                )
            self._occupy_copies(stack)
            if self.definitions.options.place.worktree and self.earlier is None:
                self._notes += differences(self.definitions, self.folder)
            if self.earlier is None:
                self._notes += self.definitions.warnings
            self._require_journal()
            if self.earlier is not None:
                self._keep_other_files(self.earlier)
            self._remove_mount_points()
            self._killed_turns = close_unfinished(self.folder)
            if self._killed_turns:
                self._record.assume_absent_since_kill()
            Questions(self.folder.path).close_words()
            self._record.note_uncommitted()
            self._record.write()
            write_state(self.folder, self._state)
            return self._work(family, owner.session)

    def _occupy_copies(self, stack: ExitStack) -> None:
        """So that nobody who cannot see the run folder takes them for abandoned."""
        copies = Manifest(self.folder.worktrees_path)
        if self.definitions.isolates:
            copies.make_place()
        for place in {copies.place, place_around(self.definitions.workspace) or copies.place}:
            stack.enter_context(occupied(place))

    def _keep_other_files(self, earlier: Mapping[str, Any]) -> None:
        """Copy YAML that replaces the run's own copies from now on and fits its past; the next session uses it as well.

        Raises `UsageError` if it does not fit.
        """
        from codex_multi_role.lifecycle import resuming  # lazy: most runs are not resumed

        resuming.require_same_past(self.definitions, self.folder, earlier)
        if resuming.uses_other_files(self.definitions, self.folder):
            self._edited_flows = resuming.edited_since(self.definitions, self.folder, earlier)
            target = new_numbered(self.folder.catalog_path, RELOADED)
            self._record.reloaded(keep_definitions(self.definitions, self.folder, target), {})

    def _release(self, owner: Owner) -> None:
        if self._ending is not None and not self._ending.done():
            owner.keep()
        else:
            owner.release()

    def _family(self, stack: ExitStack, killed_before: bool) -> Family:
        """The run's processes: those of an earlier session end now, this session's with ``stack`` or this process."""
        folder = self.folder.path
        family = Family.of_run(folder)
        stack.enter_context(family.at_work())
        if killed_before:
            end_earlier_guard(folder)
        if killed_before or self.earlier is not None:
            self._end_left_over(family)
        family.spared.add(stack.enter_context(guarded(folder)))
        stack.callback(family.end)
        return family

    def _end_left_over(self, family: Family) -> None:
        if left := family.end():
            self._notes.append(f"an earlier process left {left} of its processes running; they were stopped")

    def _remove_mount_points(self) -> None:
        """Remove the empty folders that Codex's sandbox leaves behind if its command is interrupted (measured)."""
        for name in self._record.absent_at_start:
            with contextlib.suppress(OSError):  # missing, or not empty and so somebody's
                (self.definitions.workspace / name).rmdir()

    def _require_journal(self) -> None:
        """Raise `StorageError` if a run with turns has no journal, because all turns would be paid for again."""
        path = self.folder.journal_path
        if is_elsewhere(self.definitions.options) or (path.exists() and path.stat().st_size):
            return
        if any(list_turns(self.folder)):
            raise StorageError(
                f"the journal {path} is missing, and with it the record of finished work",
                "Restore it from a copy, or start another run.",
            )

    def _work(self, family: Family, session: str) -> RunReport:
        events = EventLog(self.folder.events_path, self.folder.redact)
        states = States(self.folder, events)
        if self._on_event is not None:
            events.subscribe(self._on_event)
        try:
            with stoppable(family.kill, lambda: StopRequests(self.folder.path).find(session)) as stop:
                ending = stop.explain(self._run(events, states, stop))
            write_state(self.folder, self._state)
            report = self._closed(events, ending)
            self._publish_last_state(states, report)
            if self.definitions.options.place.worktree:
                keep_worktree(self.folder, report, self._last_snapshot)
            events.publish(ended(report, self._last_snapshot))
        finally:
            events.close()
        return report

    def _closed(self, events: EventLog, ending: Ending) -> RunReport:
        """Record how the run ended. What answered in place of the models may find that it has failed."""
        report = self._record.close(ending, self._clock.seconds, self._found)
        try:
            for source in sources_of(self.definitions.options.added).values():
                for note in source.close(self.definitions, self.folder, report):
                    events.publish(Warning(note))
        except CodexMultiRoleError as error:
            report = self._record.close(ending_for(error), self._clock.seconds, self._found)
        return report

    def _publish_last_state(self, states: States, report: RunReport) -> None:
        """Publish the final state. A run that is parked or was interrupted stays in its current state."""
        declared = self.definitions.flow.states
        if declared is not None and report.exit_code <= ExitCode.FAILED:
            states.move(RUN, "", declared.failure if report.exit_code else declared.success, report.reason)

    def _run(self, events: EventLog, states: States, stop: Stop) -> Ending:
        """Run to the end; returns the ending, also of an error."""
        if self.earlier is not None:
            from codex_multi_role.run_folder.states import unpublished_ends  # lazy: most runs are not resumed

            events.publish(*unpublished_ends(self.folder))
        events.publish(self._record.started())
        if self.definitions.flow.states is not None and not states.latest(RUN):
            states.move(RUN, "", self.definitions.flow.states.begin)
        if self._edited_flows:
            events.publish(FlowsReloaded(self._edited_flows, self._record.catalog_file))
        if self.note and self.forked_from:
            events.publish(RunForked(self.note))
        for note in self._notes:
            events.publish(Warning(note))
        try:
            definitions, record = self.definitions, self._record
            self._prepare(events, stop)
            source, kept = record.roles_source, record.catalog_file
            roles = LiveRoles(definitions, source, kept, self.folder, events, record.reloaded)
            catalog, folder = (lambda: roles.catalog), (lambda: roles.kept_folder)
            steering = self._steering
            with live_parts(definitions, self.folder, events, self._clock, catalog, folder, steering) as parts:
                roles.renew = lambda role: parts.services.fleet.renew(
                    lambda each: definitions.catalog.role_of(each) == role
                )
                save = partial(self._placement.save, parts.trees)
                services = replace(parts.services, ask_person=self._ask_person, states=states, save=save)
                draining = self._placement.draining
                progress = replace(
                    parts.progress, killed_turns=self._killed_turns, draining=draining, pausing=stop.pausing
                )
                with roles.following():
                    ending = self._drive(replace(parts, services=services, progress=progress), roles, stop)
                if not stop.in_a_hurry:
                    self._gather_result(parts)
            if ending.exit_code == ExitCode.GOAL_REACHED:
                _remove_merged_copies(parts.services)
            return ending
        except (Exception, KeyboardInterrupt) as error:
            return ending_for(error)

    @property
    def _steering(self) -> Steering:
        steering = self._record.steering
        return replace(steering, existing=(*steering.existing, *self._placement.off_limits))

    def _prepare(self, events: EventLog, stop: Stop) -> None:
        """Prepare the workspace before the first turn. Raises `SetupFailed`, `UsageError`, `StorageError`."""
        if not self.definitions.needs:
            return
        try:
            for warning in prepare_first(self.definitions, self.folder, self._steering, stop.requested):
                events.publish(Warning(warning))
        except SetupFailed:
            stop.require_going_on()
            raise
        if not any(list_turns(self.folder)):
            self._record.prepared()

    def _gather_result(self, parts: RunResources) -> None:
        """Compare the workspace with the run's first snapshot, and fill in the result that the flow declares."""
        if self._ending is None or not self._ending.done():
            return
        with contextlib.suppress(CodexMultiRoleError):  # the run ends as it did, without files
            self._last_snapshot = parts.snapshots.take() if parts.settings.changes_workspace else ""
        self._found |= changed_files(self.folder, parts.snapshots, self._last_snapshot)
        files = self._found["files"]
        self._found["result"] = run_result(self.definitions.flow, self._state, self.folder, parts.workspace, files)

    def _drive(self, parts: RunResources, roles: LiveRoles, stop: Stop) -> Ending:
        from codex_multi_role.engine import CallableFlows, DurableRun  # lazy: the processes start meanwhile
        from codex_multi_role.steps.test_runs import beside_baseline  # as above

        flows = CallableFlows(self.definitions.flows, cache(self.definitions.bound))
        with self._journal(parts) as begin, ExitStack() as stack:
            stop.interrupts = False
            stop.require_going_on()
            parts = stack.enter_context(beside_baseline(parts))
            while True:  # waits: for questions that were answered meanwhile, once more for each
                durable = DurableRun(flows, self._state, parts)
                begin(durable)
                self._ending = durable.ending  # not earlier: a run that could not start keeps no lock
                self._meanwhile()
                ending = self._wait(durable.ending, parts, stop)
                if self.placement or ending.outcome != ReviewWaiting.reason or not answered_meanwhile(parts):
                    break
                # An answer came while other work was finishing. It is recorded now, so this loop repeats at most once
                # per question. The journal is replayed, and the processes stay alive.
                parts.progress.waits_for.clear()
                self._state = self._first_state()
            roles.stop_soon()  # all this ends while the journal closes
            parts.services.fleet.stop_soon()
            return ending

    def _journal(self, parts: RunResources) -> AbstractContextManager[Begin]:
        if self._placement.journal is not None:
            return self._placement.journal()
        return journals_for(self.definitions.options).open(
            self.folder,
            lambda message: parts.services.events.publish(Warning(message)),
            parts.progress.stopping.is_set,
        )

    def _seconds_of_final_checks(self) -> float:
        """How long the checks of ``finally`` may take, which a stopped run still waits for."""
        longest = self.definitions.options.tests.test_seconds
        limits = [step.limits.seconds for step in self.definitions.flow.finally_]
        return sum(min(limit or longest, longest) for limit in limits)

    def _wait(self, ending: Future[Ending], parts: RunResources, stop: Stop) -> Ending:
        cancellations = Cancellations(self.folder.path)
        while not stop.asked:  # waits: for the steps, ended by their deadlines, or a person at the terminal
            for unit, stopping in parts.progress.running_items.copy().items():  # other threads add and remove items
                if not stopping.is_set() and cancellations.find(unit) is not None:
                    stopping.set()
            with contextlib.suppress(FutureTimeoutError):
                return ending.result(LOOK_SECONDS)
        parts.progress.stopping.set()
        parts.services.fleet.cancel()
        stop.announce()
        with contextlib.suppress(FutureTimeoutError):
            ended = ending.result(STOP_SECONDS + self._seconds_of_final_checks())
            if not (stop.in_a_hurry and ended.status == RoleFailed.status):  # killed programs must fail
                return ended
        return ending_for(RunInterrupted())


def _remove_merged_copies(services: RunServices) -> None:
    """After a success, when no process works in them any more."""
    try:
        services.worktrees.remove_merged()
    except CodexMultiRoleError as error:
        services.events.publish(Warning(f"merged copies of the workspace remain, and `gc` removes them: {error}"))
