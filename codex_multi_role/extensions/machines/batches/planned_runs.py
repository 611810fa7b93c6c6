"""From the goals of a file to the runs of a batch: one for each goal, or for each of its repositories."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codex_multi_role.errors import CodexMultiRoleError, DefinitionError, StorageError, UsageError
from codex_multi_role.extensions.machines.batches.goal_file import Goal, GoalProblems
from codex_multi_role.extensions.machines.batches.schedule import Entry
from codex_multi_role.host.user_cache import expanded
from codex_multi_role.lifecycle.own_records import outside_sandbox, require_said
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.run_options import RunOptions, limits_in
from codex_multi_role.workspace.repository import Repository

LONGEST_REPOSITORY_NAME = 40
Teams = dict[tuple[Path, str | None], Sequence[str]]
"""What the teams of goal lines may start, by roles and flow."""
MAX_WORKSPACES = 20
"""In how many workspaces uncommitted changes are counted."""


@dataclass(frozen=True)
class Defaults:
    """What a goal has if its line does not say otherwise.

    ``values``: `RunOptions` fields. ``given``: the names of those that somebody set. ``folder``: where paths in the
    goal file start.
    """

    values: Mapping[str, Any]
    given: frozenset[str]
    folder: Path


@dataclass(frozen=True)
class PlannedRun:
    """A run of a batch. ``id``: that of its goal, with the name of the repository if the goal has several.

    ``given``: the names of its options that somebody set. ``repository``: what to clone, or empty. ``share``: runs of
    the same batch with the same one work in the same folder, and therefore one after another.
    """

    id: str
    goal: Goal
    options: RunOptions
    given: frozenset[str]
    repository: str = ""
    share: str = ""

    @property
    def run_id(self) -> str:
        assert self.options.place.run_id is not None
        return self.options.place.run_id

    @property
    def entry(self) -> Entry:
        return Entry(self.id, self.goal.line.priority, self.share, limits_in(vars(self.options.limits)))


def plan_runs(goals: Sequence[Goal], defaults: Defaults, batch: str, workspaces: Path) -> list[PlannedRun]:
    """The runs for these goals, in order; clones get folders in ``workspaces``. Raises `DefinitionError`."""
    problems, planned, teams = GoalProblems(), list[PlannedRun](), Teams()
    for goal in goals:
        try:
            planned += _runs_of(goal, defaults, batch, workspaces, teams)
        except DefinitionError as error:
            problems.add(error)
        except UsageError as error:
            problems.add(goal.problem(str(error), error.hint))
    repeated = [name for name, count in Counter(run.id for run in planned).items() if count > 1]
    for run in planned:
        if run.id in repeated:
            problems.add(run.goal.problem(f'two runs would be called "{run.run_id}"', "Give one of them another id."))
    problems.raise_found()
    return _with_own_folders(planned)


def _runs_of(goal: Goal, defaults: Defaults, batch: str, workspaces: Path, teams: Teams) -> Iterator[PlannedRun]:
    line = goal.line
    own = line.options(defaults.folder)
    outside = {name: value for name, value in defaults.values.items() if name == "test_sandbox"}
    starts = _started_by({**defaults.values, **own}, defaults.values.get("roles"), teams)
    require_said("this line", {**outside, **own}, defaults.values, starts, own.get("roles", ""))
    values = {**defaults.values, **own}
    values["inputs"] = {**defaults.values.get("inputs", {}), **own.get("inputs", {})}
    values["config"] = (*defaults.values.get("config", ()), *own.get("config", ()))
    given = defaults.given | own.keys()
    if not line.clones:
        yield PlannedRun(goal.id, goal, RunOptions(**{**values, "run_id": f"{batch}-{goal.id}"}), given)
        return
    values |= {"worktree": False, "branch": None}
    for name, address in repository_names(line.clones).items():
        own_id = goal.id if line.repository else f"{goal.id}.{name}"
        run_id = f"{batch}-{own_id}"
        options = RunOptions(**{**values, "run_id": run_id, "workspace": workspaces / run_id})
        yield PlannedRun(own_id, goal, options, given - {"workspace", "worktree"}, _located(address, defaults.folder))


def _started_by(values: Mapping[str, Any], said: Path | None, teams: Teams) -> Sequence[str]:
    """What the team of a line may start outside the sandbox, unless the user said the same team."""
    roles, flow, sandboxed = (values.get(name) for name in ("roles", "flow", "test_sandbox"))
    if roles is None or (said and roles.resolve() == said.resolve()):
        return ()
    if (roles, flow) not in teams:
        teams[roles, flow] = ()
        with suppress(CodexMultiRoleError):  # `completed` reports it
            team = load_team(flow or RunOptions().flow, roles)
            teams[roles, flow] = tuple(outside_sandbox(*team, sandboxed is not False))
    return teams[roles, flow]


def repository_names(addresses: Iterable[str]) -> dict[str, str]:
    """The addresses by a short name for each: ``shop``, and ``shop-2`` for another repository of that name."""
    names: dict[str, str] = {}
    for address in addresses:
        last = re.split(r"[/:]", address.rstrip("/").removesuffix(".git"))[-1]
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", last)[:LONGEST_REPOSITORY_NAME].strip("-.") or "repository"
        number = 1
        while (unique := name if number == 1 else f"{name}-{number}") in names:
            number += 1
        names[unique] = address
    return names


def _located(address: str, folder: Path) -> str:
    """The address; a local path relative to ``folder``. An address with a host has a colon before any slash."""
    if ":" in address.partition("/")[0]:
        return address
    return str((folder / expanded(address)).absolute())


def _with_own_folders(planned: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Give runs in the same or overlapping folders a git worktree each, or let them run one after another."""
    places = {run.id: run.options.place.workspace.resolve() for run in planned if not run.repository}
    tops = _outermost(set(places.values()))
    crowd = Counter(tops[place] for place in places.values())
    can_have_worktrees = {top: has_commit(top) for top, number in crowd.items() if number > 1}
    return [
        _with_own_folder(run, tops[places[run.id]], can_have_worktrees) if run.id in places else run for run in planned
    ]


