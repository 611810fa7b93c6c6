"""Putting a run's parts together: from options to live processes. Everything that can be wrong is found before."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codex_multi_role import __version__
from codex_multi_role.catalog import FlowSpec, RoleSpec, RoleSpecCatalog, load_flows, packaged_roles
from codex_multi_role.checks import find_check
from codex_multi_role.codex.approvals import ApprovalPolicy, ToolSpec
from codex_multi_role.codex.client import ThreadSettings
from codex_multi_role.codex.fleet import Fleet, Member, Started
from codex_multi_role.codex.locator import find_codex
from codex_multi_role.codex.permissions import PROFILE, WriteAccess, has_own_rules, profile
from codex_multi_role.codex.sandbox import sandboxed
from codex_multi_role.codex.settings import (
    app_server_argv,
    as_settings,
    holds_secret,
    marking,
    needs_user_home,
    user_home,
    without_user_servers,
)
from codex_multi_role.codex.transport import Launch
from codex_multi_role.codex.warm_home import WarmHomes, user_store
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.flow import WalkBound, walk_bound
from codex_multi_role.options import RunOptions
from codex_multi_role.processes import Family
from codex_multi_role.redaction import Redactor
from codex_multi_role.run_folder import (
    EventLog,
    RunFolder,
    begun_turns,
    inherited_threads,
    list_turns,
    own_turns,
)
from codex_multi_role.run_folder.atomic import make_folder, storage_errors
from codex_multi_role.run_folder.events import RoleRestarted, RoleStarted, Warning
from codex_multi_role.steps import RunResources, TestSettings
from codex_multi_role.steps.budget import Budget, Limits
from codex_multi_role.steps.terms import terms
from codex_multi_role.steps.work_clock import WorkClock
from codex_multi_role.tools import find_tool, tool_names
from codex_multi_role.workspace import ProtectedFiles, Snapshots, Workspace, Worktrees, git_folders_below

LOOPBACK = "127.0.0.1,localhost"
PLAYBOOK_MODEL = "playbook"
SANDBOX_HOME = "tests"
LOOKING_CHECKS = frozenset({"tests", "schema", "choose"})


@dataclass(frozen=True)
class Definitions:
    """What a run is made of, loaded and checked: nothing has been started or written yet."""

    options: RunOptions
    catalog: RoleSpecCatalog
    flows: Mapping[str, FlowSpec]
    inputs: Mapping[str, Any]
    playbook: Any
    codex: Path
    workspace: Path

    @property
    def flow(self) -> FlowSpec:
        """The flow of the run; the others are those it calls."""
        return self.flows[self.options.flow]

    def bound(self, cycles: int | None = None) -> WalkBound:
        """The most that the run's walk, and every walk within it, can come to. Raises `DefinitionError`.

        ``cycles``: others than those of the options.
        """
        options = self.options
        given = terms(
            cycles=cycles or options.cycles,
            repair_attempts=options.repair_attempts,
            run_tests=options.run_tests,
            test_seconds=options.test_seconds,
        )
        return walk_bound(self.flows, options.flow, self.catalog, given, self.inputs)

    @property
    def roles(self) -> list[RoleSpec]:
        """The roles the flows ask, in the catalog's order."""
        asked = {step.ask for flow in self.flows.values() for step in flow.steps if step.ask}
        return [role for role in self.catalog.roles if "*" in asked or role.name in asked]

    @property
    def changes_workspace(self) -> bool:
        """Whether some role or check of the run is there to change the workspace."""
        checks = {step.check for flow in self.flows.values() for step in flow.steps if step.check}
        return any(role.may_change_workspace for role in self.roles) or not checks <= LOOKING_CHECKS


def roles_folder(given: Path | None) -> Path:
    """``--roles``, else ``./roles`` when it holds a catalog, else the packaged one."""
    if given is not None:
        return given
    local = Path("roles")
    return local if (local / "catalog.yaml").is_file() else packaged_roles()


def load_catalog(given: Path | None) -> RoleSpecCatalog:
    """The catalog of `roles_folder`, its tools looked up. Raises `UsageError`."""
    catalog = RoleSpecCatalog.load(roles_folder(given), tool_names)
    for name in {name for role in catalog.roles for name in role.tools}:
        find_tool(name)
    return catalog


