"""One process's work on one run of a queue: restore it, work on it, save each step, record how it ended."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import codex_multi_role.lifecycle.running as running
from codex_multi_role.catalog.step_spec import PLACE_ENDED
from codex_multi_role.errors import CodexMultiRoleError, ExitCode, RunInterrupted, RunNotFound, StorageError, UsageError
from codex_multi_role.extensions.machines.journal.database_url import files_of_database
from codex_multi_role.extensions.machines.journal.run_queue import QueuedJournal
from codex_multi_role.extensions.machines.store.restoring import fill_workspace, restore_run
from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.store import Store, StoreUnwritable
from codex_multi_role.extensions.machines.store.workspace_sources import WorkspaceSource, make_workspace
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.messages import PAUSE, STOP, receive
from codex_multi_role.extensions.machines.workers.queued_runs import AttemptOver, QueuedRun, QueuedRuns, RunState
from codex_multi_role.extensions.machines.workers.submission import (
    OF_THIS_MACHINE,
    require_of_no_machine,
    require_portable,
    unpack_definitions,
)
from codex_multi_role.lifecycle.placement import Placement
from codex_multi_role.lifecycle.stopping import request_stop
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunOptions, RunReport
from codex_multi_role.workspace.manifest import Manifest
from codex_multi_role.workspace.worktrees import Trees

if TYPE_CHECKING:
    from codex_multi_role.option_keywords import ResumeKeywords

JOIN_SECONDS = 120.0
"""How long the last look may take; the store and the database have deadlines of their own."""
STORE_SECONDS = 600.0
"""How long a finished turn waits in this process until the store can be written again."""
HOLD_SECONDS = 30.0
"""How long a run is held if its store cannot be written, before another process tries."""
PAUSE_SECONDS = 2.0
LOOK_SECONDS = 1.0
"""How often a run process receives messages, and saves new events for those who watch."""


class RunAttempt:
    """The work of this process on ``run``, in folders of its own below ``folder``, until it ends or is ``draining``."""

    def __init__(
        self,
        database: Database,
        queued: QueuedRuns,
        store: Store,
        run: QueuedRun,
        folder: Path,
        draining: threading.Event,
        report: Callable[..., None],
    ) -> None:
        self._draining, self._report = draining, report
        self._database, self._queued, self._store, self._run = database, queued, store, run
        self._of_workers = (folder.resolve(), *filter(None, [store.folder]), *files_of_database(database.url))
        self._runs_dir = folder / "runs"
        self._workspace = folder / "workspaces" / run.run_id
        self._definitions = folder / "definitions" / run.run_id
        self._folder = RunFolder(self._runs_dir / run.run_id)
        self._saver: RunSaver
        self._has_saved = bool(run.manifest)
        self._saved_events = 0
        self._requested: set[str] = set()
        self._problem = ""

    def work(self, journal: QueuedJournal) -> str:
        """Work on the run until it ends, parks or is interrupted; returns what came of it, in words.

        If the store cannot be written, nothing is started, and the run is held: what a turn brings could not be saved.
        Raises `AttemptOver` if another worker took the run, `StorageError` if its end cannot be recorded.
        """
        placement = Placement(
            journal=lambda: nullcontext(journal.begin),
            save=self._save,
            draining=self._draining,
            begin=self._begin,
            off_limits=self._of_workers,
        )
        if self._run.request.parent:
            return self._refused(UsageError(f"this is an item of run {self._run.request.parent}: {PLACE_ENDED}"))
        try:
            self._store.require_room()
            earlier = self._run.manifest or ""
            self._saver = RunSaver(self._store, self._folder, self._run.attempt, earlier, self._publish)
            with self._following():
                report = self._resumed(placement) if self._run.manifest else self._started(placement)
            self._save_end(report)
        except StoreUnwritable as error:
            return self._held(error)
        except AttemptOver:
            raise
        except StorageError as error:
            return self._given_back(error)
        except CodexMultiRoleError as error:
            return self._refused(error)
        return self._record(report)

    def _started(self, placement: Placement) -> RunReport:
        self._remove_folders()  # of an attempt that ended before it saved anything
        workspace = self._make_workspace()
        catalog, playbook = unpack_definitions(self._run.request.definitions, self._store, self._definitions)
        own = {"roles": catalog, "playbook": str(playbook) if playbook else None}
        places = {"workspace": workspace, "runs_dir": self._runs_dir, "run_id": self._run.run_id}
        require_of_no_machine(self._run.request.options)  # whoever wrote the row
        given = {name: each for name, each in self._run.request.options.items() if name not in OF_THIS_MACHINE}
        options = {**given, **own, **places, "database_url": self._database.url}
        return running.run(RunOptions.from_record(options), placement=placement)

    def _begin(self, folder: RunFolder) -> None:
        """Copies stay in the worker's folder, which is in no project, and is removed as a whole."""
        Manifest(folder.worktrees_path, folder.run_id).keep_files_here()

    def _remove_folders(self) -> None:
        for place in (self._folder.path, self._workspace, self._definitions):
            shutil.rmtree(place, ignore_errors=True)

    def _resumed(self, placement: Placement) -> RunReport:
        saved = restore_run(self._store, self._run.manifest or "", self._folder.path)
        require_of_no_machine(self._folder.record()["options"])
        require_portable(self._run.request.changes)
        shutil.rmtree(self._workspace, ignore_errors=True)
        workspace = self._make_workspace()
        fill_workspace(saved, self._folder, workspace)
        self._requested |= receive(self._database, self._folder)
        if STOP in self._requested:  # while its previous worker was dead
            raise RunInterrupted
        changes = cast("ResumeKeywords", {**self._run.request.changes, "workspace": workspace})
        return running.resume(self._run.run_id, runs_dir=self._runs_dir, changes=changes, placement=placement)

    def _make_workspace(self) -> Path:
        """A new clone; returns the workspace in it."""
        source = WorkspaceSource.model_validate(self._run.request.workspace)
        return make_workspace(source, self._store, self._workspace)

    def _save(self, take_trees: Callable[[], Trees] | None = None) -> None:
        """Save the run as it is. What a turn brought is not lost while the store cannot be written, but saved later."""
        end = time.monotonic() + STORE_SECONDS
        while True:
            try:
                return self._save_now(take_trees)
            except StoreUnwritable as error:
                if time.monotonic() > end:
                    raise
                self._explain(error)
            time.sleep(PAUSE_SECONDS)

    def _save_now(self, take_trees: Callable[[], Trees] | None = None) -> None:
        """Save the run as it is; from then on, this state is the one that others see and continue from."""
        self._saved_events = self._event_bytes
        self._saver.save(take_trees)

    def _save_end(self, report: RunReport) -> None:
        """Save the end of the run. An interrupted one is continued from the last saved step anyway."""
        try:
            self._save_now()
        except StoreUnwritable:
            if report.exit_code != ExitCode.INTERRUPTED:
                raise

    def _explain(self, error: StorageError) -> None:
        """Tell the worker, and those who look at the run, what the run waits for."""
        problem = _as_text(error)
        if problem != self._problem:
            self._queued.save(self._run, why=problem)
            self._report(problem=problem)
            self._problem = problem

    def _publish(self, manifest: str) -> None:
        self._queued.save(self._run, manifest=manifest, record=self._folder.record(), why="")
        self._problem = ""
        self._has_saved = True

    @property
    def _event_bytes(self) -> int:
        path = self._folder.events_path
        return path.stat().st_size if path.exists() else 0

    @contextmanager
    def _following(self) -> Iterator[None]:
        """Receive messages during the block, and save new events; a run that was taken over stops."""
        over = threading.Event()
        thread = threading.Thread(target=self._follow, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(JOIN_SECONDS)

    def _follow(self, over: threading.Event) -> None:
        passed_on = set[str]()
        while not over.wait(LOOK_SECONDS):  # waits: for the run, ended by its end
            if not self._folder.record_path.exists():
                continue
            try:
                self._requested |= receive(self._database, self._folder)
                if self._has_saved and self._event_bytes != self._saved_events:
                    self._save_now()
            except AttemptOver:
                over.set()
                os.kill(os.getpid(), signal.SIGTERM)
            except (StorageError, RunNotFound):  # the next step reports it, if it lasts so long
                continue
            for kind in sorted(self._requested - passed_on):  # a stop after a pause
                with suppress(UsageError):  # the run does not work yet, or no longer
                    request_stop(self._folder, pauses=kind == PAUSE)
                    passed_on.add(kind)

    def _record(self, report: RunReport) -> str:
        """Record how the session ended. Raises `AttemptOver`, `StorageError`."""
        code = ExitCode(report.exit_code)
        if code is ExitCode.INTERRUPTED and STOP not in self._requested:
            self._database.patiently(lambda: self._queued.enqueue_again(self._run, "its worker was drained"))
            return "given back"
        if report.outcome == StorageError.reason:
            return self._given_back(StorageError(report.reason, report.hint))
        state = RunState.PARKED if code.is_parked else RunState.ENDED
        resets_at = self._folder.record().get("resets_at")
        resumes_at = datetime.fromisoformat(resets_at).timestamp() if resets_at else None
        self._queued.save(self._run, state=state, why=report.reason, exit_code=int(code), resumes_at=resumes_at)
        self._remove_folders()  # the store has it all
        return f"{report.outcome}: {report.reason}"

    def _refused(self, error: CodexMultiRoleError) -> str:
        """Record that the run could not start: its goal, team or repository is wrong."""
        problem = _as_text(error)
        self._queued.save(self._run, state=RunState.ENDED, why=problem, exit_code=int(error.exit_code))
        return f"could not start: {problem}"

    def _given_back(self, error: StorageError) -> str:
        """Let another process try, a few times: it may have more luck, such as on a disk that is not full."""
        self._queued.enqueue_again(self._run, _as_text(error), crashed=True)
        return f"given back: {error}"

    def _held(self, error: StorageError) -> str:
        """Let the run wait until its store may be writable again."""
        self._queued.hold(self._run, _as_text(error), HOLD_SECONDS)
        return f"held for {HOLD_SECONDS:g} s: {error}"


def _as_text(error: CodexMultiRoleError) -> str:
    return f"{error}. {error.hint}".removesuffix(". ")
