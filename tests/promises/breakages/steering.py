"""6. What steers a run is off limits to roles and tests, and a reload never widens rights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from codex_multi_role.codex import codex_settings
from codex_multi_role.codex.permissions import _folders_between
from codex_multi_role.host.settings_files import _is_own, holds_settings, user_file, would_hold_settings
from codex_multi_role.lifecycle.live_roles import _without_wider_rights
from codex_multi_role.lifecycle.members import unwritable_paths
from codex_multi_role.lifecycle.run_record import RunRecord
from codex_multi_role.lifecycle.steering import _copies
from codex_multi_role.steps.protection import _remove_steering
from codex_multi_role.workspace.created_files import existing_anywhere
from codex_multi_role.workspace.paths import Workspace, is_repository
from codex_multi_role.workspace.protected import RestoredFiles
from tests.promises.breakage import Broken
from tests.promises.change import constant, replaced, returns

STEERS = "steps/test_steering.py"
REPOSITORIES = "workspace/test_paths.py"

STEERING: Broken = {
    "it is refused in what is handed in and in merges": (
        replaced(
            Workspace.is_off_limits,
            lambda is_off_limits, self, path: is_off_limits(replace(self, steering=()), path),
        ),
        f"{STEERS}::test_what_a_role_submits_over_what_steers_a_run_is_refused",
        f"{STEERS}::test_copy_brings_none_of_it_back",
    ),
    "no sandbox writes it": (
        replaced(
            unwritable_paths,
            lambda kept, definitions, folder, steering: kept(definitions, folder, replace(steering, existing=())),
        ),
        f"{STEERS}::test_command_cannot_change_or_move_steering_files",
        f"{STEERS}::test_test_cannot_write_it_either[True]",
    ),
    "in a worktree of the run as well": (
        returns(_copies, set[Path]()),
        "lifecycle/test_own_worktree.py::test_roles_cannot_write_what_steers_runs_of_the_users_tree",
    ),
    "it cannot be moved aside": (
        returns(_folders_between, list[Path]()),
        f"{STEERS}::test_nested_catalog_cannot_be_moved_with_its_folder",
    ),
    "what is created is removed": (
        returns(_remove_steering, RestoredFiles()),
        f"{STEERS}::test_what_would_steer_the_next_run_is_removed_after_the_turn",
    ),
    "in subfolders, too": (
        returns(existing_anywhere, list[str]()),
        f"{STEERS}::test_what_would_steer_the_next_run_is_removed_after_the_turn",
        "steps/test_nested_starts.py::test_files_left_by_a_killed_run_are_removed",
    ),
    "no settings are handed in in a pyproject.toml": (
        returns(would_hold_settings, False),
        f"{STEERS}::test_settings_that_a_role_submits_in_pyproject_are_refused",
    ),
    "no command adds settings to a pyproject.toml, or changes those in it": (
        returns(holds_settings, False),
        f"{STEERS}::test_command_cannot_change_or_move_steering_files",
        f"{STEERS}::test_what_would_steer_the_next_run_is_removed_after_the_turn",
    ),
    "the user's settings are, too": (
        returns(user_file, Path("/nowhere")),
        f"{STEERS}::test_command_cannot_change_or_move_steering_files",
        f"{STEERS}::test_what_would_steer_the_next_run_is_removed_after_the_turn",
    ),
    "no folder above that others write has settings": (
        returns(_is_own, True),
        "host/test_settings_files.py::test_folder_that_others_may_write_ends_the_search",
        "host/test_settings_files.py::test_temporary_folder_ends_the_search",
    ),
    "a killed turn's is removed, too": (
        returns(RunRecord.assume_absent_since_kill, None),
        "steps/test_nested_starts.py::test_files_left_by_a_killed_run_are_removed",
    ),
    "a reload never widens rights": (
        replaced(_without_wider_rights, lambda _, before, after: (after, {})),
        "lifecycle/test_live_roles.py::test_edit_never_widens_permissions_before_run_is_resumed",
    ),
    "calls of an MCP server's tools follow its approval": (
        constant(codex_settings, "MCP_APPROVAL_MODES", dict.fromkeys(codex_settings.MCP_APPROVAL_MODES, "approve")),
        "engine/test_visible_items.py::test_calls_follow_the_approval_of_their_server[on-request]",
        "engine/test_visible_items.py::test_calls_follow_the_approval_of_their_server[never]",
    ),
    "nothing becomes a repository": (
        returns(is_repository, False),
        f"{REPOSITORIES}::test_last_piece_is_refused_whatever_it_is_and_in_any_case",
        f"{STEERS}::test_copy_brings_none_of_it_back",
    ),
}
