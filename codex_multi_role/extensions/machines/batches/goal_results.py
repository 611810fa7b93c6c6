"""What came of each goal: read from its run folder, written to the result file, and summed up in one exit code."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from codex_multi_role.errors import ExitCode, RunStatus
from codex_multi_role.host.atomic import write_pieces
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.run_folder import RunEvent, RunFolder, totals_of
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.folder import has_reached_end
from codex_multi_role.run_folder.owner import read_owner

WAITING, NOT_STARTED = "waiting", "not_started"
"""The status of a goal whose run does not exist: it may still start, or it will not."""
WORST_FIRST = (
    *(ExitCode.INTERRUPTED, ExitCode.FAILED, ExitCode.WRONG_USAGE, ExitCode.GOAL_NOT_REACHED),
    *(ExitCode.WAITING, ExitCode.BUDGET_USED_UP),
)
SHARE_OF_TIME = 20
"""A result file that takes a second to write is written at most every twenty seconds."""


@dataclass(frozen=True)
class GoalResult:
    """How a goal is doing or how it ended: a line of the result file.

    ``status``: that of the run, or `WAITING` or `NOT_STARTED`. ``exit_code``: of the run; None as long as it has none.
    """

    id: str
    line: int
    run_id: str
    folder: str
    status: str = WAITING
    outcome: str = ""
    exit_code: int | None = None
    reason: str = ""
    totals: Mapping[str, Any] = field(default_factory=dict)
    files_changed: int | None = None
    workspace: str = ""

    @property
    def used(self) -> dict[str, float]:
        """What it has used, by `schedule.AMOUNTS`."""
        tokens = self.totals.get("input_tokens", 0) + self.totals.get("output_tokens", 0)
        used = {"turns": self.totals.get("turns", 0), "tokens": tokens, "seconds": self.totals.get("seconds", 0)}
        return {**used, "cost": float(self.cost.amount)}

    @property
    def cost(self) -> Cost:
        return Cost.of_totals(self.totals)

    @property
    def has_failed(self) -> bool:
        """Whether its run failed or was killed, or could not start."""
        return self.code in (ExitCode.FAILED, ExitCode.WRONG_USAGE)

    @property
    def code(self) -> ExitCode | None:
        """What the goal means for the exit code of the batch; None as long as it is waiting or running."""
        is_killed = self.status == RunStatus.KILLED and self.exit_code is None
        return ExitCode.FAILED if is_killed else ExitCode.find(self.exit_code)

    def as_line(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def recorded_result(goal_id: str, line: int, folder: RunFolder) -> GoalResult | None:
    """Read ``run.json`` of a run without a process; None if it does not exist."""
    record = read_object(folder.record_path)
    if not record:
        return None
    is_killed = record.get("status") == RunStatus.RUNNING
    known = {"status": RunStatus.KILLED, "totals": totals_of(folder)} if is_killed else {}
    return result_of(record, id=goal_id, line=line, run_id=folder.run_id, folder=str(folder.path), **known)


def result_of(record: Mapping[str, Any], **known: Any) -> GoalResult:  # noqa: ANN401 - as the fields are
    """What ``run.json`` says of a goal, unless it is ``known`` better."""
    told = {name: str(record.get(name) or "") for name in ("status", "outcome", "reason", "workspace")}
    files, totals = record.get("files"), record.get("totals") or {}
    counted = {"files_changed": len(files) if isinstance(files, list) else None, "totals": totals}
    return GoalResult(**{**told, "exit_code": record.get("exit_code"), **counted, **known})


def is_finished(folder: RunFolder) -> bool:
    """Whether the run reached an end that `resume` does not continue, and its process got to release it."""
    return has_reached_end(read_object(folder.record_path)) and not read_owner(folder)


def exit_code_of(results: Iterable[GoalResult], *, interrupted: bool = False) -> ExitCode:
    """0 if every goal was reached, otherwise the first of `WORST_FIRST` that any goal has."""
    codes = {result.code for result in results} | ({ExitCode.INTERRUPTED} if interrupted else set())
    return next((code for code in WORST_FIRST if code in codes), ExitCode.GOAL_REACHED)


News = RunEvent | GoalResult
"""What happens in the run of a goal; its result comes last."""


class ResultFile:
    """The result file: a line per goal in file order, replaced in one step, so that it is whole at any moment.

    It is written after every end, unless that takes too much of the time: then it is a few writes behind until `tick`
    or `write`.
    """

    def __init__(self, path: Path, results: Iterable[GoalResult]) -> None:
        self.path = path
        self._lines = {result.id: result.as_line() for result in results}
        self._not_before = 0.0
        self._changed = True

    def put(self, result: GoalResult) -> None:
        """Replace the line of the goal. Raises `StorageError`."""
        self._lines[result.id] = result.as_line()
        self._changed = True
        self.tick()

    def tick(self) -> None:
        """Write the file if it has changed and may be written again. Raises `StorageError`."""
        if self._changed and time.monotonic() >= self._not_before:
            self.write()

    def write(self) -> None:
        """Write the file now. Raises `StorageError`."""
        began = time.monotonic()
        write_pieces(self.path, self._lines.values())
        ended = time.monotonic()
        self._not_before = ended + SHARE_OF_TIME * (ended - began)
        self._changed = False
