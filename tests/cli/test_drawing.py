from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from codex_multi_role.cli.live import render
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.plain import PlainLines, question_lines
from codex_multi_role.run_folder import Question, event_of
from codex_multi_role.run_folder import events as e
from codex_multi_role.run_folder.event_log import LONGEST_TEXT
from tests.support.recorded_runs import in_order, make_run, started, turn


def drawn(course: Course, width: int, now: str = "", height: int = 1000, *, questions: bool = True) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(render(course, now or course.at, width, height, questions=questions))
    return capture.get()


def test_question_is_shown_with_its_commands_until_it_is_answered() -> None:
    """A resumed run no longer shows it, nor does a view that leaves it to who asks."""
    asked = [started(), e.ReviewAsked("ok.1", "Ship it?")]
    course = Course.of(in_order(*asked))
    view = drawn(course, 250)
    assert "review ok.1: Ship it?" in view
    run = "20260131_101500_0a1b2c3d --runs-dir /project/runs"
    assert f"  answer: codex-multi-role approve {run} --resume\n" in view
    assert f"  reject: codex-multi-role reject {run} --comment WHY --resume\n" in view
    for later in (e.ReviewAnswered("ok.1", True, "", "ann"), started(resumed=True)):
        assert "review" not in drawn(Course.of(in_order(*asked, later)), 100)
    assert "Ship it?" not in drawn(course, 100, questions=False)


@pytest.mark.extensions
def test_question_of_a_run_on_workers_is_answered_through_the_database(tmp_path: Path) -> None:
    """The folder in its events is on another machine."""
    copy = make_run(tmp_path, "first", shared={"database": "postgresql://db/x"})
    course = Course.of(in_order(started(), e.ReviewAsked("ok.1", "Ship it?")))
    course.folder = copy.path
    where = "first --database-url postgresql://db/x"
    view = drawn(course, 250)
    assert f"  answer: codex-multi-role approve {where}\n" in view
    assert f"  reject: codex-multi-role reject {where} --comment WHY\n" in view


def test_time_of_a_working_role_grows_with_the_clock() -> None:
    course = Course.of(in_order(started(), *turn("planner", 1, 1)[:1]))
    view = drawn(course, 100, now="2026-01-31T10:16:06.000+00:00")
    assert "● planner: 1 min 05 s" in view or "planner: thinking" in view
    assert "1 min 06 s" in view


def test_nothing_has_happened_yet() -> None:
    assert "starting" in drawn(Course(), 80)


def test_line_of_ten_megabytes_is_bounded_where_it_enters_the_view() -> None:
    line = f"{'x' * 5_000_000}{' ' * 5_000_000}"
    said = [
        started(),
        e.StepStarted("solve", 1, 0, title=line),
        e.StateChanged("solve.1.0", "T", "IN_PROGRESS", line),
        e.TurnStarted("a", 1, 1, 1, None, unit="solve.1.0"),
        e.RoleActivity("a", 1, line),
        e.ReviewAsked("b.1", line),
        e.TestsEnded(1, "failed", 3, 1, 0, 0, 4.0, [line], verdict="failed", messages={line: line}),
        e.TurnEnded("a", 1, "completed", "completed", line, 1, 1, 1.0, line),
        e.Warning(line),
    ]
    course, lines = Course(), PlainLines(Course())
    for event in map(event_of, [event.as_record() for event in in_order(*said)]):
        course.apply(event)
        assert all(len(told) < 1000 for told in lines.of(event))
    assert max(map(len, drawn(course, 80).splitlines())) <= 80
    assert len(repr(course)) < 20 * LONGEST_TEXT
    question = Question("b.1", line, f"{line}\n{line}", "2026-01-31T10:15:00+00:00", None, None)
    assert max(map(len, question_lines(question))) < 2000
