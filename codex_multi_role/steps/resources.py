"""The live parts of a run that its steps use."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

from codex_multi_role.catalog import RoleSpecCatalog
from codex_multi_role.catalog.prices import PriceList
from codex_multi_role.checks.interpreter import Interpreter
from codex_multi_role.codex.fleet import Fleet
from codex_multi_role.flow.contracts import NO_CONTRACTS, Contracts
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import AskPerson, EventLog, RunFolder, TurnFolder
from codex_multi_role.run_folder.events import Warning
from codex_multi_role.run_folder.states import States
from codex_multi_role.steps.baseline import Baseline
from codex_multi_role.steps.budget import Budget
from codex_multi_role.steps.cancellation_token import CancellationToken
from codex_multi_role.steps.observers import TurnObserver
from codex_multi_role.steps.work_clock import WorkClock
from codex_multi_role.workspace import ProtectedFiles, Snapshots, Workspace, Worktrees
from codex_multi_role.workspace.commands import Sandbox
from codex_multi_role.workspace.worktrees import Trees


@dataclass(eq=False)
class Stay:
    """``shared``: whether others that may write worked in the same workspace at any time during this stay."""

    may_write: bool
    shared: bool = False


class Stays:
    """The current stays, by workspace. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # waits: for memory only
        self._present: dict[Path, set[Stay]] = defaultdict(set)

    @contextmanager
    def at(self, workspace: Path, *, may_write: bool = True) -> Iterator[Stay]:
        """While the block runs, something works in ``workspace``."""
        stay = Stay(may_write)
        with self._lock:
            present = self._present[workspace]
            stay.shared = any(each.may_write for each in present)
            for each in present:
                each.shared |= may_write
            present.add(stay)
        try:
            yield stay
        finally:
            with self._lock:
                present.discard(stay)


@dataclass
class Work:
    """Work that is recorded at this ``place`` of the journal, the same whenever it is repeated, with its ``result``."""

    place: int
    is_due: bool = True
    result: Json = field(default_factory=dict)


Recorder = Callable[[str], AbstractContextManager[Work]]
"""Yields work of that name. If it is due, the block does it and sets its result, which is then recorded once.

After the block, the result is the recorded one, of this process or an earlier one. What the block raises is not
recorded: it ends the run, and a resumed run repeats the work.
"""


@dataclass(frozen=True)
class TestSettings:
    """``--run-tests``, ``--pytest-cmd``, ``--test-seconds``, and the Python that runs the tests.

    ``baseline``: whether they run before the first turn. ``allow_removed``: globs of tests that may be gone.
    """

    __test__ = False

    enabled: bool
    pytest_cmd: str | None
    deadline_seconds: float
    python: Interpreter
    baseline: bool = False
    allow_removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunSettings:
    """What applies to the whole session.

    ``changes_workspace``: whether anything may; ``only_reads``: whether no turn of the role of that name can.
    ``protect``: what the flow keeps every role from changing; ``first_protected``: its state at the start.
    ``steering_absent``: globs of files that steer a run and did not exist at its start, except ``steering_present``.
    ``searches_web``: whether the role of that name has Codex's own web search. ``yes`` approves every review.
    ``contracts``: what roles must answer.
    """

    goal: str
    tests: TestSettings
    repair_attempts: int
    run_model: str | None
    prices: PriceList
    changes_workspace: bool
    protect: tuple[str, ...] = ()
    first_protected: str = ""
    steering_absent: tuple[str, ...] = ()
    steering_present: frozenset[str] = frozenset()
    searches_web: Callable[[str], bool] = lambda _: False
    only_reads: Callable[[str], bool] = lambda _: False
    yes: bool = False
    contracts: Contracts = NO_CONTRACTS


