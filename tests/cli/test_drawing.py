from __future__ import annotations

import io

import pytest
from rich.console import Console

from codex_multi_role.cli.drawing import render
from codex_multi_role.presentation.progress import Progress
from codex_multi_role.run_folder import events as e
from tests.presentation.recorded_run import in_order, started, turn, whole_run


def drawn(progress: Progress, width: int, now: str = "") -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(render(progress, now or progress.at, width))
    return capture.get()


def test_the_table_has_every_role_with_what_it_did_and_cost() -> None:
    view = drawn(Progress.of(whole_run()), 120)
    assert "run 20260131_101500_0a1b2c3d  flow cycles  Convert roman numerals" in view
    assert "No model is asked: the answers come from the playbook roman-numerals." in view
    assert "cycle 2 of 3" in view
    (implementer,) = [line.split() for line in view.splitlines() if line.startswith("implementer")]
    assert implementer == ["implementer", "completed", "3", "3600", "102", "4.5", "s", "what", "implementer", "did"]
    assert "tests 002: passed: 4 passed   files: 3 written, 1 skipped" in view
    assert "warning: the disk is nearly full" in view


def test_a_question_stands_there_until_it_is_answered() -> None:
    asked = [started(), e.ReviewAsked("ok.1", "Ship it?")]
    assert "review ok.1: Ship it?" in drawn(Progress.of(in_order(*asked)), 100)
    for later in (e.ReviewAnswered("ok.1", True, "", "ann"), started(resumed=True)):
        assert "review" not in drawn(Progress.of(in_order(*asked, later)), 100)


@pytest.mark.parametrize("width", [200, 92, 91, 64, 63, 40, 24])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    view = drawn(Progress.of(whole_run()), width)
    assert max(map(len, view.splitlines())) <= width
    assert "planner" in view
    assert "completed" in view


def test_the_time_of_a_working_role_grows_with_the_clock() -> None:
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
