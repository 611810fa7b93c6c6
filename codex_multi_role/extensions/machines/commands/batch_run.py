"""One process's work on a batch, from its goal file to its summary."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from codex_multi_role.catalog.source_files import LOCAL_ROLES
from codex_multi_role.cli.output import put_json_line, say
from codex_multi_role.cli.run import parse_inputs
from codex_multi_role.codex.locator import find_codex
from codex_multi_role.errors import ExitCode, UsageError
from codex_multi_role.extensions.machines.batches.batch_folder import BatchFolder
from codex_multi_role.extensions.machines.batches.batch_progress import BatchProgress
from codex_multi_role.extensions.machines.batches.batch_runs import BatchRuns, BatchWork, Runs
from codex_multi_role.extensions.machines.batches.goal_file import Goal, GoalProblems, read_goals
from codex_multi_role.extensions.machines.batches.goal_line import playbook_at
from codex_multi_role.extensions.machines.batches.goal_results import ResultFile, exit_code_of
from codex_multi_role.extensions.machines.batches.local_runs import LocalRuns
from codex_multi_role.extensions.machines.batches.planned_runs import (
    Defaults,
    PlannedRun,
    Shard,
    plan_runs,
    uncommitted_changes,
)
from codex_multi_role.extensions.machines.batches.schedule import Bounds
from codex_multi_role.extensions.machines.batches.team_readiness import (
    completed,
    require_known_costs,
    require_limits,
    require_ready_teams,
)
from codex_multi_role.extensions.machines.commands.batch_summary import (
    higher_limits,
    resume_batch_command,
    summary_lines,
)
from codex_multi_role.extensions.machines.commands.batch_views import batch_view
from codex_multi_role.extensions.machines.commands.options import TOTALS
from codex_multi_role.extensions.machines.commands.workers import open_database
from codex_multi_role.lifecycle.own_records import is_own, require_said
from codex_multi_role.lifecycle.stopping import stop_signals
from codex_multi_role.lifecycle.team_loading import roles_folder
from codex_multi_role.presentation.wording import plural
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_options import RunOptions, all_options

if TYPE_CHECKING:
    from codex_multi_role.extensions.machines.batches.submitted_runs import SubmittedRuns

STANDARD_INPUT = Path("-")
MAX_NAME = 40
GIVEN_NOW = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def run_batch(ctx: click.Context, file: Path, given_name: str | None) -> ExitCode:
    """Run the goals in ``file``; ``ctx`` has the settings of `batch`. Without a name, the file gives it.

    Raises `UsageError`, `CodexUnavailable`, `StorageError`.
    """
    name = given_name or _name_of(file)
    shard = Shard.parse(ctx.params["shard"]) if ctx.params["shard"] else None
    folder = BatchFolder.of(ctx.params["runs_dir"], name, f"{shard.index}-of-{shard.count}" if shard else "")
    shared = bool(ctx.params["database_url"])
    if not shared:
        _require_right_start(folder, resumes=ctx.params["resumes"])
    elif ctx.params["max_failures"] is not None:
        hint = "All goals are submitted at once. `codex-multi-role cancel RUN --database-url URL` stops a run."
        raise UsageError("--max-failures cannot be used with --database-url", hint)
    remembered = folder.remembered() if ctx.params["resumes"] and folder.exists else {}
    defaults, totals = _defaults(ctx, file, remembered), _totals(ctx, remembered)
    runs = plan_runs(_read(file), defaults, name, folder.workspaces_path)
    runs = [run for run in runs if shard is None or shard.has(run.id)]
    with ExitStack() as stack:
        executor = _submitted(ctx, folder, totals, stack) if shared else LocalRuns(folder)
        planned = _checked(runs, executor, resumes=ctx.params["resumes"])
        require_limits(planned, totals)
        stack.enter_context(folder.owned())
        folder.remember(defaults, totals)
        return _work(ctx, folder, planned, executor, {} if shared else totals)


def _name_of(file: Path) -> str:
    """The default name of a batch: that of its goal file, without what a name cannot have. Raises `UsageError`."""
    if file == STANDARD_INPUT:
        raise UsageError("a batch from standard input needs --name", "Its runs are called NAME-ID.")
    return re.sub(r"[^A-Za-z0-9_-]+", "-", file.stem)[:MAX_NAME].strip("-_")


def _read(file: Path) -> list[Goal]:
    if file == STANDARD_INPUT:
        return read_goals(sys.stdin.buffer, "standard input")
    try:
        with file.open("rb") as stream:
            return read_goals(stream, str(file))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error


def _require_right_start(folder: BatchFolder, *, resumes: bool) -> None:
    if folder.exists and not resumes:
        message = f"batch {folder.name} already exists in {folder.runs_dir}"
        raise UsageError(message, "--resume continues it; another --name starts a new batch.")
    if resumes and not folder.exists:
        message = f"batch {folder.name} was not found in {folder.runs_dir}"
        raise UsageError(message, "Give --name, --shard and --runs-dir as when it was started, or leave out --resume.")


def _defaults(ctx: click.Context, file: Path, remembered: Mapping[str, Any]) -> Defaults:
    """What goals have if their lines do not say otherwise: as given now, otherwise as ``remembered``."""
    options = all_options()
    names = options.keys() & ctx.params.keys()
    values = {name: ctx.params[name] for name in names}
    values |= {"runs_dir": ctx.params["runs_dir"].absolute(), "inputs": parse_inputs(ctx.params["input"])}
    values |= _located(values)
    if remembered:
        given = _given(ctx, names, GIVEN_NOW)
        before = RunOptions.from_record(remembered["options"]).as_keywords()
        if not is_own(remembered):
            require_said("the record of the batch", {**before, **{name: values[name] for name in given}}, values)
        kept = {name: before.get(name, options[name].default) for name in values.keys() - given - {"runs_dir"}}
        return Defaults({**values, **kept}, frozenset({*remembered["given"], *given}), file.absolute().parent)
    given = _given(ctx, names, (*GIVEN_NOW, ParameterSource.DEFAULT_MAP))
    return Defaults(values, given, file.absolute().parent)


def _located(values: Mapping[str, Any]) -> dict[str, Any]:
    """What names the same from any folder: the current one may be another when the batch is resumed."""
    roles, playbook, codex = values["roles"], values["playbook"], values["codex_bin"]
    if roles is None and (folder := roles_folder(None)) == LOCAL_ROLES:
        roles = folder.absolute()
    return {
        "roles": roles,
        "playbook": playbook_at(Path(), playbook) if playbook else None,
        "prices": values["prices"] and values["prices"].absolute(),
        "codex_bin": find_codex(codex, os.environ) if codex else None,
    }


def _given(ctx: click.Context, names: set[str], sources: Sequence[ParameterSource]) -> frozenset[str]:
    found = {name for name in {*names, "input"} if ctx.get_parameter_source(name) in sources}
    return frozenset("inputs" if name == "input" else name for name in found - {"runs_dir"})


def _totals(ctx: click.Context, remembered: Mapping[str, Any]) -> dict[str, float]:
    given = {what: ctx.params[each.key] for what, each in TOTALS.items() if ctx.params[each.key] is not None}
    return {**remembered.get("totals", {}), **given}


def _submitted(ctx: click.Context, folder: BatchFolder, totals: Mapping[str, float], stack: ExitStack) -> SubmittedRuns:
    """Workers execute the runs. ``--concurrency`` is then a limit on the runs of this batch, if it was given."""
    from codex_multi_role.extensions.machines.batches.submitted_runs import (  # here: most batches need no database
        BatchQueue,
        SubmittedRuns,
    )
    from codex_multi_role.extensions.machines.workers.batch_totals import CONCURRENCY, recorded_limits
    from codex_multi_role.extensions.machines.workers.submission import Submitter, open_store

    database = open_database(ctx.params["database_url"], folder.runs_dir)
    store = open_store(database, ctx.params["store"], str(folder.runs_dir / "store"))
    is_given = ctx.get_parameter_source("concurrency") is not ParameterSource.DEFAULT
    with database.transaction() as connection:
        limits = dict(recorded_limits(connection, folder.name)) if ctx.params["resumes"] else {}
    limits |= {**totals, **({CONCURRENCY: ctx.params["concurrency"]} if is_given else {})}
    runs = SubmittedRuns(database, Submitter(store), BatchQueue(folder.name, ctx.params["queue"], limits))
    stack.callback(runs.close)
    return runs


def _checked(runs: Sequence[PlannedRun], executor: Runs, *, resumes: bool) -> list[PlannedRun]:
    """The runs, after checking all that are new. Raises `DefinitionError` for all problems of the goal file."""
    records = {run.id: executor.record(run) for run in runs}
    problems = GoalProblems()
    for run in runs:
        if not resumes and executor.exists(run):
            problems.add(run.goal.problem(f"the run {run.run_id} already exists", "Give the batch another --name."))
        elif records[run.id] and _is_other_goal(run, records[run.id].get("options", {})):
            hint = "Give a changed goal another id: its run has worked on the earlier one."
            problems.add(run.goal.problem(f"the goal or the flow differs from those of run {run.run_id}", hint))
    problems.raise_found()
    new = {run.id: run for run in completed(run for run in runs if not records[run.id])}
    require_ready_teams(new.values())
    return [new[run.id] if run.id in new else _with_goal(run, records[run.id]) for run in runs]


def _with_goal(run: PlannedRun, record: Mapping[str, Any]) -> PlannedRun:
    """A recorded run, whose goal may be that of its flow or playbook."""
    return replace(run, options=replace(run.options, goal=str(record.get("options", {}).get("goal") or "")))


def _is_other_goal(run: PlannedRun, recorded: Mapping[str, Any]) -> bool:
    goal = run.options.goal.strip()
    return bool(goal and goal != recorded.get("goal", "").strip()) or run.options.flow != recorded.get("flow")


def _work(
    ctx: click.Context, folder: BatchFolder, planned: Sequence[PlannedRun], runs: Runs, totals: Mapping[str, float]
) -> ExitCode:
    params = ctx.params
    batch = BatchRuns.of(planned, runs)
    if "cost" in totals:
        require_known_costs(batch.results.values())
    todo = batch.unfinished(runs)
    file = ResultFile(params["output"] or folder.results_path, batch.results.values())
    progress = BatchProgress(batch.results.values(), todo)
    people = not (params["json"] or params["quiet"])
    takers = runs.takers(todo)
    at_once = max(1, len(todo)) if takers else params["concurrency"]  # all goals for workers are submitted
    if people and takers:
        say(f"{_goals_in_words(planned, todo)} for workers: {takers}")
    elif people:
        _say_start(planned, todo, at_once, folder.runs_dir)
    bounds = Bounds(at_once, totals, params["max_failures"])
    with (
        batch_view(progress, as_json=params["json"], quiet=params["quiet"], plain=params["plain"]) as view,
        stop_signals(runs.hurry) as stop,
    ):
        stop.interrupts = False
        BatchWork(batch, todo, bounds, runs, file, view).work(stop)
    results = list(batch.results.values())
    code = exit_code_of(results, interrupted=stop.asked)
    if params["json"]:
        put_json_line({"type": "batch_ended", "at": now(), "exit_code": code, "results": str(file.path)})
    elif not (params["quiet"] and code == ExitCode.GOAL_REACHED):
        for line in summary_lines(results, code, file.path, folder.runs_dir, params["database_url"] or ""):
            say(line)
        if batch.unfinished(runs):
            higher = higher_limits(batch.results, planned, totals)
            say(f"  next     {resume_batch_command(params, folder.name, higher)}")
    return code


def _say_start(planned: Sequence[PlannedRun], todo: Sequence[PlannedRun], concurrency: int, runs_dir: Path) -> None:
    say(f"{_goals_in_words(planned, todo)}; up to {concurrency} at once")
    in_worktrees = [run for run in todo if run.options.place.worktree]
    if in_worktrees:
        say(f"{plural(len(in_worktrees), 'goal')} in git worktrees: the files of your workspaces stay as they are")
    for top, changes in uncommitted_changes(in_worktrees, runs_dir).items():
        say(f"warning: {top} has {plural(changes, 'uncommitted change')}, which the goals do not see")
    for place, number in Counter(run.share for run in todo if run.share).items():
        if number > 1:
            say(f"{number} goals share the folder {place}: they run one after another")


def _goals_in_words(planned: Sequence[PlannedRun], todo: Sequence[PlannedRun]) -> str:
    done = len(planned) - len(todo)
    return plural(len(planned), "goal") + (f", {done:,} of them finished" if done else "")