def _with_own_folder(run: PlannedRun, top: Path, can_have_worktrees: Mapping[Path, bool]) -> PlannedRun:
    if run.options.place.worktree or top not in can_have_worktrees:
        return run
    if run.goal.line.given("worktree") is None and can_have_worktrees[top]:
        return replace(run, options=run.options.changed(worktree=True))
    return replace(run, share=str(top))


def _outermost(folders: Iterable[Path]) -> dict[Path, Path]:
    """For each folder, the outermost of them that contains it."""
    tops: dict[Path, Path] = {}
    top: Path | None = None
    for folder in sorted(folders, key=lambda each: each.parts):
        top = top if top is not None and folder.is_relative_to(top) else folder
        tops[folder] = top
    return tops


def has_commit(folder: Path) -> bool:
    """Whether ``folder`` is in a git repository in which worktrees of it can be created."""
    try:
        repository = Repository.around(folder)
        return repository is not None and bool(repository.checked_out())
    except (UsageError, StorageError):
        return False


def uncommitted_changes(runs: Iterable[PlannedRun], runs_dir: Path) -> dict[Path, int]:
    """The repositories with files that differ from the commit at which worktrees start, and how many; some of them."""
    found: dict[Path, int] = {}
    for workspace in list(dict.fromkeys(run.options.place.workspace.resolve() for run in runs))[:MAX_WORKSPACES]:
        repository = Repository.around(workspace)
        if repository is not None and repository.top not in found:
            found[repository.top] = len(repository.uncommitted(runs_dir))
    return {top: number for top, number in found.items() if number}


@dataclass(frozen=True)
class Shard:
    """Part ``index`` (from 1) of ``count``: all parts together have each run once, whatever else is in the file."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """``2/5``. Raises `UsageError`."""
        found = re.fullmatch(r"([1-9]\d{0,3})/([1-9]\d{0,3})", text)
        if not found or int(found[1]) > int(found[2]):
            raise UsageError(f"--shard: '{text}' is not of the form i/n, with i from 1 to n", "For example 1/3.")
        return cls(int(found[1]), int(found[2]))

    def has(self, run_id: str) -> bool:
        """By the ID alone, so that a run stays in its shard if lines are added."""
        number = int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:8])
        return number % self.count == self.index - 1
