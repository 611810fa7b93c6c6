"""What must be right before any goal of a batch starts: flows, inputs, goals, workspaces, Codex and its login."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from codex_multi_role.catalog import FlowSpec
from codex_multi_role.errors import CodexMultiRoleError, DefinitionError, UsageError
from codex_multi_role.extensions.machines.batches.goal_file import GoalProblems
from codex_multi_role.extensions.machines.batches.goal_results import GoalResult
from codex_multi_role.extensions.machines.batches.planned_runs import PlannedRun
from codex_multi_role.host.programs import require_unsteered
from codex_multi_role.lifecycle.definitions import load_definitions
from codex_multi_role.lifecycle.readiness import require_ready
from codex_multi_role.lifecycle.sandbox_probe import require_sandbox
from codex_multi_role.lifecycle.team_loading import load_team, roles_folder
from codex_multi_role.playbook import is_automatic, load_playbook
from codex_multi_role.playbook.automatic import GOAL
from codex_multi_role.presentation.wording import plural
from codex_multi_role.run_options import LIMITS, RunOptions

Team = tuple[Path | None, str, str | None]
"""The roles, the flow and the playbook of a run."""
MAX_TEAMS = 20
"""How many different teams are loaded as a run does, Codex and its login included; the runs check the others."""


def completed(planned: Iterable[PlannedRun]) -> list[PlannedRun]:
    """These runs, with what their playbooks suggest. Checks goals, inputs, flows and workspaces.

    Raises `DefinitionError` for all problems, with the lines; those of a team are reported once.
    """
    runs, problems = list(planned), GoalProblems()
    found: list[PlannedRun] = []
    for team, members in _by_team(runs).items():
        try:
            flow, suggested = _load(team)
        except CodexMultiRoleError as error:
            problems.add(members[0].goal.problem(str(error), error.hint))
            continue
        for run in members:
            complete = _complete(run, suggested)
            found.append(complete)
            for problem in _problems(complete, flow):
                problems.add(problem)
    problems.raise_found()
    order = {run.id: position for position, run in enumerate(runs)}
    return sorted(found, key=lambda run: order[run.id])


def _by_team(runs: Iterable[PlannedRun]) -> dict[Team, list[PlannedRun]]:
    teams: dict[Team, list[PlannedRun]] = {}
    for run in runs:
        teams.setdefault((run.options.place.roles, run.options.flow, run.options.answers.playbook), []).append(run)
    return teams


def _load(team: Team) -> tuple[FlowSpec, dict[str, Any]]:
    """The flow of a team, and what its playbook suggests for goal and cycles. Raises `CodexMultiRoleError`."""
    roles, flow, playbook = team
    flows, _ = load_team(flow, roles)
    if playbook is None:
        return flows[flow], {}
    folder = roles_folder(roles)
    if is_automatic(playbook, folder):
        return flows[flow], {"goal": GOAL}
    script = load_playbook(playbook, folder)
    suggested = {"goal": script.goal, "cycles": script.cycles}
    return flows[flow], {name: value for name, value in suggested.items() if value}


def _complete(run: PlannedRun, suggested: Mapping[str, Any]) -> PlannedRun:
    changes = {name: value for name, value in suggested.items() if _is_open(run, name)}
    return replace(run, options=replace(run.options, **changes))


def _problems(run: PlannedRun, flow: FlowSpec) -> Iterator[DefinitionError]:
    workspace = run.options.place.workspace
    try:
        flow.goal.resolve(flow.name, run.options.goal)
    except UsageError as error:
        yield run.goal.problem(str(error), 'Change "goal" in this line.')
    try:
        flow.resolve_inputs(run.options.inputs)
    except UsageError as error:
        yield run.goal.problem(str(error), error.hint)
    if not run.repository and not workspace.is_dir():
        hint = f"Create it first: mkdir -p {workspace}"
        yield run.goal.problem(f"the workspace {workspace} does not exist or is not a folder", hint)


def _is_open(run: PlannedRun, name: str) -> bool:
    return not run.options.goal.strip() if name == "goal" else name not in run.given


def require_limits(runs: Iterable[PlannedRun], totals: Mapping[str, float]) -> None:
    """Raise `DefinitionError` for each run without a limit of its own for something that has a total."""
    problems = GoalProblems()
    for run in runs:
        for name in totals:
            if name not in run.entry.limits:
                flag = LIMITS[name].replace("_", "-")
                hint = f"Add {LIMITS[name]} to the line, or --{flag} for all goals that have none."
                problems.add(run.goal.problem(f"--total-{flag} needs a limit for each goal", hint))
    problems.raise_found()


def require_known_costs(results: Iterable[GoalResult]) -> None:
    """Raise `UsageError` if a run of the batch has turns without a price: nobody knows what is left of a total."""
    for result in results:
        if unpriced := result.cost.unpriced_turns:
            raise UsageError(
                f"--total-max-cost cannot be kept: {plural(unpriced, 'turn')} of run {result.run_id} have no price",
                "Use --total-max-tokens, or start another batch.",
            )


def require_ready_teams(runs: Iterable[PlannedRun]) -> None:
    """Load one run of each team as it will be loaded itself: a missing login is found before anything starts.

    Raises `UsageError` and `CodexUnavailable`.
    """
    require_unsteered(os.environ)
    samples: dict[tuple[object, ...], PlannedRun] = {}
    for run in runs:
        options, answers = run.options, run.options.answers
        key = (options.place.roles, options.flow, answers.playbook, answers.model, answers.config, answers.codex_bin)
        samples.setdefault((*key, options.limits.max_cost is None, bool(run.repository)), run)
    for run in list(samples.values())[:MAX_TEAMS]:
        if not run.repository:
            _require_all(run.options)
            continue
        with TemporaryDirectory(prefix="codex-multi-role-") as folder, suppress(UsageError):
            _require_all(run.options.changed(workspace=Path(folder)))  # what does not depend on a repository's content


def _require_all(options: RunOptions) -> None:
    definitions = load_definitions(options)
    require_ready(definitions)
    if definitions.sandboxes_commands:
        require_sandbox(definitions.codex)
