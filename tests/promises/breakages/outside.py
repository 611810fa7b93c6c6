"""3. Nothing outside the workspace is written; `.git` and the runs are off limits; models' tests run in the sandbox."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from jinja2 import Environment
from yaml.constructor import SafeConstructor

from codex_multi_role.catalog.role_spec import AutoApprove, _sandbox_for
from codex_multi_role.catalog.template_sandbox import TemplateSandbox
from codex_multi_role.checks import command
from codex_multi_role.codex import permissions, project_instructions
from codex_multi_role.codex.approvals import _decide
from codex_multi_role.codex.codex_settings import without_project_settings
from codex_multi_role.codex.fleet import Member
from codex_multi_role.extensions.results.commit_texts import inert
from codex_multi_role.host import own_python, programs, unpacking
from codex_multi_role.lifecycle import members
from codex_multi_role.lifecycle.definitions import sandbox_of_tests
from codex_multi_role.lifecycle.resuming import require_same_workspace
from codex_multi_role.playbook import loopback
from codex_multi_role.playbook.loopback import LoopbackHandler
from codex_multi_role.reading import yaml_loader
from codex_multi_role.run_folder.events import Approval
from codex_multi_role.steps.turn_events import TurnEvents
from codex_multi_role.workspace import file_copies, git, git_settings, paths, repository, writing
from codex_multi_role.workspace.commands import no_sandbox
from codex_multi_role.workspace.paths import Workspace
from tests.promises.breakage import Broken
from tests.promises.change import constant, replaced, returns, undecorated

PATHS = "workspace/test_paths.py"
PYTHONS = "hostile/test_started_pythons.py"
CONTAINMENT = "steps/test_containment.py"
SANDBOX = "checks/test_sandbox.py::test_tests_cannot_leave_the_sandbox_and_their_report_can"
NOT_THE_RUNS = "steps/test_workspace_changes.py::test_roles_and_tests_cannot_write_to_runs_folder"
HARMLESS_SETTING = "analytics.enabled=false"


def _wherever_it_leads(resolve: Callable[..., Path], self: Workspace, relative: str) -> Path:
    paths._refuse_text(relative)
    path = Path(os.path.realpath(self.root / relative))
    return resolve(self, relative) if path.is_relative_to(self.root) else path


def _unresolved(resolve: Callable[..., Path], self: Workspace, relative: str) -> Path:
    path = self.root / relative
    return resolve(self, relative) if path.parent == Path(os.path.realpath(path.parent)) else path


def _written_through(_: object, folder: int, name: str) -> Iterator[str]:
    temporary = f"{name}.tmp"
    yield temporary
    source = os.open(temporary, os.O_RDONLY, dir_fd=folder)
    target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, dir_fd=folder)
    os.write(target, os.read(source, 1 << 20))
    os.unlink(temporary, dir_fd=folder)


def _with_whole_path(member: Callable[..., Member], *given: object) -> Member:
    made = member(*given)
    environment = {**made.launch.environment, "PATH": os.environ["PATH"]}
    return replace(made, launch=replace(made.launch, environment=environment))


def _of_anything(_: object, path: Path, most: int) -> bytes | None:
    with suppress(OSError), open(path, "rb", opener=project_instructions._open_at_once) as file:
        return file.read(most)
    return None


def _without_origin(admit: Callable[..., bool], self: LoopbackHandler) -> bool:
    del self.headers["Origin"]
    return admit(self)


def _without_host(admit: Callable[..., bool], self: LoopbackHandler) -> bool:
    self.headers.replace_header("Host", f"localhost:{self.loopback.server_port}")
    return admit(self)


OUTSIDE: Broken = {
    "no entry of a skill's archive leads outside its folder": (
        replaced(
            unpacking._checked,
            lambda checked, name: PurePosixPath(name) if ".." in name.split("/") else checked(name),
        ),
        "catalog/test_skills.py::test_entry_outside_the_folder_is_refused",
    ),
    "`..` leads nowhere": (
        replaced(
            paths._refuse_text, lambda refuse, relative: None if ".." in relative.split("/") else refuse(relative)
        ),
        f"{PATHS}::test_path_outside_or_off_limits_is_unsafe_by_every_spelling",
    ),
    "what really lies outside is refused": (
        replaced(Workspace.resolve_inside, _wherever_it_leads),
        f"{PATHS}::test_symlinks_that_lead_outside_or_nowhere",
        f"{PATHS}::test_no_path_ever_leads_outside",
    ),
    "paths are resolved against symlinks": (
        replaced(Workspace.resolve_inside, _unresolved),
        f"{PATHS}::test_path_outside_or_off_limits_is_unsafe_by_every_spelling",
        f"{CONTAINMENT}::test_link_that_a_role_made_leads_no_submitted_file_outside",
    ),
    "no symlink made meanwhile is followed": (
        constant(writing, "_FOLDER", writing._FOLDER & ~os.O_NOFOLLOW),
        "workspace/test_applied_files.py::test_symlink_made_after_the_path_was_judged_is_not_followed",
    ),
    "no symlink in a merge's way is followed": (
        returns(writing._judge, None),
        "workspace/test_worktrees.py::test_nothing_is_written_outside_or_into_git_or_a_run",
    ),
    "a run in its own worktree cannot write to the user's tree": (
        returns(members._users_tree, tuple[Path, ...]()),
        "lifecycle/test_own_worktree.py::test_commands_write_to_the_worktree_only",
    ),
    "nothing is copied into a worktree through a symlink": (
        returns(file_copies.make_parents, True),
        "workspace/test_preparation.py::test_nothing_is_copied_through_a_link_in_the_copy",
    ),
    "a hard link is replaced": (
        replaced(undecorated(writing.replacing), _written_through),
        "workspace/test_applied_files.py::test_hard_link_is_broken_not_written_through",
        "workspace/test_worktrees.py::test_hard_link_is_replaced_not_written_through",
        f"{CONTAINMENT}::test_hard_link_made_by_role_is_replaced_not_written_through",
    ),
    "`.git` is off limits to what is handed in": (
        returns(paths.is_git_folder, False),
        f"{PATHS}::test_path_outside_or_off_limits_is_unsafe_by_every_spelling",
        f"{CONTAINMENT}::test_git_hooks_cannot_be_changed_by_role",
    ),
    "`.git` is off limits by every spelling": (
        replaced(paths._plain, lambda _, name: name.split(":")[0].rstrip(" .")),
        f"{PATHS}::test_path_outside_or_off_limits_is_unsafe_by_every_spelling",
        f"{CONTAINMENT}::test_git_hooks_cannot_be_changed_by_role",
    ),
    "`.git` is off limits to commands": (
        constant(permissions, "KEPT_FROM_WRITING", dict.fromkeys(permissions.KEPT_FROM_WRITING, "write")),
        f"{CONTAINMENT}::test_git_hooks_cannot_be_changed_by_role",
        SANDBOX,
    ),
    "`.git` of nested repositories is off limits to commands": (
        returns(repository.repositories_below, tuple[Path, ...]()),
        f"{CONTAINMENT}::test_nested_repository_hooks_cannot_be_changed",
    ),
    "our git does not read the configuration of a repository": (
        returns(git_settings.settings_of, None),
        "hostile/test_git.py::test_repository_runs_no_program",
    ),
    "no filter runs where a model wrote": (
        constant(git, "NO_FILTER", ()),
        "hostile/test_git.py::test_filter_of_the_user_runs_in_no_workspace",
    ),
    "our git is none that a role wrote": (
        replaced(git.Git._base, lambda base, self: base(self) | {"PATH": os.environ["PATH"]}),
        f"{CONTAINMENT}::test_program_put_on_path_by_role_runs_only_in_its_commands",
    ),
    "a Python of ours imports nothing from the folder in which it starts": (
        replaced(own_python.own_module, lambda base, *given: [each for each in base(*given) if each != "-P"]),
        f"{PYTHONS}::test_run_process_of_a_worker_executes_nothing_of_its_folder",
    ),
    "a Python of ours imports nothing that a variable finds in a workspace": (
        replaced(own_python.own_environment, lambda _, environment: dict(environment)),
        f"{PYTHONS}::test_no_file_of_a_workspace_is_executed",
    ),
    "the sandbox is none that a role wrote": (
        constant(permissions, "_OUTSIDE", permissions._OUTSIDE.replace("PATH=$1", "UNUSED=$1")),
        "codex/test_permissions.py::test_sandbox_itself_is_not_taken_from_the_path_of_its_command",
    ),
    "no command takes a program from where a recorded run's models wrote": (
        returns(programs.exclude_from_path, None),
        "hostile/test_workspaces.py::test_nothing_of_a_workspace_runs_outside_the_sandbox",
    ),
    "no variable lets our programs load what a role wrote": (
        returns(programs.require_unsteered, None),
        "hostile/test_environments.py::test_run_names_the_variable_and_starts_nothing",
    ),
    "no role writes what our programs load from a temporary folder": (
        returns(programs.loaded_in_temporary_folders, list[Path]()),
        f"{CONTAINMENT}::test_what_we_load_from_a_temporary_folder_is_kept_from_roles",
    ),
    "Codex runs no program that a role wrote": (
        replaced(members.Members._member, _with_whole_path),
        f"{CONTAINMENT}::test_program_put_on_path_by_role_runs_only_in_its_commands",
    ),
    "`.codex` is off limits to what is handed in": (
        constant(paths, "CODEX_FOLDERS", ()),
        f"{PATHS}::test_path_outside_or_off_limits_is_unsafe_by_every_spelling",
        f"{CONTAINMENT}::test_project_codex_config_is_neither_writable_nor_used",
    ),
    "no project is trusted with what Codex runs": (
        returns(without_project_settings, HARMLESS_SETTING),
        f"{CONTAINMENT}::test_project_codex_config_is_neither_writable_nor_used",
    ),
    "a role cannot put a device in the place of AGENTS.md": (
        replaced(project_instructions._read, _of_anything),
        "codex/test_project_instructions.py::test_document_that_is_not_a_file_is_ignored",
    ),
    "the runs are off limits to what is handed in": (
        returns(Workspace.is_forbidden, False),
        f"{PATHS}::test_path_outside_or_off_limits_is_unsafe_by_every_spelling",
        "steps/test_workspace_changes.py::test_unsafe_paths_are_not_written",
    ),
    "the runs are off limits to commands and tests": (
        replaced(
            members.unwritable_paths,
            lambda kept, definitions, folder, steering: tuple(
                each for each in kept(definitions, folder, steering) if each != folder.path.parent
            ),
        ),
        NOT_THE_RUNS,
    ),
    "models' tests run in the sandbox": (
        replaced(sandbox_of_tests, lambda *_: no_sandbox),
        f"{CONTAINMENT}::test_conftest_reaches_nothing_outside",
    ),
    "they write nowhere else": (
        replaced(
            permissions.profile,
            lambda profile, access, *rest: profile(replace(access, exclude_slash_tmp=False), *rest),
        ),
        SANDBOX,
        f"{CONTAINMENT}::test_conftest_reaches_nothing_outside",
    ),
    "they have no network": (
        replaced(
            permissions.profile,
            lambda profile, access, *rest: profile(replace(access, network_access=True), *rest),
        ),
        SANDBOX,
        f"{CONTAINMENT}::test_conftest_reaches_nothing_outside",
    ),
    "a check's command runs in the sandbox": (
        replaced(
            command._run,
            lambda run, context, options, *rest: run(context, options.model_copy(update={"sandbox": False}), *rest),
        ),
        "checks/test_command.py::test_in_codexs_sandbox",
    ),
    "a role writes nothing by default": (
        returns(_sandbox_for, "workspace-write"),
        "catalog/test_role_spec.py::test_flags_become_sandbox_and_approval_policy",
    ),
    "leaving the sandbox is declined by default": (
        replaced(_decide, lambda decide, allowed: decide(True)),
        "codex/test_incoming.py::test_default_policy_declines",
        f"{CONTAINMENT}::test_escalation_is_logged_whatever_was_decided",
    ),
    "a role's YAML grants nothing by default": (
        constant(AutoApprove, "commands", True),
        f"{CONTAINMENT}::test_escalation_is_logged_whatever_was_decided",
    ),
    "a request to leave the sandbox is in the log": (
        replaced(
            TurnEvents._publish,
            lambda publish, self, event: None if isinstance(event, Approval) else publish(self, event),
        ),
        f"{CONTAINMENT}::test_escalation_is_logged_whatever_was_decided",
    ),
    "a web page does not reach the playbook's server": (
        replaced(LoopbackHandler.admit, _without_origin),
        "playbook/test_playbook_server.py::test_web_page_is_refused",
    ),
    "a foreign host name does not reach the playbook's server": (
        replaced(LoopbackHandler.admit, _without_host),
        "playbook/test_playbook_server.py::test_foreign_host_name_is_refused",
    ),
    "the playbook's server listens on loopback": (
        constant(loopback, "LOOPBACK", "0.0.0.0"),
        "playbook/test_playbook_server.py::test_it_listens_on_loopback_only",
    ),
    "YAML makes plain values only": (
        constant(yaml_loader._JsonShapedLoader, "yaml_constructors", SafeConstructor.yaml_constructors),
        "catalog/test_yaml_source.py::test_every_mistake_names_file_and_line",
    ),
    "aliases do not explode": (
        constant(yaml_loader, "MAX_EXPANDED_CHARACTERS", math.inf),
        "catalog/test_yaml_source.py::test_aliases_that_explode_are_refused",
    ),
    "templates run in a sandbox": (
        replaced(TemplateSandbox.getattr, lambda _, self, obj, attribute: Environment.getattr(self, obj, attribute)),
        "catalog/test_templates.py::test_template_that_fails_says_where[{{ goal.__class__.__mro__ }}-unsafe]",
    ),
    "a moved run does not write into another folder of the old name": (
        returns(require_same_workspace, None),
        "engine/test_resume_changed.py::test_moved_project_is_not_resumed_in_checkout_at_old_path",
    ),
    "what a role reports does nothing on a git host": (
        replaced(inert, lambda _, text: text),
        "extensions/results/test_changed_lines.py::test_reports_of_roles_refer_to_nothing_of_a_git_host",
        "extensions/results/pull_request/test_description.py::test_title_refers_to_nothing",
    ),
    "a result is not published by programs of the workspace": (
        returns(programs.exclude_from_path, None),
        "extensions/results/pull_request/test_creating.py::test_programs_of_the_workspace_are_not_run",
    ),
}