def load_flow_and_called(name: str, catalog: RoleSpecCatalog) -> dict[str, FlowSpec]:
    """`load_flows` of the catalog's folder, their checks looked up. Raises `UsageError`."""
    flows = load_flows(name, catalog.source.parent, catalog)
    for flow in flows.values():
        for index, step in enumerate(flow.steps):
            if step.check is not None:
                _check_check(step.check, f"{flow.source}: steps[{index}].check")
    return flows


def _check_check(name: str, place: str) -> None:
    try:
        find_check(name)
    except UsageError as error:
        raise DefinitionError(f"{place}: {error}", error.hint) from error


def load_definitions(options: RunOptions) -> Definitions:
    """Read and check everything ``options`` names. Raises `UsageError` and `CodexNotFound`."""
    catalog = load_catalog(options.roles)
    _refuse_secrets(options, catalog)
    flows = load_flow_and_called(options.flow, catalog)
    playbook = None
    if options.playbook is not None:
        from codex_multi_role.playbook import load_playbook

        playbook = load_playbook(options.playbook, catalog.source.parent)
    codex = find_codex(options.codex_bin, os.environ)
    definitions = Definitions(
        options=replace(options, codex_bin=codex) if options.codex_bin else options,  # PATH may be another at a resume
        catalog=catalog,
        flows=flows,
        inputs=flows[options.flow].resolve_inputs(options.inputs),
        playbook=playbook,
        codex=codex,
        workspace=_checked_workspace(options.workspace),
    )
    definitions.bound()  # for what it raises: a flow without a bound is refused before anything starts
    return definitions


def _refuse_secrets(options: RunOptions, catalog: RoleSpecCatalog) -> None:
    places = [(setting, "-c ", UsageError) for setting in options.config]
    for role in catalog.roles:
        where = f"{role.source}: role {role.name}: codex_config."
        places += [(setting, where, DefinitionError) for setting in as_settings(role.codex_config)]
    redact = Redactor(os.environ)
    for setting, where, error in places:
        if holds_secret(setting, redact):
            raise error(
                f"{where}{setting.partition('=')[0]}: holds what looks like a secret, which would lie in the run's "
                "folder and in the list of processes",
                'Put it into an environment variable and name that one: env_key="MY_PROVIDER_KEY", '
                'env_http_headers={Authorization="MY_HEADER"}.',
            )


def _checked_workspace(path: Path) -> Path:
    try:
        exists = path.exists()
    except OSError as error:
        raise UsageError(f"the workspace {path} cannot be reached: {error.strerror}") from error
    if not exists:
        raise UsageError(f"the workspace {path} does not exist", f"Create it first: mkdir -p {path}")
    if not path.is_dir():
        raise UsageError(f"the workspace {path} is not a folder", "Name a folder with --workspace.")
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"the workspace {path} cannot be written", "Fix its permissions or name another.")
    return path.resolve()


def keep_definitions(definitions: Definitions, folder: RunFolder) -> str:
    """Copy the YAML this run starts with to ``catalog/``; returns the catalog file's path below it.

    The files keep their places relative to each other, so that the copy loads like the original.
    """
    files = [path.resolve() for path in definitions.catalog.files]
    base = Path(os.path.commonpath([path.parent for path in files]))
    for path in files:
        _copy(path, folder.catalog_path / path.relative_to(base))
    catalog = folder.catalog_path / definitions.catalog.source.resolve().relative_to(base)
    for flow in definitions.flows.values():
        _copy(flow.source, catalog.parent / "flows" / f"{flow.name}.yaml")
    if definitions.playbook is not None:
        _copy(definitions.playbook.source, catalog.parent / "playbooks" / definitions.playbook.source.name)
    return str(catalog.relative_to(folder.catalog_path))


def _copy(source: Path, target: Path) -> None:
    make_folder(target.parent)
    with storage_errors(target):
        shutil.copyfile(source, target)


def remembered_options(folder: RunFolder, record: Mapping[str, Any]) -> RunOptions:
    """The options of a recorded run, with the YAML that it kept; ``record`` is its ``run.json``."""
    catalog = folder.catalog_path / record["catalog_file"]
    remembered = replace(RunOptions.from_record(record["options"]), roles=catalog)
    if remembered.playbook is None:
        return remembered
    return replace(remembered, playbook=str(catalog.parent / "playbooks" / record["playbook_file"]))


