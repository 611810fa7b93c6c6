"""The live parts of a run that its steps use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from codex_multi_role.catalog import RoleSpecCatalog
from codex_multi_role.checks.interpreter import Interpreter
from codex_multi_role.codex.fleet import Fleet
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import AskPerson, EventLog, RunFolder, TurnFolder
from codex_multi_role.run_folder.states import States
from codex_multi_role.steps.budget import Budget
from codex_multi_role.steps.cancellation_token import CancellationToken
from codex_multi_role.steps.work_clock import WorkClock
from codex_multi_role.workspace import ProtectedFiles, Snapshots, Workspace, Worktrees

if TYPE_CHECKING:
    from codex_multi_role.steps.unit import Unit

Work = Callable[[int], Json]
Recorder = Callable[[str, Work], Json]
"""Runs and records work once: ``record(name, work)`` returns what ``work`` returned, now or in an earlier process.

``work`` gets its journal position, which is the same whenever the work is repeated.
What ``work`` raises is not recorded: it ends the run, and a resumed run repeats the work.
"""


@dataclass(frozen=True)
class TestSettings:
    """``--run-tests``, ``--pytest-cmd``, ``--test-seconds``, and the Python that runs the tests."""

    __test__ = False

    enabled: bool
    pytest_cmd: str | None
    deadline_seconds: float
    python: Interpreter


@dataclass(frozen=True)
class RunResources:
    """One run's live parts. ``sandbox`` wraps a command; ``stopping`` is set once, when the run must stop.

    ``catalog_now`` returns the current roles, which may change while the run works.
    ``earlier_turns``: those of earlier sessions, by journal position.
    ``changes_workspace``: whether anything may. ``killed_turns``: how many the previous session left unfinished.
    ``running_instances``: those that take a turn now. ``copy``: the key of the copy it is `in_copy` of, or empty.
    ``steering_absent``: globs of files that steer a run and did not exist when it began.
    ``protect``: what the flow keeps every role from changing; ``first_protected``: its state when the run began.
    ``running_items``: the running items of fan-outs, by unit, each with its cancellation token.
    ``waits_for``: the keys of the questions for which the run must park.
    ``states`` receives changes of state; None if nothing is executed.
    ``observe`` gets every unit and may wrap it; only a rehearsal uses it.
    ``searches_web``: whether the role of that name has Codex's own web search.
    ``yes`` approves every review; ``ask_person`` asks the person who is present, None if nobody is.
    """

    goal: str
    catalog_now: Callable[[], RoleSpecCatalog]
    folder: RunFolder
    events: EventLog
    fleet: Fleet
    workspace: Workspace
    snapshots: Snapshots
    worktrees: Worktrees
    environment: Mapping[str, str]
    tests: TestSettings
    sandbox: Callable[[Sequence[str], Path], list[str]]
    budget: Budget
    clock: WorkClock
    repair_attempts: int
    run_model: str | None
    changes_workspace: bool
    earlier_turns: Mapping[int, TurnFolder] = field(default_factory=dict)
    killed_turns: int = 0
    protect: tuple[str, ...] = ()
    first_protected: str = ""
    steering_absent: tuple[str, ...] = ()
    searches_web: Callable[[str], bool] = lambda _: False
    yes: bool = False
    ask_person: AskPerson | None = None
    stopping: CancellationToken = field(default_factory=CancellationToken)
    running_instances: set[str] = field(default_factory=set)
    waits_for: set[str] = field(default_factory=set)
    running_items: dict[str, CancellationToken] = field(default_factory=dict)
    copy: str = ""
    states: States | None = None
    observe: Callable[[Unit], Unit] = lambda unit: unit
    workspace_lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def catalog(self) -> RoleSpecCatalog:
        return self.catalog_now()

    def in_copy(self, key: str, *, fresh: bool) -> RunResources:
        """The same run, working in the copy with that key instead of the workspace; without a key, the run itself.

        ``fresh``: create or reset the copy, because the next turn must not see what an interrupted one left.
        """
        if not key:
            return self
        if fresh:
            with self.workspace_lock:
                copy = self.worktrees.create(key)
        else:
            copy = self.worktrees.open(key)
        if fresh and self.protect:  # a copy lacks what git ignores
            ProtectedFiles(copy.snapshots, copy.workspace, self.protect).put_back(self.first_protected)
        return replace(self, workspace=copy.workspace, snapshots=copy.snapshots, copy=key)
