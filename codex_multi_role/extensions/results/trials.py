"""Execute a command on recorded states of a run: where and how its tests were, but each in a fresh folder.

Public: `bisect`, which finds the change that gave the command another result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from codex_multi_role.checks.command import ProgramResult, run_argv
from codex_multi_role.checks.contract import CheckContext
from codex_multi_role.checks.interpreter import Interpreter, find_interpreter, inspect
from codex_multi_role.checks.working_copy import folder_outside
from codex_multi_role.codex.locator import find_codex
from codex_multi_role.errors import SetupFailed, UsageError
from codex_multi_role.extensions.results.bisecting import MAX_EXECUTIONS, REPEAT, Bisection, Outcome, bisect_states
from codex_multi_role.extensions.results.recorded_states import (
    RecordedState,
    names_of_changes,
    restorable_tree,
    states_in_line,
)
from codex_multi_role.extensions.results.run_history import RUNS_DIR, AnyRun, RunHistory, history_of, result_of
from codex_multi_role.extensions.results.workspace_states import Change
from codex_multi_role.host.atomic import make_folder
from codex_multi_role.lifecycle.definitions import sandbox_of_tests
from codex_multi_role.lifecycle.kept_definitions import remembered_needs
from codex_multi_role.lifecycle.own_records import is_own, require_said
from codex_multi_role.run_options import RunOptions, RunTests
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.preparation import Preparation
from codex_multi_role.workspace.removal import delete_folder
from codex_multi_role.workspace.trees import borrow_objects

NOT_JUDGED = 125
"""The exit code by which a command says that it cannot judge a state, as in `git bisect run`."""
PYTHONPATH = "PYTHONPATH"


@dataclass(frozen=True)
class Trial:
    """How the command ended on a state. ``reason``: why it did not pass; ``output``: what it printed.

    ``warnings`` are about the preparation of the folder.
    """

    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    output: str = ""
    could_run: bool = True
    warnings: tuple[str, ...] = ()


OnTrial = Callable[[str, Trial | None], None]
"""Gets the name of a state, and how the command ended there; None if the state cannot be restored."""


@dataclass(frozen=True)
class BisectedRun(Bisection):
    """What `bisect` found. ``candidates``: the change that led to the result ``last``; empty if no change did.

    There are several if the states between them cannot be judged. ``names`` are theirs, for people. ``state``: the one
    beside the change where the command fails; ``output``: what it printed there.
    """

    run_id: str
    candidates: tuple[Change, ...]
    names: tuple[str, ...]
    state: str
    output: str


@dataclass(frozen=True)
class Trials:
    """Tries the command of ``context``, as the check ``command`` does, on states of ``history``.

    The workspace of ``context`` is replaced for each. ``preparation``: what the run's worktrees need, if anything.
    """

    history: RunHistory
    context: CheckContext
    snapshots: Snapshots
    preparation: Preparation | None

    def run(self, state: RecordedState) -> Trial | None:
        """Execute the command on ``state``; None if that cannot be restored.

        Raises UsageError, StorageError, RunInterrupted.
        """
        tree = restorable_tree(self.history, state, self.snapshots.repository())
        if tree is None:
            return None
        self._restore(tree)
        try:
            warnings = self._prepare()
        except SetupFailed as error:
            return Trial("unknown", str(error))
        result = run_argv.run(self.context)
        assert isinstance(result, ProgramResult)
        return replace(_judged(result), warnings=tuple(warnings))

    def _prepare(self) -> list[str]:
        if self.preparation is None:
            return []
        return self.preparation.prepare(self.context.workspace, self.snapshots, self.context.folder)

    def _restore(self, tree: str) -> None:
        root = self.context.workspace.root
        delete_folder(root)
        make_folder(root)
        self.snapshots.leave_out(())  # what an earlier preparation made
        self.snapshots.restore(tree)


def bisect(
    run: AnyRun,
    command: Sequence[str],
    *,
    repeat: int = REPEAT,
    seconds: float = RunTests.test_seconds,
    test_sandbox: bool = True,
    python: Path | str | None = None,
    codex_bin: Path | str | None = None,
    on_trial: OnTrial | None = None,
    runs_dir: Path | str = RUNS_DIR,
) -> BisectedRun:
    """Find the change of a run that first made ``command`` fail, or pass, by executing it on the recorded states.

    ``run``: a `Run`, a `ReportedRun`, or the id of a run in ``runs_dir``. ``command``: a program and its arguments.
    Exit code 0 is a pass, 125 means that a state cannot be judged, any other is a failure, as is a command that takes
    longer than ``seconds``. ``repeat``: how often the states beside the change are executed, to notice results that
    vary. ``on_trial`` gets the name of each state, and how the command ended there.

    Raises `RunNotFound`, `UsageError`, `CodexUnavailable`, `StorageError`.
    """
    if isinstance(command, str) or not command:
        raise UsageError(f"command must be a list of words, not {command!r}", 'Such as ["pytest", "-q"].')
    if not 1 <= repeat <= MAX_EXECUTIONS:
        raise UsageError(f"repeat must be from 1 to {MAX_EXECUTIONS}, not {repeat!r}")
    options = RunOptions(test_sandbox=test_sandbox, python=python, codex_bin=codex_bin, test_seconds=seconds)
    history = history_of(run, runs_dir)
    result_of(history)  # raises if the run recorded nothing
    line = states_in_line(history)
    if len(line) == 1:
        raise UsageError(f"run {history.folder.run_id} changed no files", "No turn can have changed the result.")
    with trials_of(history, command, options) as trials:
        executor = _Executor(trials, line, on_trial)
        found = bisect_states(len(line), executor.execute, repeat)
    return executor.bisected_run(found)


class _Executor:
    """Executes the states of ``line`` by their numbers, and announces how each ended."""

    def __init__(self, trials: Trials, line: Sequence[RecordedState], on_trial: OnTrial | None) -> None:
        self._trials = trials
        self._line = line
        self._on_trial = on_trial
        self._failed: dict[int, Trial] = {}
        self._names = list(names_of_changes(line))

    def execute(self, index: int) -> Outcome | None:
        """Raises `UsageError` for a program that does not exist even at the end of the run, such as a misspelt one."""
        trial = self._trials.run(self._line[index])
        if trial and not trial.could_run and not self._failed and index == len(self._line) - 1:
            raise UsageError(trial.reason, "Name a program on PATH, or one that is in the workspace at the end.")
        if self._on_trial:
            self._on_trial(self._name(index), trial)
        if trial and trial.outcome == "fail":
            self._failed[index] = trial
        return trial.outcome if trial else None

    def bisected_run(self, found: Bisection) -> BisectedRun:
        border = slice(found.before + 1, found.after + 1 if found.changed else 0)
        candidates = tuple(change for state in self._line[border] for change in state.changes)
        names = tuple(name for each in self._names[border] for name in each)
        shown = found.after if found.last == "fail" else found.before
        output = self._failed[shown].output if shown in self._failed else ""
        run_id = self._trials.history.folder.run_id
        return BisectedRun(
            **vars(found), run_id=run_id, candidates=candidates, names=names, state=self._name(shown), output=output
        )

    def _name(self, index: int) -> str:
        return ", ".join(self._names[index]) or "before the first change"


def _judged(result: ProgramResult) -> Trial:
    outcome: Outcome = "pass" if result.status == "ok" else "fail"
    return Trial(
        outcome="unknown" if result.exit_code == NOT_JUDGED else outcome,
        reason="timed out" if result.status == "timed out" else result.reason,
        seconds=result.seconds,
        output="\n".join(filter(None, (result.stdout.rstrip(), result.stderr.rstrip()))),
        could_run=result.status != "could not run",
    )


@contextmanager
def trials_of(history: RunHistory, argv: Sequence[str], options: RunOptions) -> Iterator[Trials]:
    """Trials of ``argv`` in a temporary folder outside the workspace, which is removed.

    ``options``: those of the tests, and ``codex_bin``. Nothing of the run is used that a live run could end or change.
    Raises `UsageError`, `CodexUnavailable`, `StorageError`.
    """
    worked_in = Path(str(history.folder.record()["workspace"]))
    with folder_outside(worked_in) as folder:
        workspace = Workspace(make_folder(folder / "restored" / worked_in.name))  # some projects read that name
        context = context_of_tests(worked_in, workspace, folder, with_python(options, history))
        imports = _importing_from(workspace.root, context.python, context.environment)
        context = replace(context, options={"argv": list(argv), "json": False, "environment": imports})
        yield Trials(history, context, _borrowing(history, folder, workspace), _preparation(history, context))


def context_of_tests(project: Path, workspace: Workspace, folder: Path, options: RunOptions) -> CheckContext:
    """How a run executes tests, outside any: on ``workspace``, with the Python of ``project``.

    ``folder``: receives what they leave. Raises `CodexUnavailable`, `StorageError`.
    """
    environment = {**os.environ, "CODEX_HOME": str(make_folder(folder / "codex"))}
    sandbox = sandbox_of_tests(options, find_codex(options.answers.codex_bin, os.environ), workspace.root)
    python = inspect(find_interpreter(project, os.environ, options.tests.python), project, environment, sandbox)
    return CheckContext(workspace, folder, environment, options.tests.test_seconds, sandbox, python=python)


def with_python(options: RunOptions, history: RunHistory) -> RunOptions:
    """``options`` with the Python that the run was given, unless they name one."""
    return options if options.tests.python else options.changed(python=_remembered_python(history))


def _remembered_python(history: RunHistory) -> Path | None:
    record = history.folder.record()
    python = {name: Path(given) for name, given in (record.get("options") or {}).items() if name == "python" and given}
    if python and not is_own(record, history.folder):
        require_said(f"run {history.folder.run_id}, which this machine did not record,", python, {})
    return python.get("python")


def _importing_from(root: Path, python: Interpreter | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables by which an editable install of the run's workspace does not hide the files restored in ``root``."""
    if python is None or not python.folders:
        return {}
    places = [*(str(root / each) for each in python.folders), environment.get(PYTHONPATH)]
    return {PYTHONPATH: ":".join(filter(None, places))}


def _borrowing(history: RunHistory, folder: Path, workspace: Workspace) -> Snapshots:
    """Snapshots in a repository of their own, which has the objects of the run and its copies."""
    git_dir = folder / "snapshots.git"
    borrow_objects(git_dir, history.repositories())
    return Snapshots(git_dir, workspace)


def _preparation(history: RunHistory, context: CheckContext) -> Preparation | None:
    """What the run's worktrees and copies needed, from its workspace as it is now; None if that is nothing."""
    run = history.folder
    needs = remembered_needs(run)
    if not needs:
        return None
    record = run.record()
    source = Workspace.of_run(Path(str(record.get("source_workspace", record["workspace"]))), run.path)
    return Preparation(
        needs,
        source,
        context.folder,
        context.environment,
        context.sandbox,
        context.deadline_seconds,
        run.redact,
        reuses=False,
    )
