"""A batch of seven goals as its table and its end show it, without a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codex_multi_role.cli.output import say
from codex_multi_role.errors import RunStatus
from codex_multi_role.extensions.machines.batches.batch_progress import BatchProgress
from codex_multi_role.extensions.machines.batches.batch_runs import result_without_run
from codex_multi_role.extensions.machines.batches.goal_results import GoalResult, exit_code_of
from codex_multi_role.extensions.machines.batches.planned_runs import PlannedRun, plan_runs
from codex_multi_role.extensions.machines.commands import batch_views
from codex_multi_role.extensions.machines.commands.batch_summary import resume_batch_command, summary_lines
from codex_multi_role.run_folder import RunEvent
from codex_multi_role.run_folder import events as e
from tests.support.batches import defaults, goals
from tests.support.recorded_runs import in_order, started, turn

GOALS = {
    "parser": "Write a parser for dates",
    "slugs": "Turn titles into slugs",
    "numerals": "ローマ数字を変換するプログラムを書いてください",
    "notes": "Write the release notes from the commits since the last tag",
    "units": "Convert units",
    "links": "Find dead links in the documentation",
    "colours": "Parse CSS colours",
}
FAILED = "the role implementer gave no valid answer in 3 attempts: summary: is missing"
NEWS: dict[str, list[RunEvent]] = {
    "numerals": [*turn("planner", 1, 1), *turn("implementer", 1, 1), *turn("planner", 2, 2)[:2]],
    "notes": [*turn("planner", 1, 1), e.ReviewAsked("approve.1", "Carry out this plan?")],
    "units": [],
}


@contextmanager
def shown_batch() -> Iterator[None]:
    """Two goals have ended, three run, of which one asks a person; after the block it is stopped, and ends."""
    lines = [{"id": name, "goal": goal} for name, goal in GOALS.items()]
    runs = {run.id: run for run in plan_runs(goals(*lines), defaults(Path()), "night", Path())}
    results = {name: result_without_run(run) for name, run in runs.items()}
    progress = BatchProgress(results.values(), runs.values())
    for name, run in runs.items():
        if name not in ("links", "colours"):
            progress.started(run)
    for ended in (_result(runs["parser"], 0, "done"), _result(runs["slugs"], 3, "role_failed", FAILED)):
        results[ended.id] = ended
        progress.finish(ended)
    for name, news in NEWS.items():
        for event in in_order(started(), e.StepStarted("team", 1, 1), *news):
            progress.heard(name, event)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_views, "now", lambda: in_order(*[started()] * 30)[-1].at)
        with batch_views.batch_view(progress, as_json=False, quiet=False, plain=False) as view:
            yield
            view.stopping()
            for name in NEWS:
                results[name] = _result(runs[name], 130, "interrupted", "the run was interrupted")
                view.ended(results[name])
    code = exit_code_of(results.values(), interrupted=True)
    for line in summary_lines([*results.values()], code, Path("runs/batches/night/results.jsonl"), Path("runs")):
        say(line)
    params = {"shard": None, "database_url": None, "output": None, "file": "goals.jsonl", "runs_dir": Path("runs")}
    say(f"  next     {resume_batch_command(params, 'night', [])}")


def _result(run: PlannedRun, code: int, outcome: str, reason: str = "") -> GoalResult:
    totals = {"turns": 2, "input_tokens": 30_000, "output_tokens": 500, "seconds": 61.0, "cost": 0.84}
    status = {0: RunStatus.SUCCEEDED, 3: RunStatus.FAILED}.get(code, RunStatus.INTERRUPTED)
    return GoalResult(run.id, run.goal.number, run.run_id, "/runs", status, outcome, code, reason, totals)