@dataclass(frozen=True)
class RunServices:
    """The live parts that every step shares.

    ``catalog_now`` returns the current roles, which may change while the run works. ``sandbox`` wraps a command.
    ``ask_person`` asks the person who is present, None if nobody is. ``states`` receives changes of state; None if
    nothing is executed. ``save`` saves the run outside of this machine,
    before the journal records a step. ``observers``: those of a run
    that takes turns.
    """

    catalog_now: Callable[[], RoleSpecCatalog]
    folder: RunFolder
    events: EventLog
    fleet: Fleet
    worktrees: Worktrees
    environment: Mapping[str, str]
    sandbox: Sandbox
    budget: Budget
    clock: WorkClock
    baseline: Baseline
    ask_person: AskPerson | None = None
    states: States | None = None
    save: Callable[[], object] = lambda: None
    observers: Callable[[RunResources], Sequence[TurnObserver]] = lambda _: ()


@dataclass(frozen=True)
class RunProgress:
    """How far the run is; its sets and tokens change while it works, from several threads.

    ``earlier_turns``: those of earlier sessions, by journal position. ``killed_turns``: how many the previous session
    left unfinished. ``stopping`` is set once, when the run must stop; ``draining`` and ``pausing``, when it must stop
    as soon as the work in progress is done. ``running_instances``: those that take a turn now. ``running_items``: the
    running items of fan-outs, by unit, each with its cancellation token. ``waits_for``: the keys of the questions for
    which the run must park. ``workspace_lock`` is held while the workspace is changed.
    ``stays``: what works in the workspace and its copies now.
    """

    earlier_turns: Mapping[int, TurnFolder] = field(default_factory=dict)
    killed_turns: int = 0
    stopping: CancellationToken = field(default_factory=CancellationToken)
    draining: Event = field(default_factory=Event)
    pausing: Event = field(default_factory=Event)
    running_instances: set[str] = field(default_factory=set)
    running_items: dict[str, CancellationToken] = field(default_factory=dict)
    waits_for: set[str] = field(default_factory=set)
    workspace_lock: threading.Lock = field(default_factory=threading.Lock)
    stays: Stays = field(default_factory=Stays)


@dataclass(frozen=True)
class RunResources:
    """What a step works with: the run's settings, services and progress, and the workspace.

    ``copy``: the key of the copy of the workspace that this is `in_copy` of, or empty. ``within``: the key of the copy
    in which the called flow works, of which `in_copy` is used without a key.
    """

    settings: RunSettings
    services: RunServices
    progress: RunProgress
    workspace: Workspace
    snapshots: Snapshots
    copy: str = ""
    within: str = ""

    @property
    def catalog(self) -> RoleSpecCatalog:
        return self.services.catalog_now()

    def after_baseline(self) -> None:
        """Wait for the tests before the first change. Raises what they raised, and `RunInterrupted`."""
        self.services.baseline.wait(self.progress.stopping)

    def trees(self) -> Trees:
        """Snapshots of the workspace, if anything may change it, and of the copies in use."""
        own = self.snapshots.take() if self.settings.changes_workspace else ""
        return {"": own, **self.services.worktrees.trees()}

    def in_copy(self, key: str, *, fresh: bool) -> RunResources:
        """The same run, working in the copy with that key instead of the workspace; without a key, where it works.

        ``fresh``: create or reset the copy, because the next turn must not see what an interrupted one left.
        """
        if not key:  # several steps of a called flow share its copy, as they share the workspace
            return replace(self.in_copy(self.within, fresh=False), copy="") if self.within else self
        if fresh:
            with self.progress.workspace_lock:
                copy = self.services.worktrees.create(key)
        else:
            copy = self.services.worktrees.open(key)
        if fresh and self.settings.protect:  # a copy lacks what git ignores
            protected = ProtectedFiles(copy.snapshots, copy.workspace, self.settings.protect)
            protected.put_back(self.settings.first_protected)
        for warning in self.services.worktrees.prepare(key):  # a new copy, or the run has moved to another machine
            self.services.events.publish(Warning(warning))
        return replace(self, workspace=copy.workspace, snapshots=copy.snapshots, copy=key)
