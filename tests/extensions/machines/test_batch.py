"""What `batch` shows: a table that fits any terminal, and a summary that says what to do next."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from codex_multi_role.errors import ExitCode, RunStatus
from codex_multi_role.extensions.machines.batches.batch_progress import BatchProgress
from codex_multi_role.extensions.machines.batches.goal_results import NOT_STARTED, GoalResult
from codex_multi_role.extensions.machines.batches.planned_runs import plan_runs
from codex_multi_role.extensions.machines.commands.batch_summary import MAX_NAMED, summary_lines
from codex_multi_role.extensions.machines.commands.batch_views import drawn
from codex_multi_role.presentation.outcome import GLYPHS
from codex_multi_role.run_folder.events import RunStarted, TurnEnded, TurnStarted
from tests.support.batches import OF_TEAM, batch, defaults, goals, one_role, results, write_goals
from tests.support.console import at_terminal, console
from tests.support.teams import say

AT = "2026-01-31T10:15:{:02d}.000+00:00"


def result(name: str, code: int | None, status: str = RunStatus.ENDED, reason: str = "") -> GoalResult:
    totals = {"turns": 2, "input_tokens": 30_000, "output_tokens": 500, "seconds": 61.0}
    return GoalResult(name, 1, f"night-{name}", "/runs", status, status, code, reason, totals)


def progress(folder: Path, number: int) -> BatchProgress:
    """One goal has ended, one waits, and the others work: their first role has started its second turn."""
    lines = [{"id": f"goal-{index}", "goal": "Write a parser\nfor dates"} for index in range(number)]
    runs = plan_runs(goals(*lines), defaults(folder), "night", folder)
    results = [GoalResult(run.id, 1, run.run_id, "") for run in runs]
    shown = BatchProgress(results, runs)
    for run in runs[1:]:
        shown.started(run)
        for event in (
            RunStarted(
                run.run_id, "g", "cycles", 3, ["planner"], "", "", None, resumed=False, steps=["team"], at=AT.format(0)
            ),
            TurnStarted("planner", 1, 1, 1, None, at=AT.format(1)),
            TurnEnded("planner", 1, "completed", "completed", "", 900, 100, 3.0, "a plan", at=AT.format(4)),
            TurnStarted("planner", 2, 2, 1, None, at=AT.format(5)),
        ):
            shown.heard(run.id, event)
    shown.finish(result(runs[1].id, 3, RunStatus.FAILED, "the role planner failed"))
    return shown


def test_earlier_spending_of_a_resumed_goal_counts_once(tmp_path: Path) -> None:
    """Also that of a turn that was killed, whose end the resumed run publishes before it starts."""
    (run,) = plan_runs(goals({"id": "goal", "goal": "Write"}), defaults(tmp_path), "night", tmp_path)
    shown = BatchProgress([result("goal", None, RunStatus.KILLED)], [run])
    assert shown.tokens == 30_500
    shown.started(run)
    start = RunStarted(run.run_id, "g", "cycles", 3, ["planner"], "", "", None, resumed=True, at=AT.format(2))
    killed, ended = (
        TurnEnded("planner", number, "completed", "completed", "", 900, 100, 3.0, "", at=AT.format(number))
        for number in (1, 3)
    )
    for event in (killed, start, ended):
        shown.heard("goal", event)
    assert shown.tokens == 31_500
    shown.finish(result("goal", 0))
    assert shown.tokens == 30_500


def text(shown: BatchProgress, width: int, height: int = 30) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(drawn(shown, width, height, AT.format(9), GLYPHS))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_table_has_running_goals_the_last_ended_and_counts(tmp_path: Path) -> None:
    lines = text(progress(tmp_path, 4), 140)
    assert lines[0].split() == ["goal", "state", "now", "turns", "tokens", "cost", "time"]
    assert lines[1].split()[:4] == ["goal-1", "✗", "Failed", "the"]
    assert lines[2].split("  ")[:2] == ["goal-2", "Write a parser for dates"]
    assert [word for word in ("cycle 2 of 3", "planner: ", "1.0k", "9.0 s") if word not in lines[2]] == ["1.0k"]
    assert lines[-1] == "0 reached, 1 not reached, 2 running, 1 waiting, 32.5k tokens, unpriced"


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
def test_table_fits_every_terminal(tmp_path: Path, width: int) -> None:
    lines = text(progress(tmp_path, 300), width, height=24)
    assert len(lines) <= 24
    assert all(len(line) <= width for line in lines)


def test_summary_names_what_needs_attention(tmp_path: Path) -> None:
    failed = [result(f"f{index}", 3, RunStatus.FAILED, "the role failed") for index in range(MAX_NAMED + 2)]
    results = [result("a", 0, "done"), *failed, result("z", 5, NOT_STARTED)]
    lines = list(summary_lines(results, ExitCode.FAILED, tmp_path / "results.jsonl", tmp_path))
    assert lines[0] == f"1 of {len(results)} goals reached"
    assert "  f0: failed: the role failed" in lines
    assert "  and 2 more, see the results" in lines
    assert lines[-1] == "  exit     3: a step or Codex failed"
    assert not any(line.startswith("  z:") for line in lines)


def test_batch_from_standard_input_needs_a_name(tmp_path: Path) -> None:
    done = console("batch", "-", folder=tmp_path, text='{"goal": "x"}\n')
    assert (done.returncode, done.stdout) == (2, "")
    assert "a batch from standard input needs --name" in done.stderr


def test_unknown_batch_is_not_resumed(tmp_path: Path) -> None:
    team = one_role(tmp_path)
    write_goals(team, {"goal": "x"})
    done = batch(team, "--resume")
    assert done.returncode == 2
    assert "batch goals was not found in" in done.stderr
    assert not team.runs.exists()


@pytest.mark.long
def test_table_is_drawn_and_interrupted_at_a_terminal(tmp_path: Path) -> None:
    """Only here a batch is interrupted while a goal runs, and its table is drawn again and again."""
    team = one_role(tmp_path, {**say(status="DONE"), "delay_seconds": 60})
    write_goals(team, {"id": "slow", "goal": "Wait for it"}, {"goal": "never"})
    command = ["-m", "codex_multi_role", "batch", "goals.jsonl", *OF_TEAM, "--concurrency=1"]
    with at_terminal([sys.executable, *command], tmp_path, columns=120) as session:
        session.wait_for("0 reached, 0 not reached, 1 running, 1 waiting")
        session.wait_for("one:")
        session.type("\x03")
        assert session.end() == ExitCode.INTERRUPTED
    assert "slow" in session.drawn
    assert "codex-multi-role batch goals.jsonl --resume --name=goals" in session.drawn
    assert [each["status"] for each in results(team).values()] == ["interrupted", "waiting"]
