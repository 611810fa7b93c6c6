"""2. Every wait has a named deadline; every child is in its own session and ends with the run."""

from __future__ import annotations

import math
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import psutil

from codex_multi_role.codex import child
from codex_multi_role.codex.approvals import ApprovalAnswer, answer
from codex_multi_role.codex.client import RoleClient
from codex_multi_role.codex.running_turn import RunningTurn
from codex_multi_role.codex.turn_outcome import TurnOutcome, TurnRequest
from codex_multi_role.extensions.machines.workers.own_process import stop_at_end_of
from codex_multi_role.host import processes
from codex_multi_role.host.processes import Family, processes_below
from codex_multi_role.lifecycle.process_guard import end_work_of
from codex_multi_role.lifecycle.session import Session
from codex_multi_role.lifecycle.stopping import Stop
from codex_multi_role.workspace import commands
from codex_multi_role.workspace.git import Git
from tests.promises.breakage import Broken
from tests.promises.change import ReplacedFunction, replaced, returns

Process = subprocess.Popen[bytes]
STOPPED_SECONDS = 2.0


def _with_deadlines(**other: float) -> ReplacedFunction:
    def run(run: Callable[..., TurnOutcome], self: RunningTurn, request: TurnRequest) -> TurnOutcome:
        self._deadlines = replace(self._deadlines, **other)
        return run(self, request)

    return replaced(RunningTurn.run, run)


def _without_deadline(started: Callable[..., Process], self: Git, *given: Any) -> Process:
    process = started(self, *given)
    communicate = process.communicate
    process.communicate = lambda input=None, timeout=None: communicate(input)  # type: ignore[method-assign]
    return process


def _with_nothing(answer: Callable[..., ApprovalAnswer], *given: Any) -> ApprovalAnswer:
    answered = answer(*given)
    return replace(answered, reply={}) if answered.decision == "unsupported" else answered


def _in_our_session(start: Callable[..., Process], *given: Any) -> Process:
    popen = subprocess.Popen

    def without_session(*argv: Any, **options: Any) -> Process:
        return popen(*argv, **{**options, "start_new_session": False})

    with patch.object(subprocess, "Popen", without_session):
        return start(*given)


WAITS: Broken = {
    "a run of a batch ends with the batch's process": (
        returns(stop_at_end_of, None),
        "extensions/machines/workers/test_own_process.py::test_process_stops_at_the_end_of_its_input",
    ),
    "a silence ends a turn": (
        _with_deadlines(idle=math.inf),
        "codex/test_client.py::test_unresponsive_provider_is_a_stall_and_next_turn_runs",
    ),
    "a turn has a longest duration": (
        _with_deadlines(turn=math.inf),
        "codex/test_client.py::test_turn_longer_than_its_deadline_is_timed_out",
    ),
    "a turn that ended at its deadline counts": (
        replaced(RunningTurn._give_up, lambda give_up, self, late, received: give_up(self, late, None)),
        "codex/test_client.py::test_turn_that_ended_at_its_deadline_counts",
    ),
    "git has a deadline": (
        replaced(Git._started, _without_deadline),
        "workspace/test_snapshots.py::test_git_that_does_not_work_is_told",
    ),
    "whatever Codex asks is answered": (
        replaced(answer, _with_nothing),
        "codex/test_incoming.py::test_what_is_not_known_is_an_error_never_silence",
    ),
    "a Codex process has a session of its own": (
        replaced(child._spawn, _in_our_session),
        "codex/test_transport.py::test_child_has_a_session_of_its_own",
    ),
    "a command has a session of its own": (
        replaced(commands._started, _in_our_session),
        "workspace/test_commands.py::test_command_has_a_session_of_its_own",
    ),
    "what a command started ends with it": (
        returns(Family.end, 0),
        "workspace/test_commands.py::test_descendants_end_at_the_deadline",
        "workspace/test_commands.py::test_what_the_command_leaves_behind_cannot_hold_us",
    ),
    "the output of a command is read to its end": (
        returns(commands._read_rest, None),
        "workspace/test_commands.py::test_output_written_just_before_the_end_is_kept",
    ),
    "a process is known by its mark where nothing else tells of it": (
        returns(processes._marks, dict[str, str]()),
        "workspace/test_commands.py::test_what_the_command_leaves_behind_cannot_hold_us",
        "engine/test_left_over.py::test_what_a_roles_command_left_running_ends_with_the_run",
    ),
    "a process is known by its mark while its program is being started": (
        returns(processes._is_starting, False),
        "host/test_processes.py::test_process_is_known_by_its_mark_while_its_program_starts",
    ),
    "a process has ended once all its threads have": (
        replaced(processes.lives, lambda _, process: process.is_running() and process.status() != psutil.STATUS_ZOMBIE),
        "host/test_processes.py::test_process_lives_until_its_last_thread_has_ended",
    ),
    "what a program's earlier children start is left alone": (
        replaced(
            processes._below_except,
            lambda _, pid, others: (each for each in processes_below(pid) if each not in others),
        ),
        "engine/test_left_over.py::test_what_a_child_from_before_starts_is_left_alone",
    ),
    "nobody else's process is ended": (
        replaced(
            Family._owns,
            lambda owns, self, seen: owns(self, seen) or seen.marks.get(self.variable, "").startswith(self.mark),
        ),
        "engine/test_left_over.py::test_others_processes_are_left_alone",
    ),
    "who does not react is killed": (
        replaced(Family._end_once, lambda end_once, self, how: end_once(self, signal.SIGTERM)),
        "workspace/test_commands.py::test_who_ignores_the_request_to_end_is_killed",
    ),
    "what a killed run left ends when it is resumed": (
        returns(Session._end_left_over, None),
        "engine/test_left_over.py::test_what_a_killed_run_left_ends_when_it_is_resumed",
    ),
    "what a killed run left ends without anybody resuming it": (
        returns(end_work_of, None),
        "lifecycle/test_process_guard.py::test_killed_run_leaves_no_command_of_a_role_running",
    ),
    "a command does not outlive its turn": (
        returns(RoleClient._clean_up, None),
        "codex/test_client.py::test_command_of_a_finished_turn_does_not_live_on",
    ),
    "a run that stops ends its command": (
        replaced(
            commands.run_command,
            lambda run_command, argv, cwd, environment, _, output_limit_bytes, __, *rest: run_command(
                argv, cwd, environment, STOPPED_SECONDS, output_limit_bytes, None, *rest
            ),
        ),
        "workspace/test_commands.py::test_run_that_stops_ends_its_command",
    ),
    "a signal to stop is heard": (
        replaced(Session._wait, lambda wait, self, ending, parts, stop: wait(self, ending, parts, Stop(lambda: None))),
        "cli/test_decision.py::test_cancel_stops_a_run_that_works_and_it_can_be_resumed",
    ),
    "a process that has the number of an earlier one is ended as well": (
        replaced(
            processes._processes,
            lambda _, pids: iter([each for ids in [{*pids}] for each in psutil.process_iter() if each.pid in ids]),
        ),
        "host/test_processes.py::test_process_with_reused_pid_is_ended",
    ),
}
