"""Prepare a fork: its options, past, journal and workspace. A failure leaves nothing of it behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from codex_multi_role.catalog.flow_spec import step_place
from codex_multi_role.catalog.step_spec import ForEach
from codex_multi_role.codex.home import copy_threads
from codex_multi_role.engine.flow_walk import CallableFlows
from codex_multi_role.engine.rehearsal import rehearse
from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.flow import FlowState, items_of, name_of, needs_of, new_state
from codex_multi_role.lifecycle.assembly import idle_parts
from codex_multi_role.lifecycle.definitions import Definitions, load_definitions
from codex_multi_role.lifecycle.fork_workspace import ForkWorkspace
from codex_multi_role.lifecycle.kept_definitions import keep_definitions, remembered_options
from codex_multi_role.lifecycle.model_providers import sources_of
from codex_multi_role.lifecycle.placement import journals_for
from codex_multi_role.lifecycle.run_record import write_state
from codex_multi_role.lifecycle.session import Session
from codex_multi_role.option import Use
from codex_multi_role.reading.nearest import did_you_mean
from codex_multi_role.run_folder import (
    Beginning,
    Owner,
    RunEvent,
    RunFolder,
    beginnings,
    events_with_inherited,
    inherit,
    inherit_turn,
)
from codex_multi_role.run_folder.events import StepStarted
from codex_multi_role.run_folder.items import ItemResults, find_task
from codex_multi_role.run_folder.states import COMPLETED, FAILED, SKIPPED
from codex_multi_role.run_options import RunOptions, require_changeable


@dataclass(frozen=True)
class CreatedRun:
    """A run that was just created. ``undo``: what removes it again."""

    definitions: Definitions
    folder: RunFolder
    catalog_file: str
    undo: ExitStack

    def session(self, forked_from: Mapping[str, Any], note: str) -> Session:
        """The work on it. ``note``: what the person who forked should know."""
        return Session(self.definitions, self.folder, self.catalog_file, forked_from=forked_from, note=note)


def prepare_restart(parent: RunFolder, task: str, changes: Mapping[str, Any]) -> Session:
    """Create a run that does the ended ``task`` of ``parent`` again, and what needs it, and everything after that.

    Raises `UsageError`, `RunBusy` while a process works on the parent, `StorageError`.
    """
    again = Again.of(parent, task)
    owner = Owner(parent.owner_path)
    owner.acquire()  # waits: for nothing: it locks at once or raises RunBusy
    owner.release()
    return prepare_fork(parent, f"{again.step}:{again.visit}", changes, again)


def prepare_fork(
    parent: RunFolder, start: str | None, changes: Mapping[str, Any], again: Again | None = None
) -> Session:
    """Create a run that begins where ``start`` (``STEP[:VISIT]``) of ``parent`` began.

    ``again``: the item to do again while the others are kept. ``changes`` (`RunOptions` fields) override the parent's
    options. The parent may be live; it is not changed. Raises `UsageError`, also if the changes do not fit the past;
    `StorageError`.
    """
    record, events = parent.record(), events_with_inherited(parent)
    beginning = find_start(events, start, parent.run_id)
    options = _options(parent, record, changes)
    given = options.place.workspace if "workspace" in changes else None
    workspace = ForkWorkspace(Path(record.get("source_workspace", record["workspace"])), given, beginning.workspace)
    with created(options, workspace) as new:
        inheritance = _Inheritance(new.definitions, parent, new.folder, beginning, again)
        nested = inheritance.take(events, new.undo)
    visit = {"step": beginning.step, "visit": beginning.visit}
    place = workspace.in_words(new.definitions.workspace, nested)
    note = f"forked from {parent.run_id} before {beginning.step}:{beginning.visit}; {place}"
    if again is not None:
        visit["task"] = again.name
        note = f"{again.name} and the tasks that depend on it are redone; kept results: {inheritance.kept}. {note}"
    return new.session({"run_id": parent.run_id, **visit}, note)


@contextmanager
def created(options: RunOptions, workspace: ForkWorkspace) -> Iterator[CreatedRun]:
    """A new run that works in ``workspace``. If the block fails, nothing of it is left."""
    definitions = load_definitions(options.changed(workspace=workspace.check()))
    workspace.require_state(definitions.changes_workspace)
    with ExitStack() as undo:
        folder = RunFolder.create(options.place.runs_dir, options.place.run_id)
        undo.callback(shutil.rmtree, folder.path, ignore_errors=True)
        path = workspace.make(folder.run_id, undo)
        definitions = replace(definitions, workspace=path, options=definitions.options.changed(workspace=path))
        yield CreatedRun(definitions, folder, keep_definitions(definitions, folder), undo)
        undo.pop_all()


def _options(parent: RunFolder, record: Mapping[str, Any], changes: Mapping[str, Any]) -> RunOptions:
    require_changeable(changes, Use.FORK, "a fork keeps its run's", record["options"])
    remembered = remembered_options(parent, record, changes).changed(run_id=None, runs_dir=parent.path.parent)
    left = {name for name, source in sources_of(remembered.added).items() if not source.is_inherited}
    added = {name: value for name, value in remembered.added.items() if name not in left}
    remembered = replace(remembered, added=added).changed(worktree=False, branch=None)
    if changes.get("flow", remembered.flow) != remembered.flow:
        remembered = replace(remembered, inputs={})  # they belong to another flow
    return remembered.changed(**changes)


@dataclass
class _Inheritance:
    """What the fork takes over from its parent. ``kept``: how many results of other items."""

    definitions: Definitions
    parent: RunFolder
    fork: RunFolder
    beginning: Beginning
    again: Again | None
    kept: int = 0

    def take(self, events: Sequence[RunEvent], undo: ExitStack) -> list[str]:
        """Bring the fork to its beginning; returns the repositories that the workspace lacks."""
        definitions, options = self.definitions, self.definitions.options
        state = new_state(definitions.flow, options.goal, definitions.inputs, options.cycles)
        flows, past = CallableFlows(definitions.flows, cache(definitions.bound)), self._take_journal(undo)
        start = (self.beginning.step, self.beginning.visit, self.beginning.place)
        with idle_parts(definitions, self.fork) as parts:
            rehearse(flows, state, parts, past, start)
            inherit(self.parent, self.fork, events, self.beginning)
            if self.again is not None:
                self.kept = self.again.give(self.parent, self.fork, definitions, state)
            self._take_threads()
            write_state(self.fork, state)
            if not self.beginning.workspace:
                return []
            return parts.snapshots.fill_from(
                self.parent.snapshots_path, self.beginning.workspace, self._runs_in_workspace()
            )

    def _take_journal(self, undo: ExitStack) -> Mapping[int, Any]:
        """Copy the part of the parent's journal before the beginning; returns it."""
        journals = journals_for(self.definitions.options)
        undo.callback(_quietly, journals.forget, self.fork)
        return journals.fork(self.parent, self.fork, self.beginning.place)

    def _take_threads(self) -> None:
        for home in (self.parent.path / ".codex").glob("*"):
            if any(self.fork.role_path(home.name).glob("turn_*")):
                copy_threads(home, self.fork.codex_home(home.name))

    def _runs_in_workspace(self) -> list[str]:
        """The folder of runs, if it was in the workspace: a .gitignore can bring it into a snapshot."""
        workspace, runs = Path(self.parent.record()["workspace"]), self.parent.path.parent
        forbidden = self.parent.path if workspace.is_relative_to(runs) else runs
        return [str(forbidden.relative_to(workspace))] if forbidden.is_relative_to(workspace) else []


