"""A batch of seven goals as its table and its end show it, without a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.cli.output import say
from codex_multi_role.extensions.machines.batches.batch_progress import BatchProgress
from codex_multi_role.extensions.machines.batches.batch_runs import result_without_run
from codex_multi_role.extensions.machines.batches.goal_results import GoalResult, exit_code_of, result_of
from codex_multi_role.extensions.machines.batches.planned_runs import plan_runs
from codex_multi_role.extensions.machines.commands import batch_views
from codex_multi_role.extensions.machines.commands.batch_summary import resume_batch_command, summary_lines
from codex_multi_role.run_folder.events import ReviewAsked, StepStarted
from tests.support.batches import defaults, goals
from tests.support.recorded_runs import in_order, record, started, turn

NAMES = ("parser", "slugs", "numerals", "notes", "units", "links", "colours")
FAILED = "the role implementer gave no valid answer in 3 attempts: summary: is missing"
NEWS = {
    "numerals": [*turn("planner", 1, 1), *turn("implementer", 1, 1), *turn("planner", 2, 2)[:2]],
    "notes": [*turn("planner", 1, 1), ReviewAsked("approve.1", "Carry out this plan?")],
    "units": [],
}


@contextmanager
def shown_batch() -> Iterator[None]:
    """Two goals have ended, three run, of which one asks a person; after the block it is stopped, and ends."""
    lines = [{"id": name, "goal": f"Write {name}; ローマ数字を変換するプログラムを書いてください"} for name in NAMES]
    runs = {run.id: run for run in plan_runs(goals(*lines), defaults(Path()), "night", Path())}
    results = {name: result_without_run(run) for name, run in runs.items()}
    progress = BatchProgress(results.values(), runs.values())

    def ended(name: str, **told: Any) -> GoalResult:
        known = {"id": name, "line": 1, "run_id": runs[name].run_id, "folder": "/runs"}
        results[name] = result_of(record(runs[name].run_id, **told), **known)
        return results[name]

    for name in NAMES[:5]:
        progress.started(runs[name])
    progress.finish(ended("parser", status="succeeded", outcome="done", reason="", exit_code=0))
    progress.finish(ended("slugs", status="failed", outcome="role_failed", reason=FAILED, exit_code=3))
    for name, news in NEWS.items():
        for event in in_order(started(), StepStarted("team", 1, 1), *news):
            progress.heard(name, event)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_views, "now", lambda: in_order(*[started()] * 30)[-1].at)
        with batch_views.batch_view(progress, as_json=False, quiet=False, plain=False) as view:
            yield
            for name in NEWS:
                view.ended(ended(name, status="interrupted", outcome="", reason="the run was stopped", exit_code=130))
    code = exit_code_of(results.values(), interrupted=True)
    for line in summary_lines([*results.values()], code, Path("runs/batches/night/results.jsonl"), Path("runs")):
        say(line)
    params = {"shard": None, "database_url": None, "output": None, "file": "goals.jsonl", "runs_dir": Path("runs")}
    say(f"  next     {resume_batch_command(params, 'night', [])}")
