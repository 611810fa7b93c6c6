"""How each role's Codex process is configured: its home, settings, sandbox, thread and tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from codex_multi_role.catalog import KEPT_SKILLS, RoleSpec, RoleSpecCatalog
from codex_multi_role.checks.tools import find_tool
from codex_multi_role.codex.approvals import ApprovalPolicy, ToolSpec
from codex_multi_role.codex.child import Launch
from codex_multi_role.codex.codex_settings import (
    WITHOUT_SKILLS,
    app_server_argv,
    as_settings,
    known_settings,
    marking,
    needed_user_home,
    needs_user_home,
    only_these_skills,
    unread_user_home,
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
from codex_multi_role.host.programs import loaded_in_temporary_folders, program_path
from codex_multi_role.host.user_cache import make_private, user_state
from codex_multi_role.lifecycle.definitions import Definitions, role_settings
from codex_multi_role.lifecycle.model_providers import ModelProviders, sources_of
from codex_multi_role.lifecycle.steering import Steering
from codex_multi_role.run_folder import EventLog, RunFolder, inherited_threads, list_turns
from codex_multi_role.run_folder.events import RoleRestarted, RoleStarted, Warning
from codex_multi_role.version import __version__
from codex_multi_role.workspace import repositories_below
from codex_multi_role.workspace.manifest import all_places
from codex_multi_role.workspace.repository import Repository

LOOPBACK = "127.0.0.1,localhost"
SET_UP_BY = frozenset(
    {"sandbox", "approval_policy", "auto_approve", "model", "model_env"}
    | {"mcp_servers", "codex_config", "project_instructions", "skills"}
)
"""Those keys of a role that its process and its thread are configured with."""


@dataclass(frozen=True)
class Members:
    """The Codex processes of a run, configured but not started.

    ``models``: what replaces the model providers. ``read_only``: what no role may write. ``homes``: templates of new
    Codex homes. ``catalog`` returns the catalog to configure a process with, by default the definitions';
    ``kept_folder`` the folder of the run's copy of it, where skills are unpacked. ``require_sandbox`` waits until the
    sandbox of the tests has worked once, and raises if it does not: no turn is paid for before that.
    """

    definitions: Definitions
    folder: RunFolder
    models: ModelProviders
    read_only: tuple[Path, ...] = ()
    homes: WarmHomes | None = None
    catalog: Callable[[], RoleSpecCatalog] | None = None
    kept_folder: Callable[[], Path] | None = None
    require_sandbox: Callable[[], object] = lambda: None

    def fleet(self, events: EventLog) -> Fleet:
        """The fleet of these processes; ``events`` reports how they start, and threads that keep their tools."""
        threads, began_with = _threads(self.folder)
        inherited = inherited_threads(self.folder)

        def member(instance: str) -> Member:
            return replace(self._member(instance), thread_id=threads.get(instance), inherited=inherited)

        for role in self.definitions.roles:
            kept = began_with.get(threads.get(role.name, ""), role.tools)
            if set(kept) != set(role.tools):
                events.publish(Warning(_kept_tools(role, kept)))
        return Fleet(
            [role.name for role in self.definitions.roles],
            member,
            version=__version__,
            redact=self.folder.redact,
            on_started=partial(self._publish_start, events),
            on_restart=lambda role, reason: events.publish(RoleRestarted(role, reason)),
            first_alone=any(self._in_user_home),
            most=self.definitions.options.limits.max_processes,
            inherited=inherited,
        )

    def _publish_start(self, events: EventLog, each: Started) -> None:
        self.require_sandbox()
        events.publish(RoleStarted(each.role, each.pid, each.thread_id, each.seconds, each.resumed))
        if each.warning:
            events.warn_once(each.role, each.warning)

    @property
    def have_own_homes(self) -> bool:
        """Whether a process gets a Codex home of its own, in the run folder."""
        return not all(self._in_user_home)

    @property
    def _in_user_home(self) -> list[bool]:
        return [needs_user_home(self._given(role)) for role in self.definitions.roles]

    def _member(self, instance: str) -> Member:
        definitions, folder = self.definitions, self.folder
        catalog = self.catalog() if self.catalog is not None else definitions.catalog
        role = catalog.role(definitions.catalog.role_of(instance))
        skills = _skill_folders(role, catalog, self.kept_folder()) if self.kept_folder is not None else {}
        given = self._given(role)
        home = needed_user_home(given, os.environ)
        if home is None and self.homes is not None:
            self.homes.fill(folder.codex_home(instance))
        settings, permissions, instructions = self._settings(role, given, skills, home)
        family = Family.of_run(folder.path, instance)
        own_home = {"CODEX_HOME": str(folder.codex_home(instance))} if home is None else {}
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
                self.models.model(role.name) or role.resolved_model(os.environ, definitions.options.answers.model),
                permissions,
                tuple(ToolSpec(each.name, each.description, each.input_schema) for each in map(find_tool, role.tools)),
                instructions,
                tuple(str(path) for path in skills.values()),
                role.reasoning_effort,
            ),
            approvals=ApprovalPolicy(role.auto_approve.commands, role.auto_approve.file_changes),
            wire_log=folder.role_folder(instance) / "events.jsonl",
        )

    def _given(self, role: RoleSpec) -> tuple[str, ...]:
        """The settings that the YAML, the command line and the playbook give.

        The playbook's provider comes last: with --playbook no other setting can reach a model.
        """
        return (*role_settings(role), *self.definitions.options.answers.config, *self.models.provider(role.name))

    def _settings(
        self, role: RoleSpec, given: tuple[str, ...], skills: Mapping[str, Path], home: Path | None
    ) -> tuple[tuple[str, ...], str, ProjectInstructions | None]:
        """All settings of the role's process, its permission profile, and the project's instructions for it."""
        workspace = self.definitions.workspace
        settings = (*without_user_servers(home), *given) if home is not None else given
        settings = (without_project_settings(workspace, self.folder.path, all_places()), *settings)
        settings = (*settings, *self.models.proxy_settings(settings, home))
        settings = (*settings, *without_own_retries(settings, home), *only_these_skills(skills, settings, home))
        permissions = ""
        if role.sandbox == "workspace-write" and not has_own_rules(settings):
            permissions = PROFILE
            settings = (*settings, *profile(WriteAccess.of(settings, home), self.read_only, workspace))
        if role.project_instructions:
            is_scripted = self.definitions.playbook is not None or self.definitions.stand_in is not None
            unread = None if is_scripted else unread_user_home(given, os.environ)
            known = known_settings(settings, home)
            return settings, permissions, ProjectInstructions.configured(workspace, known, unread)
        return (settings if skills else (WITHOUT_SKILLS, *settings)), permissions, None


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
        f"{role.name}: its conversation keeps the tools it started with ({then}), Codex cannot change them; those that "
        f"its YAML names now ({now}) need a new run"
    )


def _skill_folders(role: RoleSpec, catalog: RoleSpecCatalog, kept: Path) -> dict[str, Path]:
    """Where the role's skills are unpacked, by name."""
    return {name: (kept / KEPT_SKILLS / catalog.skills[name].kept_name).resolve() for name in role.skills}


