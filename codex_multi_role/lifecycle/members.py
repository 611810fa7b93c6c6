"""How each role's Codex process is configured: its home, settings, sandbox, thread and tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from codex_multi_role import __version__
from codex_multi_role.catalog import SKILLS_FOLDER, RoleSpec, RoleSpecCatalog
from codex_multi_role.codex.approvals import ApprovalPolicy, ToolSpec
from codex_multi_role.codex.child import Launch
from codex_multi_role.codex.codex_settings import (
    WITHOUT_SKILLS,
    app_server_argv,
    as_settings,
    known_settings,
    marking,
    needs_user_home,
    only_these_skills,
    user_home,
    without_own_retries,
    without_project_settings,
    without_user_servers,
)
from codex_multi_role.codex.fleet import Fleet, Member, Started
from codex_multi_role.codex.permissions import PROFILE, WriteAccess, has_own_rules, profile, require_exact
from codex_multi_role.codex.project_instructions import ProjectInstructions
from codex_multi_role.codex.thread import ThreadSettings
from codex_multi_role.codex.warm_home import WarmHomes, user_store
from codex_multi_role.host.processes import Family
from codex_multi_role.host.programs import program_path
from codex_multi_role.lifecycle.definitions import Definitions, role_settings
from codex_multi_role.lifecycle.recordings.model_providers import ModelProviders
from codex_multi_role.lifecycle.steering import Steering
from codex_multi_role.run_folder import EventLog, RunFolder, inherited_threads, list_turns
from codex_multi_role.run_folder.events import RoleRestarted, RoleStarted, Warning
from codex_multi_role.tools import find_tool
from codex_multi_role.workspace import repositories_below

LOOPBACK = "127.0.0.1,localhost"


def fleet_of(
    definitions: Definitions,
    folder: RunFolder,
    events: EventLog,
    models: ModelProviders,
    read_only: tuple[Path, ...] = (),
    homes: WarmHomes | None = None,
    catalog: Callable[[], RoleSpecCatalog] | None = None,
    kept_folder: Callable[[], Path] | None = None,
) -> Fleet:
    """The processes of a run, configured but not started.

    ``models``: what replaces the model providers. ``read_only``: what no role may write. ``homes``: templates of new
    Codex homes. ``catalog`` returns the catalog to configure a process with, by default the definitions';
    ``kept_folder`` the folder of the run's copy of it, where skills are unpacked.
    """
    now = catalog or (lambda: definitions.catalog)
    threads, began_with = _threads(folder)
    inherited = inherited_threads(folder)

    def settings_of(role: RoleSpec) -> tuple[str, ...]:
        # The playbook's provider comes last: with --playbook no other setting can reach a model.
        return (*role_settings(role), *definitions.options.config, *models.provider(role.name))

    def member(instance: str) -> Member:
        role = now().role(definitions.catalog.role_of(instance))
        skills = _skill_folders(role, now(), kept_folder()) if kept_folder is not None else {}
        if homes is not None and not needs_user_home(settings_of(role)):
            homes.fill(folder.codex_home(instance))
        each = _member(definitions, folder, role, instance, settings_of(role), models, read_only, skills)
        return replace(each, thread_id=threads.get(instance), inherited=inherited)

    for role in definitions.roles:
        kept = began_with.get(threads.get(role.name, ""), role.tools)
        if set(kept) != set(role.tools):
            events.publish(Warning(_kept_tools(role, kept)))

    def started(each: Started) -> None:
        events.publish(RoleStarted(each.role, each.pid, each.thread_id, each.seconds, each.resumed))
        if each.warning:
            events.warn_once(each.role, each.warning)

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
        if thread:  # missing if the turn was killed before its thread was known
            latest[instance] = thread
            tools.setdefault(thread, tuple(result.get("tools", ())))
    return latest, tools


def _kept_tools(role: RoleSpec, kept: Sequence[str]) -> str:
    then, now = (", ".join(names) or "none" for names in (kept, role.tools))
    return (
        f"{role.name}: its conversation keeps the tools it began with ({then}), Codex cannot change them; those that "
        f"its YAML names now ({now}) need a run of their own"
    )


def set_up_by(role: RoleSpec) -> tuple[object, ...]:
    """Those settings of a role that its process and its thread are configured with."""
    return (
        role.sandbox,
        role.approval_policy,
        role.auto_approve,
        role.model,
        role.model_env,
        role.mcp_servers,
        role.codex_config,
        role.project_instructions,
        role.skills,
    )


def _member(
    definitions: Definitions,
    folder: RunFolder,
    role: RoleSpec,
    instance: str,
    settings: tuple[str, ...],
    models: ModelProviders,
    read_only: tuple[Path, ...],
    skills: Mapping[str, Path],
) -> Member:
    model = models.model(role.name) or role.resolved_model(os.environ, definitions.options.model)
    if needs_user_home(settings):
        home, own_home = user_home(os.environ), {}
        settings = (*without_user_servers(home), *settings)
    else:
        home, own_home = None, {"CODEX_HOME": str(folder.codex_home(instance))}
    settings = (without_project_settings(definitions.workspace, folder.path), *settings)
    settings = (*settings, *models.proxy_settings(settings, home))
    settings = (*settings, *without_own_retries(settings, home), *only_these_skills(skills, settings, home))
    permissions = ""
    if role.sandbox == "workspace-write" and not has_own_rules(settings):
        permissions = PROFILE
        settings = (*settings, *profile(WriteAccess.of(settings, home), read_only, definitions.workspace))
    instructions = None
    if role.project_instructions:
        instructions = ProjectInstructions.configured(definitions.workspace, known_settings(settings, home))
    elif not skills:
        settings = (WITHOUT_SKILLS, *settings)
    family = Family.of_run(folder.path, instance)
    return Member(
        role=instance,
        launch=Launch(
            argv=app_server_argv(definitions.codex, (*settings, marking(family), *_path_of_commands())),
            environment={**os.environ, "PATH": program_path(os.environ), "NO_PROXY": _no_proxy(), **own_home},
            folder=definitions.workspace,
            stderr_path=folder.role_folder(instance) / "stderr.log",
            family=family,
        ),
        thread=ThreadSettings(
            str(definitions.workspace),
            role.sandbox,
            role.approval_policy,
            model,
            permissions,
            _tools(role),
            instructions,
            tuple(str(path) for path in skills.values()),
            role.reasoning_effort,
        ),
        approvals=ApprovalPolicy(role.auto_approve.commands, role.auto_approve.file_changes),
        wire_log=folder.role_folder(instance) / "events.jsonl",
    )


def _skill_folders(role: RoleSpec, catalog: RoleSpecCatalog, kept: Path) -> dict[str, Path]:
    """Where the role's skills are unpacked, by name."""
    return {name: (kept / SKILLS_FOLDER / catalog.skills[name].kept_name).resolve() for name in role.skills}


def _path_of_commands() -> tuple[str, ...]:
    """The setting that gives a role's commands the user's whole PATH if Codex itself runs with only a part of it."""
    path = os.environ.get("PATH", os.defpath)
    return () if path == program_path(os.environ) else as_settings({"shell_environment_policy.set.PATH": path})


def _tools(role: RoleSpec) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(tool.name, tool.description, tool.input_schema) for tool in map(find_tool, role.tools))


def kept_from_writing(definitions: Definitions, folder: RunFolder, steering: Steering) -> tuple[Path, ...]:
    """What neither a role nor the tests may change, even inside the workspace or a temporary folder.

    Raises `UsageError` for a path that the sandbox cannot protect.
    """
    runs_dir, store = folder.path.parent, user_store(os.environ)
    databases = [store] if store.is_dir() else []
    recording = definitions.options.record
    written = [recording.resolve()] if recording is not None and recording.is_file() else []
    below = repositories_below(definitions.workspace, runs_dir)
    kept = tuple(dict.fromkeys((runs_dir, *databases, *written, *steering.existing, *below)))
    if definitions.needs_sandbox:
        require_exact(kept)
    return kept


def _no_proxy() -> str:
    return ",".join(part for part in (os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), LOOPBACK) if part)
