"""3. Nothing outside the workspace is written; `.git` and the runs are off limits; models' tests run in the sandbox."""

from __future__ import annotations

from functools import partial

from tests.promises.breakage import Breakage

broken = partial(Breakage, 3)
PATHS = "workspace/test_paths.py"
CONTAINMENT = "steps/test_containment.py"
NO_TESTS_OUT = "steps/test_workspace_changes.py::test_tests_of_a_model_cannot_reach_out_of_their_sandbox"
SANDBOX = "checks/test_sandbox.py::test_tests_cannot_leave_the_sandbox_and_their_report_can"
NOT_THE_RUNS = "steps/test_workspace_changes.py::test_roles_and_tests_cannot_write_to_runs_folder"
FOLDER = "_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC\n"

OUTSIDE = (
    broken(
        "no entry of a skill's archive leads outside its folder",
        "catalog/skills.py",
        ' or ".." in path.parts or ',
        " or ",
        ("catalog/test_skills.py::test_entry_outside_the_folder_is_refused",),
    ),
    broken(
        "`..` leads nowhere",
        "workspace/paths.py",
        ' or ".." in parts or ',
        " or ",
        (f"{PATHS}::test_path_that_tries_to_lead_outside",),
    ),
    broken(
        "what really lies outside is refused",
        "workspace/paths.py",
        "if not path.is_relative_to(self.root) or _steers_programs(path.relative_to(self.root).parts):",
        "if _steers_programs(path.parts[len(self.root.parts) :]):",
        (f"{PATHS}::test_symlinks_that_lead_outside_or_nowhere", f"{PATHS}::test_no_path_ever_leads_outside"),
    ),
    broken(
        "paths are resolved against symlinks",
        "workspace/paths.py",
        "path = Path(os.path.realpath(self.root / relative))",
        "path = self.root / relative",
        (
            f"{PATHS}::test_symlink_in_a_parent_that_leads_outside",
            f"{CONTAINMENT}::test_link_that_a_role_made_leads_nothing_it_hands_in_outside",
        ),
    ),
    broken(
        "no symlink made meanwhile is followed",
        "workspace/inside.py",
        FOLDER,
        FOLDER.replace(" | os.O_NOFOLLOW", ""),
        ("workspace/test_applied_files.py::test_symlink_made_after_the_path_was_judged_is_not_followed",),
    ),
    broken(
        "no symlink in a merge's way is followed",
        "workspace/writing.py",
        "        _judge(workspace, path)\n",
        "",
        ("workspace/test_worktrees.py::test_nothing_is_written_outside_or_into_git_or_a_run",),
    ),
    broken(
        "a hard link is replaced",
        "workspace/inside.py",
        "        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)\n",
        "        target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, dir_fd=folder)\n"
        "        os.write(target, os.read(os.open(temporary, os.O_RDONLY, dir_fd=folder), 1 << 20))\n",
        (
            "workspace/test_applied_files.py::test_hard_link_is_broken_not_written_through",
            "workspace/test_worktrees.py::test_hard_link_is_replaced_not_written_through",
            f"{CONTAINMENT}::test_hard_link_made_by_role_is_replaced_not_written_through",
        ),
    ),
    broken(
        "`.git` is off limits to what is handed in",
        "workspace/paths.py",
        "    return any(map(is_git_folder, parts)) or ",
        "    return ",
        (
            f"{PATHS}::test_git_folders_are_off_limits_by_every_spelling",
            f"{CONTAINMENT}::test_git_hooks_cannot_be_changed_by_role",
        ),
    ),
    broken(
        "`.git` is off limits by every spelling",
        "workspace/paths.py",
        '.casefold().split(":")',
        '.split(":")',
        (
            f"{PATHS}::test_git_folders_are_off_limits_by_every_spelling",
            f"{CONTAINMENT}::test_git_hooks_cannot_be_changed_by_role",
        ),
    ),
    broken(
        "`.git` is off limits to commands",
        "codex/permissions.py",
        '**dict.fromkeys(KEPT_FROM_WRITING, "read")',
        '**dict.fromkeys(KEPT_FROM_WRITING, "write")',
        (f"{CONTAINMENT}::test_git_hooks_cannot_be_changed_by_role", SANDBOX),
    ),
    broken(
        "`.git` of nested repositories is off limits to commands",
        "lifecycle/members.py",
        "*steering.existing, *below)",
        "*steering.existing)",
        (f"{CONTAINMENT}::test_nested_repository_hooks_cannot_be_changed",),
    ),
    broken(
        "our git runs no hook",
        "workspace/repository.py",
        '"GIT_CONFIG_KEY_0": "core.hooksPath"',
        '"GIT_CONFIG_KEY_0": "core.none"',
        (f"{CONTAINMENT}::test_what_a_repository_tells_git_to_run_is_not_run_by_us",),
    ),
    broken(
        "our git runs no monitor",
        "workspace/repository.py",
        '"GIT_CONFIG_KEY_1": "core.fsmonitor"',
        '"GIT_CONFIG_KEY_1": "core.none"',
        (f"{CONTAINMENT}::test_what_a_repository_tells_git_to_run_is_not_run_by_us",),
    ),
    broken(
        "our git is none that a role wrote",
        "workspace/git.py",
        '"PATH": program_path(os.environ),',
        '"PATH": os.environ["PATH"],',
        (f"{CONTAINMENT}::test_program_put_on_path_by_role_runs_only_in_its_commands",),
    ),
    broken(
        "Codex runs no program that a role wrote",
        "lifecycle/members.py",
        '"PATH": program_path(os.environ), ',
        "",
        (f"{CONTAINMENT}::test_program_put_on_path_by_role_runs_only_in_its_commands",),
    ),
    broken(
        "`.codex` is off limits to what is handed in",
        "workspace/paths.py",
        'CODEX_FOLDERS = (".codex", ".agents")',
        "CODEX_FOLDERS = ()",
        (
            f"{PATHS}::test_what_codex_runs_of_a_project_is_off_limits",
            f"{CONTAINMENT}::test_project_codex_config_is_neither_writable_nor_used",
        ),
    ),
    broken(
        "no project is trusted with what Codex runs",
        "lifecycle/members.py",
        "    settings = (without_project_settings(definitions.workspace, folder.path), *settings)\n",
        "",
        (f"{CONTAINMENT}::test_project_codex_config_is_neither_writable_nor_used",),
    ),
    broken(
        "a role cannot put a device in the place of AGENTS.md",
        "codex/project_instructions.py",
        " if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None",
        "",
        ("codex/test_project_instructions.py::test_document_that_is_not_a_file_is_ignored",),
    ),
    broken(
        "the runs are off limits to what is handed in",
        "workspace/paths.py",
        "        if self.is_forbidden(path) or path.is_symlink():\n",
        "        if path.is_symlink():\n",
        (
            f"{PATHS}::test_run_folders_are_off_limits",
            "steps/test_workspace_changes.py::test_unsafe_paths_are_not_written",
        ),
    ),
    broken(
        "the runs are off limits to commands and tests",
        "lifecycle/members.py",
        "((runs_dir, *databases, ",
        "((*databases, ",
        (NOT_THE_RUNS,),
    ),
    broken(
        "models' tests run in the sandbox",
        "lifecycle/definitions.py",
        "    return wrap if options.test_sandbox else no_sandbox\n",
        "    return no_sandbox if options.test_sandbox else wrap\n",
        (NO_TESTS_OUT, f"{CONTAINMENT}::test_conftest_reaches_nothing_outside"),
    ),
    broken(
        "they write nowhere else",
        "codex/permissions.py",
        "exclude_tmpdir_env_var=True, exclude_slash_tmp=True",
        "exclude_tmpdir_env_var=True, exclude_slash_tmp=False",
        (SANDBOX, f"{CONTAINMENT}::test_conftest_reaches_nothing_outside"),
    ),
    broken(
        "they have no network",
        "codex/permissions.py",
        '"network": {"enabled": access.network_access}',
        '"network": {"enabled": True}',
        (SANDBOX, f"{CONTAINMENT}::test_conftest_reaches_nothing_outside"),
    ),
    broken(
        "a check's command runs in the sandbox",
        "checks/command.py",
        "    if options.sandbox:\n",
        "    if not options.sandbox:\n",
        ("checks/test_command.py::test_in_codexs_sandbox",),
    ),
    broken(
        "a role writes nothing by default",
        "catalog/role_spec.py",
        'return "workspace-write" if data["prompt_flags"].allow_write else "read-only"',
        'return "workspace-write"',
        ("catalog/test_role_spec.py::test_flags_become_sandbox_and_approval_policy",),
    ),
    broken(
        "leaving the sandbox is declined by default",
        "codex/approvals.py",
        "lambda _, policy: _decide(policy.commands)",
        "lambda _, policy: _decide(True)",
        (
            "codex/test_approvals.py::test_default_policy_declines",
            f"{CONTAINMENT}::test_escalation_is_logged_whatever_was_decided[False]",
        ),
    ),
    broken(
        "a role's YAML grants nothing by default",
        "catalog/role_spec.py",
        "    commands: StrictBool = False\n",
        "    commands: StrictBool = True\n",
        (f"{CONTAINMENT}::test_escalation_is_logged_whatever_was_decided[None]",),
    ),
    broken(
        "a request to leave the sandbox is in the log",
        "steps/turn_events.py",
        "self._publish(Approval(self._instance, self._number, method, decision, detail))",
        "pass",
        (f"{CONTAINMENT}::test_escalation_is_logged_whatever_was_decided",),
    ),
    broken(
        "a web page does not reach the playbook's server",
        "playbook/loopback.py",
        '        elif "Origin" in self.headers:\n',
        '        elif "Nothing" in self.headers:\n',
        ("playbook/test_playbook_server.py::test_web_page_is_refused",),
    ),
    broken(
        "a foreign host name does not reach the playbook's server",
        "playbook/loopback.py",
        'if self.headers.get("Host") not in',
        'if "" in',
        ("playbook/test_playbook_server.py::test_foreign_host_name_is_refused",),
    ),
    broken(
        "the playbook's server listens on loopback",
        "playbook/loopback.py",
        "super().__init__((LOOPBACK, 0), handler)\n",
        'super().__init__(("", 0), handler)\n',
        ("playbook/test_playbook_server.py::test_it_listens_on_loopback_only",),
    ),
    broken(
        "YAML makes plain values only",
        "reading/yaml_loader.py",
        "    yaml_constructors = {  # noqa",
        "    any_constructors = {  # noqa",
        ("catalog/test_yaml_source.py::test_every_mistake_names_file_and_line",),
    ),
    broken(
        "aliases do not explode",
        "reading/yaml_loader.py",
        "    if opened[-1].size > MAX_EXPANDED_CHARACTERS:\n",
        "    if opened[-1].size < 0:\n",
        ("catalog/test_yaml_source.py::test_aliases_that_explode_are_refused",),
    ),
    broken(
        "templates run in a sandbox",
        "catalog/template_sandbox.py",
        "class TemplateSandbox(ImmutableSandboxedEnvironment):",
        "class TemplateSandbox(__import__('jinja2').Environment):",
        ("catalog/test_templates.py::test_template_that_fails_says_where[{{ goal.__class__.__mro__ }}-unsafe]",),
    ),
    broken(
        "a moved run does not write into another folder of the old name",
        "api.py",
        "        require_same_workspace(folder, record)\n",
        "        pass\n",
        ("engine/test_resume_moved.py::test_moved_project_is_not_resumed_in_checkout_at_old_path",),
    ),
)
