"""1. A step's result is recorded once; after a kill nothing is paid for again, and the workspace is as it would be."""

from __future__ import annotations

from functools import partial

from tests.promises.breakage import Breakage

broken = partial(Breakage, 1)

RECORDED = (
    broken(
        "a step's result is recorded in the journal",
        "engine/journal_slots.py",
        'recorded = place.run({"name": name}, lambda: self._do(work, place.step_id))',
        "recorded = self._do(work, place.step_id)",
        ("test_long_run.py::test_journal_has_one_row_per_turn_of_constant_size",),
    ),
    broken(
        "a finished turn that the journal does not know yet is not paid for again",
        "steps/recovery.py",
        "    if not recorded:\n        return None\n",
        "    if recorded or not recorded:\n        return None\n",
        ("engine/test_resume.py::test_finished_turn_missing_in_journal_is_not_repeated",),
    ),
    broken(
        "without its journal a run with turns does not begin again",
        "lifecycle/session.py",
        "            self._require_journal()\n",
        "",
        ("test_api.py::test_run_whose_journal_is_gone_is_not_paid_for_again",),
    ),
    broken(
        "a journal of another version is not gone on with",
        "engine/journal.py",
        "    if version != JOURNAL_VERSION:",
        "    if not version:",
        ("engine/test_fork_refused.py::test_journal_that_is_gone_or_of_another_version",),
    ),
    broken(
        "a run has one live owner",
        "run_folder/owner.py",
        "            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "            pass\n",
        ("run_folder/test_owner.py::test_second_process_is_refused_and_told_who_has_it",),
    ),
    broken(
        "a kill never leaves half a file",
        "host/atomic.py",
        "            Path(temporary).replace(path)\n",
        "            path.write_bytes(Path(temporary).read_bytes())\n            Path(temporary).unlink()\n",
        ("host/test_atomic.py::test_readers_see_the_old_file_or_the_new_one",),
    ),
    broken(
        "a write that fails leaves the file before it",
        "host/atomic.py",
        '        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)\n',
        "        descriptor, temporary = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), str(path)\n",
        ("host/test_atomic.py::test_write_that_fails_leaves_the_old_file_and_no_other",),
    ),
    broken(
        "what a turn that was cut short did to the workspace is taken back",
        "steps/recovery.py",
        "    run.snapshots.restore(first)\n",
        "",
        ("engine/test_resume.py::test_provider_retry_begins_with_the_workspace_as_it_was",),
    ),
    broken(
        "a merge is done once",
        "workspace/worktrees.py",
        '            if copy.state in ("active", "kept"):\n',
        "            if copy.state:\n",
        ("workspace/test_worktrees.py::test_merge_is_done_once",),
    ),
    broken(
        "a resumed role goes on with its own conversation",
        "lifecycle/members.py",
        "thread_id=threads.get(instance), inherited",
        "thread_id=None, inherited",
        ("engine/test_resume.py::test_after_used_up_cycles_with_more_of_them",),
    ),
    broken(
        "a role that had answered is not asked again beside one that failed",
        "engine/journal_slots.py",
        "                return work(number)\n",
        "                return work(0)\n",
        ("engine/test_resume.py::test_finished_turn_missing_in_journal_is_not_repeated",),
    ),
    broken(
        "a replay that was cut short does not shorten the state",
        "lifecycle/run_record.py",
        "    if len(state.history) < _recorded_entries(folder):\n        return\n",
        "",
        ("test_api.py::test_resume_that_cannot_replay_leaves_the_state_as_it_was",),
    ),
    broken(
        "a flow that is edited while the run works is not the run's",
        "lifecycle/definitions.py",
        "    before = (folder.catalog_path / catalog_file).parent\n",
        "    before = catalog.source.parent\n",
        ("lifecycle/test_live_roles.py::test_flow_that_is_edited_meanwhile_is_not_the_runs",),
    ),
    broken(
        "where a run may end is not changed while it works",
        "lifecycle/live_roles.py",
        ', "behaviors.can_finish")',
        ")",
        ("lifecycle/test_live_roles.py::test_rejected_edit_is_reported_and_last_valid_roles_stay",),
    ),
    broken(
        "inputs that recorded work depends on do not change",
        "lifecycle/session.py",
        "                require_same_past(self._definitions, self._folder, self._earlier)\n",
        "                pass\n",
        ("engine/test_resume_changed.py::test_input_that_recorded_work_depends_on_cannot_change",),
    ),
)
