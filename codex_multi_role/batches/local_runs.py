"""Runs the goals of a batch on this machine, each in a process with its own session."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from codex_multi_role.batches.batch_folder import BatchFolder
from codex_multi_role.batches.goal_results import WAITING, GoalResult, News, is_finished, recorded_result
from codex_multi_role.batches.planned_runs import PlannedRun
from codex_multi_role.batches.run_process import Order
from codex_multi_role.dataclass import dataclass
from codex_multi_role.errors import ExitCode, RunStatus
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.reading.json_files import read_object, read_records
from codex_multi_role.run_folder import RunEvent, RunFolder, event_of

CHUNK_BYTES = 1 << 16
MAX_EVENT_BYTES = 4 << 20
MAX_CHUNKS = 64
"""How much of one run's events is read before it is another's turn."""
PRINTED_BYTES = 8000
STOP_SECONDS = 90.0
"""How long a run has to stop before its process is killed."""
NOT_CHANGED = frozenset(
    {"goal", "run_id", "runs_dir", "flow", "database_url", "record", "workspace", "worktree", "branch"}
)
"""Options that a run keeps when it is resumed."""


@dataclass
class RunningChild:
    """A process and what was read from it: ``rest`` is the beginning of an event."""

    run: PlannedRun
    process: subprocess.Popen[bytes]
    output: Path
    rest: bytes = b""


class LocalRuns:
    """The processes of the runs of one batch. Only one thread uses it."""

    def __init__(self, folder: BatchFolder) -> None:
        self._folder = folder
        self._children: dict[str, RunningChild] = {}
        self._selector = selectors.DefaultSelector()
        self._unstarted: list[GoalResult] = []
        self._kill_at: float | None = None

    def takers(self, _planned: Sequence[PlannedRun]) -> str:
        return ""

    def exists(self, run: PlannedRun) -> bool:
        """Whether it has a folder; a process that was killed early leaves one without a ``run.json``."""
        return self._folder_of(run).path.exists()

    def record(self, run: PlannedRun) -> Mapping[str, Any]:
        """Its ``run.json``; empty if it has none."""
        return read_object(self._folder_of(run).record_path)

    def recorded(self, run: PlannedRun) -> GoalResult | None:
        return recorded_result(run.id, run.goal.number, self._folder_of(run))

    def is_finished(self, run: PlannedRun) -> bool:
        return is_finished(self._folder_of(run))

    def _folder_of(self, run: PlannedRun) -> RunFolder:
        return RunFolder(self._folder.runs_dir / run.run_id)

    def start(self, run: PlannedRun) -> bool:
        """Start the run, or resume it if it has a ``run.json``. What prevents that is its result. True."""
        output = self._folder.output_path / f"{run.run_id}.log"
        try:
            process = self._spawn(run, output)
        except OSError as error:
            reason = f"its process cannot be started: {error.strerror or error}"
            self._unstarted.append(self._unrecorded(run, RunStatus.FAILED, ExitCode.FAILED, reason))
            return True
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self._selector.register(process.stdout, selectors.EVENT_READ, run.id)
        self._children[run.id] = RunningChild(run, process, output)
        return True

    def news(self, seconds: float) -> Iterator[tuple[str, News]]:
        """What happened since the last call, by goal ID; waits at most ``seconds`` for something."""
        unstarted, self._unstarted = self._unstarted, []
        yield from ((result.id, result) for result in unstarted)
        for key, _ in self._selector.select(seconds):
            yield from self._read(self._children[key.data])
        for child in list(self._children.values()):
            if child.process.poll() is not None:
                yield from self._close(child)
        if self._kill_at is not None and time.monotonic() > self._kill_at:
            self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Ask all runs to stop, so that they can be resumed."""
        self._kill_at = time.monotonic() + STOP_SECONDS
        for child in self._children.values():
            assert child.process.stdin is not None
            child.process.stdin.close()

    def hurry(self) -> None:
        """Kill what the runs have started, so that they stop sooner."""
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        for child in self._children.values():
            with suppress(OSError):
                child.process.send_signal(number)

    def _spawn(self, run: PlannedRun, output: Path) -> subprocess.Popen[bytes]:
        # -P: a module in the current folder, perhaps a role's, must not replace one of ours
        command = [sys.executable, "-P", "-m", "codex_multi_role", "work-on", run.run_id]
        with storage_errors(output), output.open("ab") as errors, TemporaryFile() as order:
            self._order(run).write(order.fileno())
            return subprocess.Popen(
                [*command, "--order", str(order.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=[order.fileno()],
                start_new_session=True,
            )

    def _order(self, run: PlannedRun) -> Order:
        options = run.options.as_record()
        recorded = self.record(run).get("options", {})
        changed = (name for name in sorted(run.given - NOT_CHANGED) if recorded.get(name) != options[name])
        return Order(
            options=options,
            resumes=bool(recorded),
            changes=tuple(changed),
            members=str(self._folder.members_path),
            repository=run.repository,
            ref=run.goal.line.ref,
            mirrors=str(self._folder.repositories_path),
        )

    def _read(self, child: RunningChild) -> Iterator[tuple[str, RunEvent]]:
        stdout = child.process.stdout
        assert stdout is not None
        for _ in range(MAX_CHUNKS):
            try:
                chunk = os.read(stdout.fileno(), CHUNK_BYTES)
            except BlockingIOError:
                return
            if not chunk:
                with suppress(KeyError):
                    self._selector.unregister(stdout)
                return
            *lines, child.rest = (child.rest + chunk).split(b"\n")
            if len(child.rest) > MAX_EVENT_BYTES:
                child.rest = b""
            yield from ((child.run.id, event_of(record)) for record in read_records(lines))

    def _close(self, child: RunningChild) -> Iterator[tuple[str, News]]:
        yield from self._read(child)
        del self._children[child.run.id]
        stdout, stdin = child.process.stdout, child.process.stdin
        assert stdout is not None
        assert stdin is not None
        with suppress(KeyError):
            self._selector.unregister(stdout)
        stdout.close()
        stdin.close()
        yield child.run.id, self._result(child)

    def _result(self, child: RunningChild) -> GoalResult:
        run, code = child.run, child.process.returncode
        printed = _printed(child.output)
        recorded = self.recorded(run)
        if recorded is not None and code == ExitCode.WRONG_USAGE != recorded.exit_code:  # it was not resumed
            return replace(recorded, status=RunStatus.FAILED, exit_code=code, reason=_error_in(printed))
        if recorded is not None:
            return recorded
        if code == ExitCode.INTERRUPTED or self._kill_at is not None:
            return self._unrecorded(run, WAITING, None, "")  # it was stopped before it began
        known = ExitCode.find(code) or ExitCode.FAILED
        reason = _error_in(printed) or f"its process ended with exit code {code}"
        return self._unrecorded(run, RunStatus.FAILED, known, reason)

    def _unrecorded(self, run: PlannedRun, status: str, code: ExitCode | None, reason: str) -> GoalResult:
        return GoalResult(
            id=run.id,
            line=run.goal.number,
            run_id=run.run_id,
            folder=str(self._folder.runs_dir / run.run_id),
            status=status,
            exit_code=code,
            reason=reason,
            workspace=str(run.options.workspace),
        )


def _printed(output: Path) -> str:
    """The end of what the process printed; an empty file is deleted."""
    try:
        content = output.read_bytes()[-PRINTED_BYTES:].decode("utf-8", "replace")
        if not content:
            output.unlink()
    except OSError:
        return ""
    return content


def _error_in(printed: str) -> str:
    errors = [line.removeprefix("error: ") for line in printed.splitlines() if line.startswith("error: ")]
    return one_line("; ".join(errors), 500)
