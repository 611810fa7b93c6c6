from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from codex_multi_role.cli.drawing import render
from codex_multi_role.presentation.progress import Progress
from codex_multi_role.run_folder import events as e
from tests.support.recorded_runs import in_order, make_run, started, turn, whole_run


def drawn(progress: Progress, width: int, now: str = "", height: int = 1000, *, questions: bool = True) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(render(progress, now or progress.at, width, height, questions=questions))
    return capture.get()


def test_table_has_every_role_with_what_it_did_and_cost() -> None:
    view = drawn(Progress.of(whole_run()), 120)
    assert "run 20260131_101500_0a1b2c3d  flow cycles  Convert roman numerals" in view
    assert "No model is asked: the answers come from the playbook roman-numerals." in view
    assert "cycle 2 of 3" in view
    (implementer,) = [line.split() for line in view.splitlines() if line.startswith("implementer")]
    figures = ["3", "3600", "102", "$1.26", "4.5", "s"]
    assert implementer == ["implementer", "completed", *figures, "what", "implementer", "did"]
    assert "tests 002: passed: 4 passed   files: 3 written, 1 skipped" in view
    assert "warning: the disk is nearly full" in view


def test_question_is_shown_with_its_commands_until_it_is_answered() -> None:
    """A resumed run no longer shows it, nor does a view that leaves it to who asks."""
    asked = [started(), e.ReviewAsked("ok.1", "Ship it?")]
    progress = Progress.of(in_order(*asked))
    view = drawn(progress, 250)
    assert "review ok.1: Ship it?" in view
    run = "20260131_101500_0a1b2c3d --runs-dir /project/runs"
    assert f"answer: codex-multi-role approve {run} --resume, or codex-multi-role reject {run} --comment WHY" in view
    for later in (e.ReviewAnswered("ok.1", True, "", "ann"), started(resumed=True)):
        assert "review" not in drawn(Progress.of(in_order(*asked, later)), 100)
    assert "Ship it?" not in drawn(progress, 100, questions=False)


@pytest.mark.extensions
def test_question_of_a_run_on_workers_is_answered_through_the_database(tmp_path: Path) -> None:
    """The folder in its events is on another machine."""
    copy = make_run(tmp_path, "first", shared={"database": "postgresql://db/x"})
    progress = Progress.of(in_order(started(), e.ReviewAsked("ok.1", "Ship it?")))
    progress.folder = copy.path
    where = "first --database-url postgresql://db/x"
    answers = f"codex-multi-role approve {where}, or codex-multi-role reject {where} --comment WHY"
    assert f"answer: {answers}" in drawn(progress, 250)


def with_steps(*steps: str, **visited: int) -> Progress:
    progress = Progress.of(in_order(started()))
    progress.position.steps = {step: visited.get(step, 0) for step in steps}
    progress.position.step = progress.position.current_step = list(visited)[-1]
    return progress


def test_position_in_the_flow_is_shown_with_its_visits() -> None:
    assert "\nplan x2 > [develop x2] > execute > done\n" in drawn(
        with_steps("plan", "develop", "execute", "done", plan=2, execute=1, develop=2), 100
    )
    called = with_steps("plan", "each", each=1)
    called.position.step = "each.1.3/inner"
    assert "plan > [each]" in drawn(called, 100)
    many = with_steps(*(f"step{number}" for number in range(30)), step14=1)
    view = drawn(many, 50)
    assert "... > step13 > [step14] > step15 > ..." in view
    assert max(map(len, view.splitlines())) <= 50


def test_remaining_limits_count_turns_tokens_and_working_time() -> None:
    """Time in which the run waits for an answer does not count."""
    progress = Progress.of(in_order(started(), *turn("planner", 1, 1), *turn("implementer", 1, 1)[:1]))
    progress.work.seconds = 60.0
    assert "left: 18 turns, 48.8k tokens, 9 min 00 s" in drawn(progress, 100)
    later = "2026-01-31T10:15:14.000+00:00"  # ten seconds into the turn
    assert "tokens, 8 min 50 s" in drawn(progress, 100, now=later)
    progress.questions["ok.1"] = "Ship it?"
    assert "tokens, 9 min 00 s" in drawn(progress, 100, now=later)
    assert "left" not in drawn(Progress.of(whole_run()), 100)