def _quietly(forget: Callable[[RunFolder], None], run: RunFolder) -> None:
    with suppress(StorageError):
        forget(run)


MOST_NAMED = 30


def find_start(events: Sequence[RunEvent], start: str | None, run_id: str) -> Beginning:
    """The visit that ``start`` names, by default the step's last one; ``events`` are all events of the run.

    Raises `UsageError` with a list of the existing visits.
    """
    known = beginnings(events)
    if not known:
        raise UsageError(f"the run {run_id} has not started any step to fork from", "Start another run.")
    if not start:
        raise UsageError("missing --from STEP[:VISIT]", f"Steps of this run: {_in_words(known)}.")
    step, _, visit = start.partition(":")
    visits = [each for each in known if each.step == step]
    if not visits:
        raise _no_such_step(step, known, events, run_id)
    found = [each for each in visits if not visit or str(each.visit) == visit]
    if not found:
        raise UsageError(f"the run {run_id} has not started {start}", f"It has started {_in_words(visits)}.")
    return found[-1]


def _no_such_step(step: str, known: Sequence[Beginning], events: Sequence[RunEvent], run_id: str) -> UsageError:
    calls = _calls_of(step, known, events)
    if calls:
        return UsageError(
            f'the step "{step}" is in a called flow; a fork starts with a step of the run\'s own flow',
            f"Fork before the call: --from {_in_words(calls)}.",
        )
    nearest = did_you_mean(step, {each.step for each in known})
    return UsageError(
        f'the run {run_id} has not started a step "{step}"{nearest}', f"It has started {_in_words(known)}."
    )


