"""1. A step's result is recorded once; after a kill nothing is paid for again, and the workspace is as it would be."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from codex_multi_role.engine.durable_run import _recorder
from codex_multi_role.engine.journal_file import FileJournal
from codex_multi_role.engine.journal_slots import require_version
from codex_multi_role.host.atomic import replacing
from codex_multi_role.lifecycle import live_roles
from codex_multi_role.lifecycle.corrected_flows import require_no_wider_rights
from codex_multi_role.lifecycle.kept_definitions import keep_changed_roles
from codex_multi_role.lifecycle.live_roles import FIXED
from codex_multi_role.lifecycle.members import _threads
from codex_multi_role.lifecycle.resuming import require_same_past
from codex_multi_role.lifecycle.run_record import _recorded_entries
from codex_multi_role.lifecycle.session import Session
from codex_multi_role.run_folder.owner import Owner
from codex_multi_role.steps.recovery import finished_before
from codex_multi_role.workspace.snapshots import Snapshots
from codex_multi_role.workspace.worktrees import MergeResult, Worktrees
from tests.promises.breakage import Broken
from tests.promises.change import constant, replaced, returns, undecorated


def _written_in_place(_: object, path: Path) -> Iterator[IO[bytes]]:
    with io.BytesIO() as file:
        yield file
        path.write_bytes(file.getvalue())


def _emptied_first(replacing: Callable[..., Iterator[IO[bytes]]], path: Path) -> Iterator[IO[bytes]]:
    path.write_bytes(b"")
    yield from replacing(path)


def _merged_again(merge: Callable[..., MergeResult], self: Worktrees, key: str) -> MergeResult:
    self._manifest.change(key, state="active")
    return merge(self, key)


RECORDED: Broken = {
    "a step's result is recorded in the journal": (
        returns(FileJournal.add, None),
        "engine/test_resume.py::test_after_used_up_cycles_with_more_of_them",
    ),
    "a finished turn that the journal does not know yet is not paid for again": (
        returns(finished_before, None),
        "engine/test_resume.py::test_finished_turn_missing_in_journal_is_not_repeated",
    ),
    "without its journal a run with turns does not begin again": (
        returns(Session._require_journal, None),
        "lifecycle/test_running.py::test_run_whose_journal_is_gone_is_not_paid_for_again",
    ),
    "a journal of another version is not gone on with": (
        replaced(
            require_version,
            lambda require, journal, version, rows="": None if version else require(journal, version, rows),
        ),
        "engine/test_fork_refused.py::test_journal_that_is_gone_or_of_another_version",
    ),
    "a run has one live owner": (
        returns(Owner._lock, None),
        "run_folder/test_owner.py::test_second_process_is_refused_and_the_owner_is_named",
    ),
    "a kill never leaves half a file": (
        replaced(undecorated(replacing), _written_in_place),
        "host/test_atomic.py::test_readers_see_the_old_file_or_the_new_one",
    ),
    "a write that fails leaves the file before it": (
        replaced(undecorated(replacing), _emptied_first),
        "host/test_atomic.py::test_write_that_fails_leaves_the_old_file_and_no_other",
    ),
    "what a turn that was cut short did to the workspace is taken back": (
        returns(Snapshots.restore, None),
        "engine/test_resume.py::test_provider_retry_begins_with_the_workspace_as_it_was",
    ),
    "a merge is done once": (
        replaced(Worktrees.merge, _merged_again),
        "workspace/test_worktrees.py::test_merge_is_done_once",
    ),
    "a final check is done once after a success": (
        replaced(_recorder, lambda recorder, step_id, slot: recorder(step_id, slot and None)),
        "engine/test_finally.py::test_kill_between_two_checks_repeats_neither_the_first_nor_the_tests",
    ),
    "a resumed role goes on with its own conversation": (
        replaced(_threads, lambda threads, folder: ({}, threads(folder)[1])),
        "engine/test_resume.py::test_after_used_up_cycles_with_more_of_them",
    ),
    "a role that had answered is not asked again beside one that failed": (
        replaced(finished_before, lambda finished, run, _, role, **more: finished(run, 0, role, **more)),
        "engine/test_resume.py::test_finished_turn_missing_in_journal_is_not_repeated",
    ),
    "a replay that was cut short does not shorten the state": (
        returns(_recorded_entries, 0),
        "lifecycle/test_running.py::test_resume_that_cannot_replay_leaves_the_state_as_it_was",
    ),
    "a flow that is edited while the run works is not the run's": (
        replaced(
            keep_changed_roles,
            lambda keep, catalog, folder, catalog_file: keep(catalog, folder, str(catalog.source)),
        ),
        "lifecycle/test_live_roles.py::test_flow_that_is_edited_meanwhile_is_not_the_runs",
    ),
    "where a run may end is not changed while it works": (
        constant(live_roles, "FIXED", tuple(key for key in FIXED if key != "behaviors.can_finish")),
        "lifecycle/test_live_roles.py::test_rejected_edit_is_reported_and_last_valid_roles_stay",
    ),
    "inputs that recorded work depends on do not change": (
        returns(require_same_past, None),
        "engine/test_resume_changed.py::test_input_that_recorded_work_depends_on_cannot_change",
    ),
    "a corrected flow is allowed no more than before": (
        returns(require_no_wider_rights, None),
        "engine/test_resume_corrected.py::test_correction_never_widens_rights",
    ),
}
