"""Starts and resumes runs, each in a process with its own session, which continues when the server ends."""

from __future__ import annotations

import os
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from codex_multi_role.errors import CodexMultiRoleError, ExitCode, UsageError
from codex_multi_role.host.atomic import make_folder
from codex_multi_role.host.own_python import Lifetime, last_output, own_module, start
from codex_multi_role.host.programs import exclude_from_path
from codex_multi_role.host.user_cache import expanded
from codex_multi_role.presentation.outcome import exit_in_words
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.folder import make_runs_folder, new_run_id
from codex_multi_role.run_folder.owner import read_owner
from codex_multi_role.run_options import OPTIONS

TOKEN_VARIABLE = "CODEX_MULTI_ROLE_TOKEN"
BEGIN_SECONDS = 60.0
LOOK_SECONDS = 0.05
MOST_AT_ONCE = 32
ENDINGS = (ExitCode.GOAL_REACHED, ExitCode.GOAL_NOT_REACHED, ExitCode.WAITING, ExitCode.BUDGET_USED_UP)
"""Exit codes of a run that began, and may have ended before it was seen."""
STARTING = ".starting"
OUTPUT = "output.log"
"""In a run's folder: stderr of its process, if a page started it."""


class RunNotStarted(CodexMultiRoleError):
    """The process ended before the run began, and the message is its output; or the run has not started yet."""


@dataclass(frozen=True)
class NewRun:
    """What a form describes. ``inputs`` and further ``options``: only those that were filled in."""

    flow: str
    goal: str = ""
    cycles: str = ""
    workspace: str = ""
    playbook: str = ""
    options: Mapping[str, str | bool] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> list[str]:
        """Return the arguments of ``run``, which reads the goal from stdin: it may be too long for an argument.

        An option and its value are one argument, so that a value may begin with a dash.
        """
        options = {"flow": self.flow, "cycles": self.cycles, "workspace": self.workspace, "playbook": self.playbook}
        named = {**options, "inputs": self.inputs}
        texts = (OPTIONS[name].arguments(value) for name, value in named.items() if value)
        given = [*texts, *(OPTIONS[name].arguments(value) for name, value in self.options.items())]
        goal = ["--goal-file=-"] if self.goal else []
        return [*goal, *("=".join(each) for arguments in given for each in arguments)]


class RunStarter:
    """Starts processes for the runs of one folder; waits for none of them once ``is_ending``. Threads may share it."""

    def __init__(self, runs_dir: Path, roles: Path | None, is_ending: Callable[[], bool]) -> None:
        self._runs_dir = runs_dir
        self._roles = roles
        self._is_ending = is_ending
        self._lock = threading.Lock()  # waits: for memory only
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, wanted: NewRun) -> str:
        """Start a run and wait until it is recorded; returns its id.

        Raises `RunNotStarted` with the output of its process, `UsageError` for too many at once, `StorageError`.
        """
        run_id = new_run_id()
        roles = [f"--roles={self._roles}"] if self._roles else []
        folder = RunFolder(make_runs_folder(self._runs_dir) / run_id)
        arguments = ["run", *wanted.arguments(), *roles, f"--run-id={run_id}"]
        self._begin(folder, arguments, lambda child: folder.record_path.exists(), wanted.workspace, wanted.goal)
        return run_id

    def fork(self, folder: RunFolder, point: str) -> str:
        """Start a new run from a visit of a step of another; returns its id. Raises what `start` raises."""
        fork = RunFolder(folder.path.parent / new_run_id())
        arguments = ["fork", folder.run_id, f"--from={point}", f"--run-id={fork.run_id}"]
        workspace = str(folder.record().get("workspace", ""))
        self._begin(fork, arguments, lambda child: fork.record_path.exists(), workspace)
        return fork.run_id

    def resume(self, folder: RunFolder, limits: Mapping[str, str] | None = None) -> None:
        """Resume a run, with other ``limits``, by option. Raises what `start` raises."""
        arguments = ["resume", folder.run_id, *(f"--{name}={value}" for name, value in (limits or {}).items())]
        workspace = str(folder.record().get("workspace", ""))
        self._begin(folder, arguments, lambda child: read_owner(folder).get("pid") == child.pid, workspace)

    def reap(self) -> int:
        """Forget the processes that have ended; returns how many are left."""
        with self._lock:
            self._children = [child for child in self._children if child.poll() is None]
            return len(self._children)

    def _begin(
        self,
        folder: RunFolder,
        arguments: list[str],
        has_begun: Callable[[subprocess.Popen[bytes]], bool],
        workspace: str,
        text: str = "",
    ) -> None:
        if self.reap() >= MOST_AT_ONCE:
            raise UsageError(f"{MOST_AT_ONCE} runs started here are still running", "Wait for one to end.")
        exclude_from_path(expanded(workspace))
        runs_dir = folder.path.parent
        log_path = make_folder(runs_dir / STARTING) / f"{folder.run_id}.{secrets.token_hex(4)}.log"
        child = self._spawn([*arguments, f"--runs-dir={runs_dir}", "--await-answers", "--quiet"], log_path, text)
        end = time.monotonic() + BEGIN_SECONDS
        while not (begun := has_begun(child)) and child.poll() is None:
            if time.monotonic() > end or self._is_ending():
                message = "The run has not started yet"
                raise RunNotStarted(message, f"Process {child.pid} is still running; its output is in {log_path}.")
            time.sleep(LOOK_SECONDS)
        if begun or has_begun(child) or child.returncode in ENDINGS:
            with suppress(OSError):
                log_path.replace(folder.path / OUTPUT)
            return
        wrong_usage = child.returncode == ExitCode.WRONG_USAGE  # then the output says it all
        ended = "" if wrong_usage else f"Exit code {exit_in_words(child.returncode, 'the process was killed')}."
        printed = last_output(log_path).strip()
        log_path.unlink(missing_ok=True)
        raise RunNotStarted(printed, ended)

    def _spawn(self, arguments: list[str], log_path: Path, text: str) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
        command = own_module("codex_multi_role", *arguments)
        try:
            child = start(command, Lifetime.OUTLIVES_US, text, log_path, environment)
        except CodexMultiRoleError:
            log_path.unlink(missing_ok=True)
            raise
        with self._lock:
            self._children.append(child)
        return child