@contextmanager
def idle_parts(definitions: Definitions, folder: RunFolder) -> Iterator[RunResources]:
    """What a run needs, with nothing started: enough to walk through its past."""
    events = EventLog(folder.events_path, folder.redact)
    fleet = _fleet(definitions, folder, events, ())
    try:
        yield _resources(definitions, folder, events, fleet, WorkClock(0.0))
    finally:
        fleet.stop()
        events.close()


@contextmanager
def live_parts(
    definitions: Definitions, folder: RunFolder, events: EventLog, clock: WorkClock
) -> Iterator[RunResources]:
    """Start the playbook and the Codex processes, lend what a run needs, and end them all.

    ``clock`` counts how long the run is worked on.
    """
    with ExitStack() as stack:
        provider: tuple[str, ...] = ()
        if definitions.playbook is not None:
            from codex_multi_role.playbook import PlaybookServer

            server = stack.enter_context(PlaybookServer(definitions.playbook))
            provider = _playbook_settings(server.base_url)
        read_only = _kept_from_writing(definitions, folder)
        homes = WarmHomes(definitions.codex, user_store(os.environ), Family.of_run(folder.path, "homes"))
        fleet = _fleet(definitions, folder, events, provider, read_only, homes)
        stack.callback(fleet.stop)
        fleet.start()
        stack.enter_context(homes.made_meanwhile())
        yield _resources(definitions, folder, events, fleet, clock, read_only)


def _playbook_settings(base_url: str) -> tuple[str, ...]:
    table = {
        "name": "playbook",
        "base_url": base_url,
        "wire_api": "responses",
        "request_max_retries": 0,
        "stream_max_retries": 0,
    }
    return as_settings({"model_provider": "playbook", "model": PLAYBOOK_MODEL, "model_providers.playbook": table})


def _fleet(
    definitions: Definitions,
    folder: RunFolder,
    events: EventLog,
    provider: tuple[str, ...],
    read_only: tuple[Path, ...] = (),
    homes: WarmHomes | None = None,
) -> Fleet:
    threads, began_with = _threads(folder)
    inherited = inherited_threads(folder)

    def settings_of(role: RoleSpec) -> tuple[str, ...]:
        # The playbook's provider comes last: with --playbook no model is asked, whatever else the settings say.
        return (*as_settings(role.codex_config), *definitions.options.config, *provider)

    def member(instance: str) -> Member:
        role = definitions.catalog.role(role_of(instance, definitions.catalog))
        if homes is not None and not needs_user_home(settings_of(role)):
            homes.fill(folder.codex_home(instance))
        each = _member(definitions, folder, role, instance, settings_of(role), read_only)
        return replace(each, thread_id=threads.get(instance), inherited=inherited)

    for role in definitions.roles:
        kept = began_with.get(threads.get(role.name, ""), role.tools)
        if set(kept) != set(role.tools):
            events.publish(Warning(_kept_tools(role, kept)))

    def started(each: Started) -> None:
        events.publish(RoleStarted(each.role, each.pid, each.thread_id, each.seconds, each.resumed))

    return Fleet(
        {role.name: member(role.name) for role in definitions.roles},
        more=member,
        version=__version__,
        redact=folder.redact,
        on_started=started,
        on_restart=lambda role, reason: events.publish(RoleRestarted(role, reason)),
        first_alone=any(needs_user_home(settings_of(role)) for role in definitions.roles),
        most=definitions.options.max_processes,
    )


def _threads(folder: RunFolder) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """The latest thread of each instance, and the tools that each thread was started with."""
    latest: dict[str, str] = {}
    tools: dict[str, tuple[str, ...]] = {}
    for instance, turn in list_turns(folder):
        result = turn.result()
        thread = result.get("thread_id")
        if thread:  # the latest turn may have been killed before it was known on which one
            latest[instance] = thread
            tools.setdefault(thread, tuple(result.get("tools", ())))
    return latest, tools


def _kept_tools(role: RoleSpec, kept: Sequence[str]) -> str:
    then, now = (", ".join(names) or "none" for names in (kept, role.tools))
    return (
        f"{role.name}: its conversation keeps the tools it began with ({then}), Codex cannot change them; those that "
        f"its YAML names now ({now}) need a run of their own"
    )