def _calls_of(step: str, known: Sequence[Beginning], events: Sequence[RunEvent]) -> list[Beginning]:
    """The visits in which a called flow entered the step, which events name ``<key of the call>/<step>``."""
    began = {each.position: each for each in known}
    found: dict[str, Beginning] = {}
    here = known[0]
    for position, event in enumerate(events):
        here = began.get(position, here)
        if isinstance(event, StepStarted) and event.step.endswith(f"/{step}"):
            found[here.key] = here
    return list(found.values())


def _in_words(known: Sequence[Beginning]) -> str:
    earlier = f"{len(known) - MOST_NAMED} more and " if len(known) > MOST_NAMED else ""
    return earlier + ", ".join(f"{each.step}:{each.visit}" for each in known[-MOST_NAMED:])


@dataclass(frozen=True)
class Again:
    """The item ``name`` of the fan-out ``step``:``visit``; ``unit`` is the item's unit key."""

    name: str
    unit: str
    step: str
    visit: str

    @classmethod
    def of(cls, parent: RunFolder, task: str) -> Again:
        """The ended task of a run called ``task``. Raises `UsageError`."""
        ended = find_task(parent, task)
        unit, state = str(ended["unit"]), ended["state"]
        if "/" in unit:
            outer = unit.partition("/")[0]
            raise UsageError(
                f"the task {task} is in a called flow; only tasks of the run's own flow can be redone",
                f"`{parent.command('fork', '--task', outer)}` if that is one.",
            )
        if state not in (COMPLETED, FAILED, SKIPPED):
            raise UsageError(
                f"the task {task} of the run {parent.run_id} is {state}: it has not ended",
                f"`{parent.command('resume')}` continues it.",
            )
        visit = unit.rpartition(".")[0]
        return cls(str(ended["item"]), unit, *visit.rsplit(".", 1))

    def give(self, parent: RunFolder, fork: RunFolder, definitions: Definitions, state: FlowState) -> int:
        """Give the fork, whose ``state`` is where the step begins, the results to keep; returns how many.

        The item, what needs it, and items with changed values are done again. Raises `UsageError`, `StorageError`.
        """
        step = definitions.flow.step(self.step)
        if step.isolate or (
            definitions.changes_workspace
            and (not step.asked or any(definitions.catalog.role(each).may_change_workspace for each in step.asked))
        ):
            raise UsageError(
                f"the tasks of {self.step} may change the workspace; the changes of the other tasks would be missing",
                f"`{parent.command('fork', '--from', f'{self.step}:{self.visit}')}` redoes all of them.",
            )
        context, place = state.context(), step_place(definitions.flow, definitions.flow.steps.index(step))
        fan_out = step.for_each or ForEach(items=[])
        items, _ = items_of(fan_out, context, place / "for_each")
        needs = needs_of(fan_out, items, context, place / "for_each")
        again = {index for index, item in enumerate(items) if name_of(item, index) == self.name}
        again |= {int(self.unit.rpartition(".")[2])} & set(range(len(items)))  # under its name in an earlier version
        for _ in items:
            again |= {index for index, needed in enumerate(needs) if again & {*needed}}
        return sum(self._give_one(parent, fork, index, item) for index, item in enumerate(items) if index not in again)

    def _give_one(self, parent: RunFolder, fork: RunFolder, index: int, value: object) -> bool:
        unit = f"{self.step}.{self.visit}.{index}"
        outcome = ItemResults(parent.path).find(unit, value)
        if outcome is None:
            return False
        ItemResults(fork.path, given=True).write(unit, value, outcome)
        if (turn := outcome["turn"]) is not None and turn["number"]:
            inherit_turn(parent, fork, turn["instance"], turn["number"])
        return True
