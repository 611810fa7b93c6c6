"""Check a bundle by doing it again: its answers, its team and its first state, without a model."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, RoleSpecCatalog
from codex_multi_role.errors import ExitCode, RunNotFound, UsageError
from codex_multi_role.extensions.replays.bundle_file import BUDGET, TEAM, Bundle, no_bundle, read_bundle
from codex_multi_role.extensions.replays.claims import observe
from codex_multi_role.extensions.replays.comparing import (
    DIFFERS,
    NOT_CHECKED,
    SAME,
    ComparedLine,
    Comparison,
    compare_environments,
    compare_played,
    compare_team,
    compare_tests_before,
    numbers,
)
from codex_multi_role.extensions.replays.comparison import kept_in
from codex_multi_role.extensions.replays.replay_tests import ERROR, Replayed, replay_test, working_folder
from codex_multi_role.extensions.replays.surroundings import environment_of, tests_before
from codex_multi_role.extensions.results.run_history import RunHistory, history_of
from codex_multi_role.flow import walk_bound
from codex_multi_role.host.atomic import make_folder
from codex_multi_role.host.unpacking import measure_trees, unpack_objects
from codex_multi_role.lifecycle.own_records import outside_sandbox
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.presentation.wording import plural
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunOptions
from codex_multi_role.steps.terms import terms
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.paths import CODEX_FOLDERS
from codex_multi_role.workspace.trees import borrow_objects, changes, check_out, entries_of

NAME = "bundle"


@dataclass(frozen=True)
class Verification:
    """The result, line by line."""

    run: str
    lines: tuple[ComparedLine, ...]

    def count(self, status: str) -> int:
        return sum(line.status == status for line in self.lines)

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.GOAL_NOT_REACHED if self.count(DIFFERS) else ExitCode.GOAL_REACHED

    @property
    def verdict(self) -> str:
        differing = self.count(DIFFERS)
        found = plural(differing, "difference") if differing else "nothing differs"
        return f"{'refused' if differing else 'verified'}: {found}, {self.count(NOT_CHECKED)} not checked"


def verify_bundle(
    path: Path,
    options: Mapping[str, Any],
    *,
    trust_team: bool = False,
    on_command: Callable[[str], None] = lambda _: None,
) -> Verification:
    """Run the bundle ``path`` again in a temporary folder, and compare everything that it claims with that run.

    ``options``: the `RunOptions` ``python``, ``codex_bin`` and ``test_sandbox``. ``trust_team`` allows a team whose
    processes may leave Codex's sandbox. ``on_command`` is called with each command of the bundle before any of them
    runs. Raises `UsageError` for anything but a bundle and if it cannot be run here, `StorageError`.
    """
    with working_folder("verify") as folder:
        bundle = read_bundle(path, folder / NAME)
        git = _states(bundle, folder / NAME / NAME, path)
        if broken := list(_broken_claims(bundle, git)):
            return Verification(bundle.claims.run, tuple(ComparedLine(DIFFERS, each) for each in broken))
        with no_bundle(path):
            measure_trees(git.run, _known_trees(git, bundle.claims.observed.every_state), BUDGET)
        flows, catalog = load_team(bundle.recording.header["flow"], bundle.team)
        if not trust_team and (rights := list(_rights(flows, catalog, git, bundle))):
            raise UsageError(
                f"{path} could leave the sandbox: {'; '.join(rights)}",
                "If you know its author and have read it, add --trust-team.",
            )
        for each in _commands(flows, bundle):
            on_command(each)
        lines = [
            *_again(bundle, git, folder / "again", options, flows, catalog, path),
            *_never_checked(bundle, options),
        ]
        return Verification(bundle.claims.run, tuple(sorted(lines, key=lambda line: line.status == NOT_CHECKED)))


def _states(bundle: Bundle, workspace: Path, path: Path) -> Git:
    """A repository with the bundle's states; ``workspace`` gets the files of the first one, as far as it has it."""
    make_folder(workspace)
    git = Snapshots(workspace.with_name("states"), Workspace(workspace)).repository()
    with no_bundle(path):
        unpack_objects(git.run, bundle.states, BUDGET)
    return git


def _known_trees(git: Git, states: Sequence[str]) -> list[str]:
    """Those of ``states`` that the bundle has."""
    named = "\n".join(states).encode()
    found = git.run("cat-file", "--batch-check=%(objecttype)", stdin=named).stdout.decode().splitlines()
    return [state for state, kind in zip(states, found, strict=True) if kind == "tree"]


def _broken_claims(bundle: Bundle, git: Git) -> Iterator[str]:
    """What no honest bundle has, without running anything."""
    claims, recording = bundle.claims, bundle.recording
    if recording.header["run"] != claims.run:
        yield f"the claims are of run {claims.run}, the answers of run {recording.header['run']}"
    if recording.ended is None:
        yield "the recording was cut short: its run did not end"
    state = claims.observed.first
    for change in claims.observed.changes:
        if change.before != state:
            yield f"{change.name}: it starts from a state to which nothing led"
        state = change.after
    if recording.unknown:
        yield f"the recording has lines that no run writes: {numbers(recording.unknown)}"
    known = {*_known_trees(git, claims.observed.states)}
    for state in claims.observed.states:
        if state not in known:
            yield f"the state {state[:12]} is claimed, but not in the bundle"


