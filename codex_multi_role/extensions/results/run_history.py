"""The history that is in a run's folder: its states, and where git finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from codex_multi_role.errors import RunNotFound, UsageError
from codex_multi_role.extensions.results.workspace_states import (
    Change,
    CopyStates,
    Trees,
    WorkspaceStates,
    copy_of,
    states_of,
)
from codex_multi_role.host.programs import exclude_from_path
from codex_multi_role.presentation.recorded import runs_inside
from codex_multi_role.presentation.wording import named
from codex_multi_role.reading.nearest import no_such
from codex_multi_role.run_folder import RunFolder, TurnFolder, skim_events, skim_with_inherited
from codex_multi_role.run_folder.events import CopyMerged, FilesApplied, RunEnded, StepStarted, TurnEnded, TurnStarted
from codex_multi_role.run_options import RunPlace
from codex_multi_role.workspace.git import Git, RecordedGit
from codex_multi_role.workspace.manifest import MANIFEST, Copy, Manifest, repository_of, snapshots_of
from codex_multi_role.workspace.snapshots import left_by_tests
from codex_multi_role.workspace.trees import without

EVENTS = (StepStarted, TurnStarted, TurnEnded, FilesApplied, CopyMerged, RunEnded)
NOTHING_RECORDED = "Nothing that it started was allowed to change files, or an older version of this program ran it."
RUNS_DIR = RunPlace.runs_dir


class HasFolder(Protocol):
    """A run as an object, such as `Run` and `ReportedRun`."""

    @property
    def folder(self) -> Path: ...


AnyRun = HasFolder | RunFolder | str
"""A text is the id of a run, a unique prefix of it, or ``latest``."""


@dataclass(frozen=True)
class Result:
    """The changes from the state ``before`` to ``after``, both in ``git_dir``; ``name`` is for people."""

    name: str
    before: str
    after: str
    git_dir: Path


@dataclass(frozen=True)
class RunHistory:
    """The states of a run. Their trees are in ``git_dir``, those of a copy in the copy's own repository.

    ``copies``: of this run and, of a fork, those in which the runs before it did what it inherited. ``places``: the
    folder of the copies to which each belongs.
    """

    folder: RunFolder
    copies: dict[str, Copy]
    places: dict[str, Path]

    @property
    def git_dir(self) -> Path:
        return self.folder.snapshots_path

    @cached_property
    def states(self) -> WorkspaceStates:
        copies = {key: CopyStates(copy.base, copy.before, copy.after) for key, copy in self.copies.items()}
        return states_of(skim_with_inherited(self.folder, EVENTS), self._trees_of, copies)

    def git(self, change: Change | None = None) -> Git:
        """Git on the repository that has the states of ``change``, by default on the run's own."""
        copy = copy_of(change.unit, self.copies) if change else ""
        git_dir = self.snapshots_of(copy) if copy else self.git_dir
        return RecordedGit(git_dir.absolute(), self.folder.path.absolute())

    def turns(self, role: str | None = None, turn: int | None = None) -> list[Change]:
        """The changes of turns, those in copies as well: all, those of ``role``, or those of ``turn``.

        Raises `UsageError`.
        """
        inside = [change for key in self.states.in_copies for change in self.turns_in_copy(key)]
        all_turns = [change for change in (*self.states.changes, *inside) if change.role]
        wanted = [each for each in all_turns if role in (None, each.role) and turn in (None, each.turn)]
        if turn is not None and len(wanted) > 1:
            roles = ", ".join(sorted(each.role for each in wanted))
            raise UsageError(f"several roles have a turn {turn}: {roles}", "Name one of them with --role.")
        if not wanted and (role is not None or turn is not None):
            raise _no_such_turn(role, turn, all_turns)
        return wanted

    def tree(self, state: str) -> str:
        """``state`` without the folder of all runs, which a ``.gitignore`` of the workspace can re-include."""
        return without(self.git(), state, self._left_out)

    @cached_property
    def _left_out(self) -> list[str]:
        return runs_inside(self.folder)

    def tree_of(self, change: Change, state: str) -> str:
        """`tree` for a state of ``change``; copies are never made with that folder."""
        return state if copy_of(change.unit, self.copies) else self.tree(state)

    @property
    def left_out(self) -> str:
        """Name what only test runs changed, which is not part of the result; empty if that is nothing."""
        return named(left_by_tests(self.git(), self.states.first, self.states.last), 3)

    def repositories(self) -> list[Path]:
        """The git folders with the states, that of the run first; those of cancelled items are gone."""
        return [self.git_dir, *filter(Path.is_dir, map(self.snapshots_of, self.copies))]

    def turns_in_copy(self, key: str) -> tuple[Change, ...]:
        """The changes of turns in the copy ``key``, as long as their states exist."""
        return self.states.in_copies.get(key, ()) if self.snapshots_of(key).is_dir() else ()

    def snapshots_of(self, key: str) -> Path:
        """The git folder with the states of the copy ``key``, unless that was discarded."""
        return repository_of(self.places[key], key)

    def _trees_of(self, role: str, turn: int) -> Trees | None:
        return TurnFolder.of(self.folder, role, turn).changes()