def _path_of_commands() -> tuple[str, ...]:
    """The setting that gives a role's commands the user's whole PATH if Codex itself runs with only a part of it."""
    path = os.environ.get("PATH", os.defpath)
    return () if path == program_path(os.environ) else as_settings({"shell_environment_policy.set.PATH": path})


def unwritable_paths(definitions: Definitions, folder: RunFolder, steering: Steering) -> tuple[Path, ...]:
    """What neither a role nor the tests may change, even inside the workspace or a temporary folder.

    Raises `UsageError` for a path that the sandbox cannot protect.
    """
    runs_dir = folder.path.parent
    with suppress(OSError):  # a folder that does not exist could be made by a role
        make_private(user_state())
    ours = [place for place in (user_store(os.environ), user_state(), all_places()) if place.is_dir()]
    written = (source.writes(definitions.options) for source in sources_of(definitions.options.added).values())
    files = [path.resolve() for path in written if path is not None and path.is_file()]
    below = repositories_below(definitions.workspace, runs_dir)
    users = _users_tree(definitions)
    loaded = [each for each in loaded_in_temporary_folders(os.environ) if not _shares(each, definitions.workspace)]
    kept = tuple(dict.fromkeys((runs_dir, *users, *ours, *files, *steering.existing, *below, *loaded)))
    if definitions.needs_sandbox:
        require_exact(kept)
    return kept


def _users_tree(definitions: Definitions) -> tuple[Path, ...]:
    """The user's tree and repository, if the run leaves them as they are: they may be in a temporary folder."""
    repository = Repository.around(definitions.source_workspace) if definitions.options.place.worktree else None
    return (repository.top, repository.git_dir) if repository else ()


def _shares(place: Path, workspace: Path) -> bool:
    return place.is_relative_to(workspace) or workspace.is_relative_to(place)


def _no_proxy() -> str:
    return ",".join(part for part in (os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), LOOPBACK) if part)