def _rights(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog, git: Git, bundle: Bundle) -> Iterator[str]:
    """What a stranger's team could start outside Codex's sandbox."""
    yield from outside_sandbox(flows, catalog)
    folders = {path.partition("/")[0] for path in entries_of(git, bundle.claims.observed.first)}
    yield from (f"the workspace has {name}" for name in CODEX_FOLDERS if name in folders)


def _again(
    bundle: Bundle,
    git: Git,
    place: Path,
    options: Mapping[str, Any],
    flows: Mapping[str, FlowSpec],
    catalog: RoleSpecCatalog,
    path: Path,
) -> Iterator[ComparedLine]:
    """Replay the recording on the first state, and compare."""
    claims = bundle.claims
    workspace = bundle.recording.path.with_suffix("")
    check_out(git, entries_of(git, claims.observed.first), workspace)
    own = {"pytest_cmd": claims.pytest_cmd, "test_seconds": claims.test_seconds}
    replayed = replay_test(bundle.recording.path, {**own, **options, "roles": bundle.team}, place)
    history = _history(replayed, place / NAME / "runs", path)
    yield from _outcome(replayed)
    now = observe(history, kept_in(history.folder.path)["began_with"])
    borrow_objects(git.git_dir, history.repositories())
    comparison = Comparison(claims.observed, now, partial(_changed_paths, git))
    at_once = _works_at_once(flows, catalog, bundle.recording.header)
    yield from compare_played(bundle.recording, {*kept_in(history.folder.path).get("played", ())}, at_once)
    yield from compare_team(workspace.parent / TEAM, history.folder.catalog_path)
    yield from comparison.as_a_whole(catalog.role_of) if at_once else comparison.in_order()
    if now.tests:
        run_options = RunOptions(workspace=workspace, **{**own, **options})
        before = tests_before(git, claims.observed.first, claims.observed.last, place / "before", run_options)
        yield from compare_tests_before(claims.tests_before, before)
    yield from compare_environments(claims.made_with, environment_of(history.folder, git, options.get("codex_bin")))


def _commands(flows: Mapping[str, FlowSpec], bundle: Bundle) -> Iterator[str]:
    """The commands of its tests, its flows and, as recorded, its roles, for people."""
    if bundle.recording.header["run_tests"] or bundle.claims.pytest_cmd:
        yield f"tests: {bundle.claims.pytest_cmd or 'pytest'}, for at most {bundle.claims.test_seconds:g} s"
    for flow in flows.values():
        yield from ([f"setup of copies: {flow.workspace.setup}"] if flow.workspace and flow.workspace.setup else [])
        for step in flow.steps:
            if given := step.with_.get("argv") or step.with_.get("pytest_cmd"):
                yield f"step {step.id}: {shlex.join(map(str, given)) if isinstance(given, list) else given}"
    for turn in bundle.recording.turns:
        for item in (item for answer in turn.exchanges.values() for item in answer.get("items", ())):
            if str(item.get("type")).endswith("_call"):
                yield f"role {turn.ask.role}: {item.get('arguments') or item.get('input') or item.get('action')}"


def _works_at_once(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog, header: Mapping[str, Any]) -> bool:
    """Whether turns or checks may work at the same time, so that the states between them depend on chance."""
    steps = [step for flow in flows.values() for step in flow.steps]
    names = ("cycles", "repair_attempts", "run_tests")
    given = terms(RunOptions(**{name: header[name] for name in names}))
    inputs = flows[header["flow"]].resolve_inputs(header["inputs"])
    processes = walk_bound(flows, header["flow"], catalog, given, inputs).effort.processes
    if max(processes.values(), default=0) > 1 or any(step.check and step.concurrency != 1 for step in steps):
        return True
    sorter = TopologicalSorter(catalog.dependencies())
    sorter.prepare()
    while any(step.ask == EVERY_ROLE for step in steps) and sorter.is_active():
        ready = sorter.get_ready()
        if len(ready) > 1:
            return True
        sorter.done(*ready)
    return False


def _history(replayed: Replayed, runs_dir: Path, path: Path) -> RunHistory:
    try:
        history = history_of(RunFolder.find(runs_dir, "latest"))
    except RunNotFound:
        history = None
    if replayed.status == ERROR or history is None or "began_with" not in kept_in(history.folder.path):
        raise UsageError(f"{path} cannot be run on this machine: {'; '.join(replayed.differences)}")
    return history


def _outcome(replayed: Replayed) -> Iterator[ComparedLine]:
    yield from (ComparedLine(DIFFERS, each) for each in replayed.differences)
    if not replayed.differences:
        yield ComparedLine(SAME, "prompts, handoffs, outcome, exit code and changed files, as recorded")


def _changed_paths(git: Git, before: str, after: str) -> Sequence[str]:
    """The files that differ; empty if a state is unknown, as one that is only claimed of a copy is."""
    named = f"{before}^{{tree}}\n{after}^{{tree}}\n".encode()
    if b"missing" in git.run("cat-file", "--batch-check", stdin=named).stdout:
        return ()
    return sorted(changes(git, before, after))


def _never_checked(bundle: Bundle, options: Mapping[str, Any]) -> Iterator[ComparedLine]:
    yield ComparedLine(NOT_CHECKED, "that a model gave these answers, because only its provider knows")
    yield ComparedLine(NOT_CHECKED, "tokens, because they are the provider's own figures")
    if bundle.recording.ended and bundle.recording.ended["answers"]:
        yield ComparedLine(NOT_CHECKED, "that a person decided so, because the decisions are part of the recording")
    if options.get("test_sandbox") is False:
        yield ComparedLine(NOT_CHECKED, "that the tests need no network, because they ran without the sandbox")