def history_of(run: AnyRun, runs_dir: Path | str = RUNS_DIR) -> RunHistory:
    """Read which copies the run made; its states are derived when they are needed.

    From then on, no program is taken from where the run's models wrote. ``runs_dir``: where an id is looked up.
    Raises `RunNotFound`, `UsageError`, `StorageError`.
    """
    folder = _folder_of(run, Path(runs_dir))
    with suppress(RunNotFound):
        record = folder.record()
        for name in ("workspace", "source_workspace"):
            exclude_from_path(Path(str(record.get(name) or folder.path)))
    copies = _copies_in(folder)
    places = dict.fromkeys(copies, folder.worktrees_path.resolve())
    started = skim_events(folder.inherited_events_path, (TurnStarted,))
    units = {event.unit for event in started if isinstance(event, TurnStarted)}
    for earlier in _forked_from(folder):
        found = _copies_in(earlier)
        inherited = {copy_of(unit, found) for unit in units}
        for key, copy in found.items():
            if key in inherited and key not in copies:
                copies[key], places[key] = copy, earlier.worktrees_path.resolve()
    return RunHistory(folder, copies, places)


def _folder_of(run: AnyRun, runs_dir: Path) -> RunFolder:
    if isinstance(run, str):
        return RunFolder.find(runs_dir, run)
    if not isinstance(run, RunFolder) and not hasattr(run, "folder"):
        raise UsageError(f"run must be a recorded run or its id, not {run!r}", "`load_run` and `runs` find runs.")
    return run if isinstance(run, RunFolder) else RunFolder(run.folder)


def _copies_in(folder: RunFolder) -> dict[str, Copy]:
    exists = (folder.worktrees_path / MANIFEST).exists()
    return {copy.key: copy for copy in Manifest(folder.worktrees_path)} if exists else {}


def _forked_from(folder: RunFolder) -> Iterator[RunFolder]:
    """The runs from which a fork inherited its past, the latest first, as far as their folders exist."""
    seen = {""}
    while (origin := str((folder.record().get("forked_from") or {}).get("run_id", ""))) not in seen:
        seen.add(origin)
        folder = RunFolder(folder.path.parent / origin)
        if not folder.record_path.exists():
            return
        yield folder


def result_of(history: RunHistory, key: str | None = None) -> Result:
    """The result of the run, or of its copy ``key`` of the workspace. Raises `UsageError` if it was not recorded."""
    run_id = history.folder.run_id
    if key is None:
        states = history.states
        if not states.first or not history.git_dir.is_dir():
            raise UsageError(f"run {run_id} recorded no state of the workspace", NOTHING_RECORDED)
        first, last = map(history.tree, (states.first, states.last))
        return Result(f"run {run_id}", first, last, history.git_dir)
    if key not in history.copies:
        raise UsageError(*no_such("copy", key, history.copies))
    copy = history.copies[key]
    git_dir = history.snapshots_of(key)
    if not git_dir.is_dir():
        raise UsageError(f"the copy {key} of run {run_id} was removed", "Leave out --copy: the run has its changes.")
    after = copy.theirs or snapshots_of(Manifest(history.places[key]), copy).take()
    return Result(f"copy {key} of run {run_id}", copy.base, after, git_dir)


def _no_such_turn(role: str | None, turn: int | None, turns: Iterable[Change]) -> UsageError:
    roles = sorted({each.role for each in turns})
    if role is not None and role not in roles:
        message = f"role {role} changed no files"
        return UsageError(message, f"Roles that did: {', '.join(roles)}." if roles else "No role did.")
    numbers = ", ".join(str(each.turn) for each in turns if role in (None, each.role))
    return UsageError(f"turn {turn} changed no files", f"Turns that did: {numbers}." if numbers else "No turn did.")


MakeCommit = Callable[[Change, list[str]], str]
"""Makes the commit of a change on its parents, and returns it."""


def make_chain(history: RunHistory, start: str, commit: MakeCommit) -> str:
    """Make a commit of each change, from the commit ``start``, which has the first state; returns the last one."""
    tip, of_state = start, {history.states.first: start}
    for change in history.states.changes:
        tip = commit(change, [tip, *_side(history, change.copy, of_state, commit)])
        of_state[change.after] = tip
    return tip


def _side(history: RunHistory, key: str, of_state: dict[str, str], commit: MakeCommit) -> list[str]:
    """The last commit of the turns in a copy, which start from the state that it was made of."""
    start = of_state.get(history.copies[key].base) if key in history.copies else None
    if start is None:
        return []
    tip = start
    for change in history.turns_in_copy(key):
        tip = commit(change, [tip])
    return [tip] if tip != start else []
