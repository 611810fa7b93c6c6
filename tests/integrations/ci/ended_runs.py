"""Runs that are over, with tests that a model wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codex_multi_role.integrations.ci.ended import EndedRun
from codex_multi_role.presentation.progress import Progress
from codex_multi_role.run_folder import RunFolder, read_events
from codex_multi_role.run_options import RunReport
from tests.cli.run_folders import make_run

RUN_ID = "20260131_101500_0a1b2c3d"
TOTALS = {"turns": 5, "repairs": 1, "input_tokens": 6000, "output_tokens": 170, "seconds": 12.5}
HOSTILE = [
    "::error::owned",
    "x\n::add-mask::owned",
    "x\r::set-output name=outcome::done",
    "see ##[set-output name=outcome]done",
    "100 %0A::error::owned",
    "`` ` **bold** <img src=x onerror=alert(1)> @everyone #1 [a](https://evil) ![b](https://evil) www.evil.com",
    "a | b \\| c \\\\| d",
    "`",
    "``` \n # heading",
    "\x1b[2J]]>&<\x00\ud800\ufffe",
]


def make_ended(folder: Path, exit_code: int = 1, reason: str = "all 3 cycles are used up", **changes: Any) -> EndedRun:
    """A recorded run that ended so; its workspace is ``folder/workspace``."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    run = make_run(folder / "runs", RUN_ID, workspace=str(workspace), exit_code=exit_code)
    outcome = {0: "done", 1: "cycles_used_up", 4: "waiting_for_review", 5: "budget_used_up"}.get(
        exit_code, "role_failed"
    )
    values = {"status": "ended", "outcome": outcome, "reason": reason, "hint": "", **changes}
    report = RunReport(run.run_id, run.path, exit_code=exit_code, totals=TOTALS, **values)
    return EndedRun.of(report, Progress.of(read_events(run.events_path)), folder / "runs")


def leave_tests(run: RunFolder | None, report: str, **result: Any) -> None:
    """The run's latest tests leave this JUnit report, or none where it is empty."""
    assert run is not None
    folder = run.new_tests_folder()
    (folder / "result.json").write_text(json.dumps({"status": "failed", "passed": 1, "failed": 1, **result}))
    if report:
        (folder / "junit.xml").write_text(report)
