"""2. Every wait has a named deadline; every child is in its own session and ends with the run."""

from __future__ import annotations

from tests.promises.breakage import textual

broken = textual(2)

WAITS = (
    broken(
        "a silence ends a turn",
        "codex/running_turn.py",
        "received = self._transport.next_message(min(self._deadlines.idle, self._seconds_to(end)))",
        "received = self._transport.next_message(self._seconds_to(end))",
        ("codex/test_client.py::test_unresponsive_provider_is_a_stall_and_next_turn_runs",),
    ),
    broken(
        "a turn has a longest duration",
        "codex/running_turn.py",
        "            late = self._seconds_to(end) <= 0\n",
        "            late = False\n",
        ("codex/test_client.py::test_turn_longer_than_its_deadline_is_timed_out",),
    ),
    broken(
        "a turn that ended at its deadline counts",
        "codex/running_turn.py",
        "        self._helpers = None\n        finished = self._take(received)\n",
        "        finished = None\n",
        ("codex/test_client.py::test_turn_that_ended_at_its_deadline_counts",),
    ),
    broken(
        "git has a deadline",
        "workspace/git.py",
        "process.communicate(stdin, GIT_SECONDS)",
        "process.communicate(stdin)",
        ("workspace/test_snapshots.py::test_git_that_hangs_is_ended",),
    ),
    broken(
        "whatever Codex asks is answered",
        "codex/approvals.py",
        '        return ApprovalAnswer("unsupported", {"error": error})\n',
        '        return ApprovalAnswer("unsupported", {})\n',
        ("codex/test_approvals.py::test_what_is_not_known_is_an_error_never_silence",),
    ),
    broken(
        "a Codex process has a session of its own",
        "codex/child.py",
        "            start_new_session=True,\n",
        "",
        ("codex/test_transport.py::test_child_has_a_session_of_its_own",),
    ),
    broken(
        "a command has a session of its own",
        "workspace/commands.py",
        "            start_new_session=True,\n",
        "",
        ("workspace/test_commands.py::test_command_has_a_session_of_its_own",),
    ),
    broken(
        "what a command started ends with it",
        "workspace/commands.py",
        "        family.end()\n",
        "",
        (
            "workspace/test_commands.py::test_descendants_end_at_the_deadline",
            "workspace/test_commands.py::test_orphan_in_its_own_session_is_found",
        ),
    ),
    broken(
        "the output of a command is read to its end",
        "workspace/commands.py",
        "        _read_rest(pipes)\n",
        "",
        ("workspace/test_commands.py::test_output_written_just_before_the_end_is_kept",),
    ),
    broken(
        "a process is known by its mark where nothing else tells of it",
        "host/processes.py",
        'return is_in_session or f"{seen.marks.get(self.variable, \'\')}/".startswith(f"{self.mark}/")',
        "return is_in_session",
        (
            "workspace/test_commands.py::test_orphan_in_its_own_session_is_found",
            "engine/test_left_over.py::test_what_a_roles_command_left_running_ends_with_the_run",
        ),
    ),
    broken(
        "a process is known by its mark while its program is being started",
        "host/processes.py",
        "    while not (found := process.environ()) and _is_starting(process):\n        time.sleep(_POLL_SECONDS)\n",
        "    found = process.environ()\n",
        ("host/test_processes.py::test_process_is_known_by_its_mark_while_its_program_starts",),
    ),
    broken(
        "a process has ended once all its threads have",
        "host/processes.py",
        " or process.num_threads() > 1",
        "",
        ("host/test_processes.py::test_process_lives_until_its_last_thread_has_ended",),
    ),
    broken(
        "what a program's earlier children start is left alone",
        "host/processes.py",
        "_below_except(os.getpid(), self.others)",
        "each for each in processes_below(os.getpid()) if each not in self.others",
        ("engine/test_left_over.py::test_what_a_child_from_before_starts_is_left_alone",),
    ),
    broken(
        "nobody else's process is ended",
        "host/processes.py",
        '/".startswith(f"{self.mark}/")',
        '/".startswith(self.mark)',
        ("engine/test_left_over.py::test_others_processes_are_left_alone",),
    ),
    broken(
        "who does not react is killed",
        "host/processes.py",
        "                if not self._end_once(signal.SIGKILL):\n",
        "                if not self._end_once(signal.SIGTERM):\n",
        ("workspace/test_commands.py::test_who_ignores_the_request_to_end_is_killed",),
    ),
    broken(
        "what a killed run left ends when it is resumed",
        "lifecycle/session.py",
        "        self._end_left_over(family)\n",
        "",
        ("engine/test_left_over.py::test_what_a_killed_run_left_ends_when_it_is_resumed",),
    ),
    broken(
        "what a killed run left ends without anybody resuming it",
        "lifecycle/process_guard.py",
        "\nend_work_of(sys.argv[1])\n",
        "\n",
        ("lifecycle/test_process_guard.py::test_killed_run_leaves_no_command_of_a_role_running",),
    ),
    broken(
        "a command does not outlive its turn",
        "codex/client.py",
        '            self._transport.request("thread/backgroundTerminals/clean"',
        '            self._transport.request("account/read"',
        ("codex/test_client.py::test_command_of_a_finished_turn_does_not_live_on",),
    ),
    broken(
        "a run that stops ends its command",
        "workspace/commands.py",
        "        if stopping.is_set():\n            raise RunInterrupted\n",
        "",
        ("workspace/test_commands.py::test_run_that_stops_ends_its_command",),
    ),
    broken(
        "a signal to stop is heard",
        "lifecycle/session.py",
        "        while not stop.asked:",
        "        while True:",
        ("engine/test_resume.py::test_after_a_stop_signal[2]",),
    ),
    broken(
        "a process that has the number of an earlier one is ended as well",
        "host/processes.py",
        "    for process in _all_processes():\n",
        "    for process in psutil.process_iter():\n",
        ("host/test_processes.py::test_process_with_reused_pid_is_ended",),
    ),
)
