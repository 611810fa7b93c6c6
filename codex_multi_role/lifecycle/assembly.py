"""Assembling a run: from its definitions to its live processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path

from codex_multi_role.catalog import RoleSpecCatalog
from codex_multi_role.checks.tools import TOOLS
from codex_multi_role.codex.codex_settings import searches_web
from codex_multi_role.codex.fleet import Fleet, instance_name
from codex_multi_role.codex.warm_home import WarmHomes, user_store
from codex_multi_role.flow import first_asked, new_state
from codex_multi_role.host.processes import Family
from codex_multi_role.lifecycle.definitions import Definitions, role_settings, sandbox_of_tests
from codex_multi_role.lifecycle.members import Members, unwritable_paths
from codex_multi_role.lifecycle.model_providers import ModelProviders, start_providers
from codex_multi_role.lifecycle.preparing import preparation_of, sandbox_variables
from codex_multi_role.lifecycle.sandbox_probe import trying_sandbox
from codex_multi_role.lifecycle.steering import Steering
from codex_multi_role.lifecycle.subscribers import InstalledObservers
from codex_multi_role.run_folder import EventLog, RunFolder, list_turns, own_turns, started_turns
from codex_multi_role.run_folder.events import ProcessesStarting
from codex_multi_role.run_folder.folder import takes_over
from codex_multi_role.steps import RunProgress, RunResources, RunServices, RunSettings, TestSettings
from codex_multi_role.steps.baseline import Baseline
from codex_multi_role.steps.budget import Budget, Limits
from codex_multi_role.steps.work_clock import WorkClock
from codex_multi_role.workspace import ProtectedFiles, Snapshots, Workspace, Worktrees
from codex_multi_role.workspace.manifest import Manifest
from codex_multi_role.workspace.preparation import forget_setups


@contextmanager
def idle_parts(definitions: Definitions, folder: RunFolder) -> Iterator[RunResources]:
    """Yield the parts of a run with nothing started: enough to walk through its past.

    Its workspace may still be empty, so that nothing is known about protected files.
    """
    events = EventLog(folder.events_path, folder.redact)
    fleet = Members(definitions, folder, ModelProviders()).fleet(events)
    try:
        yield _resources(definitions, folder, events, fleet, WorkClock(0.0), lambda: definitions.catalog, Steering())
    finally:
        fleet.stop()
        events.close()


@contextmanager
def live_parts(
    definitions: Definitions,
    folder: RunFolder,
    events: EventLog,
    clock: WorkClock,
    catalog: Callable[[], RoleSpecCatalog],
    kept_folder: Callable[[], Path],
    steering: Steering,
) -> Iterator[RunResources]:
    """Start the model providers and the Codex processes, yield the parts of the run, and stop everything on exit.

    ``clock`` counts the seconds worked on the run. ``catalog`` returns the current catalog, ``kept_folder`` the folder
    of the run's copy of it. ``steering``: the files that no role and no test may write.
    """
    with ExitStack() as stack:
        stack.callback(forget_setups, Manifest(folder.worktrees_path).place)
        models = start_providers(definitions, folder, events, stack)
        read_only = unwritable_paths(definitions, folder, steering)
        homes = WarmHomes(definitions.codex, user_store(os.environ), Family.of_run(folder.path, "homes"))
        sandbox = stack.enter_context(trying_sandbox(definitions.codex, needed=definitions.sandboxes_commands))
        members = Members(definitions, folder, models, read_only, homes, catalog, kept_folder, sandbox)
        fleet = members.fleet(events)
        stack.callback(fleet.stop)
        first = None if takes_over(folder.record()) else _needed_first(definitions, folder)
        if first and (starting := fleet.start(*first)):
            events.publish(ProcessesStarting(starting))
        if members.have_own_homes:
            stack.enter_context(homes.made_meanwhile())
        made = _resources(definitions, folder, events, fleet, clock, catalog, steering, read_only, sandbox)
        if protect := made.settings.protect:  # the workspace has its files now
            kept = ProtectedFiles(made.snapshots, made.workspace, protect).first()
            made = replace(made, settings=replace(made.settings, first_protected=kept))
        yield made


def _needed_first(definitions: Definitions, folder: RunFolder) -> tuple[list[str], str]:
    """As `Fleet.start` takes them: what the first step of a new run needs at once, and what it asks before others."""
    if any(list_turns(folder)):
        return [], ""
    options, flow, catalog = definitions.options, definitions.flow, definitions.catalog
    role, count = first_asked(flow, catalog, new_state(flow, options.goal, definitions.inputs, options.cycles))
    return [instance_name(role, number) for number in range(2, count + 1)], role if count == 1 else ""


def _resources(
    definitions: Definitions,
    folder: RunFolder,
    events: EventLog,
    fleet: Fleet,
    clock: WorkClock,
    catalog: Callable[[], RoleSpecCatalog],
    steering: Steering,
    read_only: tuple[Path, ...] = (),
    require_sandbox: Callable[[], object] = lambda: None,
) -> RunResources:
    options = definitions.options
    workspace = Workspace.of_run(definitions.workspace, folder.path, steering.globs)
    snapshots = Snapshots(folder.snapshots_path, workspace)
    progress = RunProgress(started_turns(folder))
    flows = definitions.flows.values()
    protect = tuple(sorted({glob for flow in flows for glob in flow.protect} | set(steering.links)))
    services = RunServices(
        catalog_now=catalog,
        folder=folder,
        events=events,
        fleet=fleet,
        worktrees=Worktrees(
            folder.worktrees_path,
            workspace,
            snapshots,
            folder.run_id,
            preparation_of(definitions, folder, read_only, progress.stopping),
        ),
        environment=sandbox_variables(folder),
        sandbox=sandbox_of_tests(options, definitions.codex, definitions.workspace, read_only),
        budget=_budget(definitions, folder, clock),
        clock=clock,
        baseline=Baseline(folder.baseline_path, workspace.root, options.tests.pytest_cmd or "", require_sandbox),
        observers=InstalledObservers(definitions),
    )
    return RunResources(_settings(definitions, catalog, steering, protect), services, progress, workspace, snapshots)


def _settings(
    definitions: Definitions, catalog: Callable[[], RoleSpecCatalog], steering: Steering, protect: tuple[str, ...]
) -> RunSettings:
    options = definitions.options
    return RunSettings(
        goal=options.goal,
        tests=TestSettings(
            options.tests.run_tests,
            options.tests.pytest_cmd,
            options.tests.test_seconds,
            definitions.python,
            baseline=options.tests.baseline and definitions.tests_before,
            allow_removed=definitions.allow_removed_tests,
        ),
        repair_attempts=options.answers.repair_attempts,
        run_model=options.answers.model,
        prices=definitions.prices,
        changes_workspace=definitions.changes_workspace,
        protect=protect,
        steering_absent=steering.absent,
        steering_present=steering.present,
        searches_web=partial(_searches_web, definitions, catalog),
        only_reads=partial(only_reads, definitions, catalog),
        yes=options.answers.yes,
        contracts=definitions.contracts,
    )


def _budget(definitions: Definitions, folder: RunFolder, clock: WorkClock) -> Budget:
    options = definitions.options
    own = ((definitions.catalog.role_of(instance), turn) for instance, turn in own_turns(folder))
    cost = None if options.limits.max_cost is None else Decimal(str(options.limits.max_cost))
    limits = Limits(options.limits.max_turns, options.limits.max_tokens, options.limits.max_seconds, cost)
    return Budget(limits, own, clock, definitions.prices.cost)


def _searches_web(definitions: Definitions, catalog: Callable[[], RoleSpecCatalog], name: str) -> bool:
    roles = [each for each in catalog().roles if each.name == name]
    return any(searches_web((*role_settings(role), *definitions.options.answers.config)) for role in roles)


def only_reads(definitions: Definitions, catalog: Callable[[], RoleSpecCatalog], name: str) -> bool:
    """Whether it is certain: of all settings for Codex, only those of models are known to start nothing."""
    role = next((each for each in catalog().roles if each.name == name), None)
    if role is None or role.may_change_workspace or role.auto_approve.commands or set(role.tools) - TOOLS.keys():
        return False
    return all(each.startswith("model") for each in (*role_settings(role), *definitions.options.answers.config))