def role_of(instance: str, catalog: RoleSpecCatalog) -> str:
    """The role that ``instance`` is a process of: itself, or ``planner`` for ``planner.2``."""
    names = {role.name for role in catalog.roles}
    return instance if instance in names else instance.rpartition(".")[0]


def _member(
    definitions: Definitions,
    folder: RunFolder,
    role: RoleSpec,
    instance: str,
    settings: tuple[str, ...],
    read_only: tuple[Path, ...],
) -> Member:
    model = PLAYBOOK_MODEL if definitions.playbook else role.resolved_model(os.environ, definitions.options.model)
    if needs_user_home(settings):
        home, own_home = user_home(os.environ), {}
        settings = (*without_user_servers(home), *settings)
    else:
        home, own_home = None, {"CODEX_HOME": str(folder.codex_home(instance))}
    permissions = ""
    if role.sandbox == "workspace-write" and not has_own_rules(settings):
        permissions = PROFILE
        settings = (*settings, *profile(WriteAccess.of(settings, home), read_only))
    family = Family.of_run(folder.path, instance)
    return Member(
        role=instance,
        launch=Launch(
            argv=app_server_argv(definitions.codex, (*settings, marking(family))),
            environment={**os.environ, "NO_PROXY": _no_proxy(), **own_home},
            folder=definitions.workspace,
            stderr_path=folder.role_folder(instance) / "stderr.log",
            family=family,
        ),
        thread=ThreadSettings(
            str(definitions.workspace), role.sandbox, role.approval_policy, model, permissions, _tools(role)
        ),
        approvals=ApprovalPolicy(role.auto_approve.commands, role.auto_approve.file_changes),
        wire_log=folder.role_folder(instance) / "events.jsonl",
    )


def _tools(role: RoleSpec) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(tool.name, tool.description, tool.input_schema) for tool in map(find_tool, role.tools))


def _kept_from_writing(definitions: Definitions, folder: RunFolder) -> tuple[Path, ...]:
    """What neither a role nor the tests may change, even where it lies in the workspace or in a temporary folder."""
    runs_dir, store = folder.path.parent, user_store(os.environ)
    databases = [store] if store.is_dir() else []
    return (runs_dir, *databases, *git_folders_below(definitions.workspace, runs_dir))


def _no_proxy() -> str:
    return ",".join(part for part in (os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), LOOPBACK) if part)


def _resources(
    definitions: Definitions,
    folder: RunFolder,
    events: EventLog,
    fleet: Fleet,
    clock: WorkClock,
    read_only: tuple[Path, ...] = (),
) -> RunResources:
    options = definitions.options
    limits = Limits(options.max_turns, options.max_tokens, options.max_seconds)
    ledger = ((role_of(instance, definitions.catalog), turn) for instance, turn in own_turns(folder))
    runs_dir = folder.path.parent
    holds_workspace = definitions.workspace.is_relative_to(runs_dir)
    workspace = Workspace(definitions.workspace, (folder.path if holds_workspace else runs_dir,))

    snapshots = Snapshots(folder.snapshots_path, workspace)
    protect = tuple(sorted({glob for flow in definitions.flows.values() for glob in flow.protect}))

    def wrap(argv: Sequence[str], writable: Path) -> list[str]:
        if not options.test_sandbox:
            return list(argv)
        return sandboxed(definitions.codex, argv, writable, read_only)

    return RunResources(
        goal=options.goal,
        catalog=definitions.catalog,
        folder=folder,
        events=events,
        fleet=fleet,
        workspace=workspace,
        snapshots=snapshots,
        worktrees=Worktrees(folder.path / "worktrees", workspace, snapshots, folder.run_id),
        environment=Family.of_run(folder.path, "checks").marked(
            {**os.environ, "CODEX_HOME": str(folder.codex_home(SANDBOX_HOME))}
        ),
        tests=TestSettings(options.run_tests, options.pytest_cmd, options.test_seconds),
        sandbox=wrap,
        budget=Budget(limits, ledger, clock),
        clock=clock,
        repair_attempts=options.repair_attempts,
        run_model=options.model,
        changes_workspace=definitions.changes_workspace,
        left_turns=begun_turns(folder),
        protect=protect,
        first_protected=ProtectedFiles(snapshots, workspace, protect).first() if protect else "",
        yes=options.yes,
        stopping=threading.Event(),
    )