def test_fan_out_has_a_bar_of_its_own_and_its_tasks_are_named() -> None:
    states = ("COMPLETED", "COMPLETED", "IN_PROGRESS", "IN_PROGRESS")
    tasks = [e.StateChanged(f"solve.1.{number}", f"T{number}", "PENDING", "") for number in range(4)]
    changed = [replace(task, state=state) for task, state in zip(tasks, states, strict=True)]
    view = drawn(Progress.of(in_order(started(), e.StepStarted("solve", 1, 0), *tasks, *changed)), 90)
    assert "step solve, 2 of 4 tasks" in view
    assert "━" in view
    assert "\ntasks in progress: T2, T3\n" in view


@pytest.mark.parametrize("width", [100, 60, 30])
def test_answer_commands_are_not_cut_off_by_many_roles(width: int) -> None:
    progress = crowd()
    progress.started = replace(progress.started, playbook="roman-numerals")
    progress.questions = {"ok.1": "Ship it?"}
    view = drawn(progress, width, height=30)
    assert len(view.splitlines()) <= 30
    assert "codex-multi-role reject" in " ".join(view.split())


def crowd() -> Progress:
    progress = Progress.of(in_order(started()))
    for number in range(60):
        progress.apply(e.RoleStarted(f"solver.{number}", 1, "t", 0.1, False, at=progress.at))
    return progress


def test_more_roles_than_lines_leave_those_at_work_in_sight() -> None:
    progress = crowd()
    progress.roles["solver.7"].state = "working"
    view = drawn(progress, 100, height=20)
    assert len(view.splitlines()) <= 20
    assert "solver.7 " in view
    assert "and 50 roles more: 2 starting, 48 ready" in view


@pytest.mark.parametrize("width", [200, 92, 91, 64, 63, 40, 24])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    view = drawn(Progress.of(whole_run()), width)
    assert max(map(len, view.splitlines())) <= width
    assert "planner" in view
    assert "completed" in view


def test_time_of_a_working_role_grows_with_the_clock() -> None:
    progress = Progress.of(in_order(started(), *turn("planner", 1, 1)[:1]))
    assert "65.0" not in drawn(progress, 100)
    view = drawn(progress, 100, now="2026-01-31T10:16:06.000+00:00")
    assert "1 min 05 s" in view
    assert "1 min 06 s" in view


def test_nothing_has_happened_yet() -> None:
    assert "starting" in drawn(Progress(), 80)


def test_markup_and_control_characters_of_a_model_are_text() -> None:
    record = e.TurnEnded("planner", 1, "completed", "completed", "", 1, 1, 0.1, "[red]\x1b[31mred[/red]")
    assert "[red][31mred[/red]" in drawn(Progress.of(in_order(started(), record)), 120)


def test_last_line_of_a_finished_run_says_how_it_ended() -> None:
    (line,) = [line for line in drawn(Progress.of(whole_run()), 100).splitlines() if "elapsed" in line]
    assert line.startswith("Done, cycle 2 of 3  28.0 s elapsed ━━━")


def test_failed_tests_are_named() -> None:
    view = drawn(Progress.of(whole_run()[:16]), 100)
    assert "tests 001: failed: 3 passed, 1 failed" in view
    assert "  failed: test_a::test_one" in view


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_long_names_and_states_are_whole_at_every_width(width: int) -> None:
    progress = Progress.of(in_order(started()))
    name = "documentation_structure_reviewer.12"
    progress.apply(e.TurnEnded(name, 1, "invalid_reply", "x", "", 1, 1, 4000.0, "said " * 50, at=progress.at))
    view = drawn(progress, width)
    assert name in view
    assert "invalid reply" in view
    assert all(heading in view for heading in ("role", "state"))
    assert max(map(len, view.splitlines())) <= width
