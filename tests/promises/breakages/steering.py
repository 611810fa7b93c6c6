"""6. What steers a run is off limits to roles and tests, and a reload never widens rights."""

from __future__ import annotations

from tests.promises.breakage import textual

broken = textual(6)
STEERS = "steps/test_steering.py"
REPOSITORIES = "workspace/test_repositories.py"

STEERING = (
    broken(
        "it is refused in what is handed in and in merges",
        "workspace/paths.py",
        "        return covers(self._steering, path) or any(\n",
        "        return any(\n",
        (
            f"{STEERS}::test_what_a_role_submits_over_what_steers_a_run_is_refused",
            f"{STEERS}::test_copy_brings_none_of_it_back",
        ),
    ),
    broken(
        "no sandbox writes it",
        "lifecycle/members.py",
        "*steering.existing, ",
        "",
        (
            f"{STEERS}::test_command_cannot_change_or_move_steering_files",
            f"{STEERS}::test_test_cannot_write_it_either[True]",
        ),
    ),
    broken(
        "it cannot be moved aside",
        "codex/permissions.py",
        "    return sorted(each for each in below if not any(each.is_relative_to(path) for path in read_only))\n",
        "    return []\n",
        (f"{STEERS}::test_nested_catalog_cannot_be_moved_with_its_folder",),
    ),
    broken(
        "what is created is removed",
        "steps/protection.py",
        "return _files(run, found).remove() if found else RestoredFiles()",
        "return RestoredFiles()",
        (f"{STEERS}::test_what_would_steer_the_next_run_is_removed_after_the_turn",),
    ),
    broken(
        "in subfolders, too",
        "workspace/created_files.py",
        "        found += [glob.escape(path) for path in paths if path not in present]\n",
        "",
        (
            "steps/test_nested_starts.py::test_what_a_command_creates_is_removed_after_the_turn",
            "steps/test_nested_starts.py::test_files_left_by_a_killed_run_are_removed",
        ),
    ),
    broken(
        "a killed turn's is removed, too",
        "lifecycle/session.py",
        "            if self._killed_turns:\n",
        "            if not self._killed_turns:\n",
        (f"{STEERS}::test_files_of_killed_turn_are_removed_after_next_turn",),
    ),
    broken(
        "a reload never widens rights",
        "lifecycle/live_roles.py",
        "        taken, wider = _without_wider_rights(before, read)\n",
        "        taken, wider = read, {}\n",
        ("lifecycle/test_live_roles.py::test_edit_never_widens_permissions_before_run_is_resumed",),
    ),
    broken(
        "calls of an MCP server's tools follow its approval",
        "codex/codex_settings.py",
        '{"never": "prompt", "auto": "auto", "always": "approve"}',
        '{"never": "approve", "auto": "approve", "always": "approve"}',
        (
            "engine/test_mcp_servers.py::test_calls_follow_the_approval_of_their_server[server1-completed-failed-on-request]",
            "engine/test_mcp_servers.py::test_calls_follow_the_approval_of_their_server[server3-failed-failed-never]",
        ),
    ),
    broken(
        "nothing becomes a repository",
        "workspace/paths.py",
        '        return "head" in names and ',
        '        return "heads" in names and ',
        (
            f"{REPOSITORIES}::test_last_piece_is_refused_whatever_it_is_and_in_any_case",
            f"{STEERS}::test_copy_brings_no_repository_back",
        ),
    ),
)
