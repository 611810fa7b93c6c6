from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from codex_multi_role.cli.live import render
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.plain import PlainLines, question_lines
from codex_multi_role.run_folder import Question, RunEvent, event_of
from codex_multi_role.run_folder import events as e
from codex_multi_role.run_folder.event_log import LONGEST_TEXT
from tests.support.recorded_runs import ended, in_order, make_run, started, turn, whole_run


def drawn(course: Course, width: int, now: str = "", height: int = 1000, *, questions: bool = True) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(render(course, now or course.at, width, height, questions=questions))
    return capture.get()


def test_tree_has_every_role_with_what_it_did_and_cost() -> None:
    view = drawn(Course.of(whole_run()[:-1]), 120)
    assert "run 20260131_101500_0a1b2c3d  flow cycles  Convert roman numerals" in view
    assert "No model is asked: the answers come from the playbook roman-numerals." in view
    assert "cycle 2 of 3" in view
    assert "\n● team x2: 11.0 s, $0.84\n  ✓ planner: 1.5 s, $0.42, what planner did\n" in view
    assert "  ✓ implementer: 1.5 s, $0.42, what implementer did\n" in view
    assert "tests 002: passed: 4 passed\nfiles in answers: 2 written, 1 skipped\n" in view
    assert "warning: the disk is nearly full" in view


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


def test_steps_are_in_the_order_of_the_flow_with_their_visits() -> None:
    steps = ["plan", "develop", "execute", "done"]
    visits = [("plan", 1), ("develop", 1), ("execute", 1), ("plan", 2), ("develop", 2)]
    step_events = [e.StepStarted(step, visit, 0) for step, visit in visits]
    course = Course.of(in_order(replace(started(), cycles=0, steps=steps), *step_events))
    assert "\n✓ plan x2: 1.0 s\n● develop x2: 0.0 s\n✓ execute: 1.0 s\n○ done\n" in drawn(course, 100)
    called = [*step_events[:2], e.StepStarted("develop.1/inner", 1, 0)]
    course = Course.of(in_order(replace(started(), steps=steps), *called))
    assert "\n● develop: 1.0 s\n  ● inner: 0.0 s\n○ execute\n" in drawn(course, 100)


def test_remaining_limits_count_turns_tokens_and_working_time() -> None:
    """Time in which the run waits for an answer does not count."""
    course = Course.of(in_order(started(), *turn("planner", 1, 1), *turn("implementer", 1, 1)[:1]))
    course.work.seconds = 60.0
    assert "left: 18 turns, 48.8k tokens, 9 min 00 s" in drawn(course, 100)
    later = "2026-01-31T10:15:14.000+00:00"  # ten seconds into the turn
    assert "tokens, 8 min 50 s" in drawn(course, 100, now=later)
    course.questions["ok.1"] = "Ship it?"
    assert "tokens, 9 min 00 s" in drawn(course, 100, now=later)
    assert "left" not in drawn(Course.of(whole_run()), 100)


def tasks_at_work() -> list[RunEvent]:
    """Of four tasks, the first is at work, the second has a new failure, and the last ones wait."""
    titles = enumerate(["slug_words", "is_slug", "", "unslug"])
    pending = [e.StateChanged(f"solve.1.{number}", f"T{number + 1}", "PENDING", "", title) for number, title in titles]
    working = [replace(each, state="IN_PROGRESS") for each in pending[:2]]
    turns = [e.TurnStarted(f"coder.{number}", 1, 1, 1, None, unit=f"solve.1.{number}") for number in (0, 1)]
    failed = e.TestsEnded(
        1, "failed", 3, 1, 0, 0, 4.0, ["test_slug::test_is_slug"], verdict="failed", new_failures=1,
        messages={"test_slug::test_is_slug": "assert is_slug('a b') is False"},
    )  # fmt: skip
    after = [turn("coder.1", 1, 1)[-1], e.TestsStarted(1, "coder.1", 1), failed]
    over = replace(pending[1], state="COMPLETED", reason="1 new failure")
    return [started(), e.StepStarted("solve", 1, 0), *pending, *working, *turns, *after, over]


def test_tasks_have_titles_and_their_failed_tests() -> None:
    view = drawn(Course.of(in_order(*tasks_at_work())), 90)
    assert "1 of 4 tasks" in view
    for line in (
        "● solve 1/4: 12.0 s, $0.42",
        "  ● T1 slug_words: coder.0: thinking, 7.0 s",
        "  ■ T2 is_slug: completed, 1 new failure, 6.0 s, $0.42",
        "    ✗ test_slug::test_is_slug",
        "        assert is_slug('a b') is False",
        "  ○ T3\n  ○ T4 unslug",
    ):
        assert f"\n{line}\n" in view


def test_running_tests_say_how_long_they_took_last_time() -> None:
    again = [e.TurnStarted("coder.0", 2, 1, 1, None, unit="solve.1.0"), e.TestsStarted(2, "coder.0", 2)]
    course = Course.of(in_order(*tasks_at_work(), *again))
    view = drawn(course, 90, now="2026-01-31T10:15:27.000+00:00")
    assert "● T1 slug_words: tests running, 12.0 s (4.0 s last time)" in view


def test_before_the_first_turn_it_says_what_it_waits_for() -> None:
    course = Course.of(in_order(started(), e.BaselineStarted(last_seconds=18.0)))
    view = drawn(course, 100, now="2026-01-31T10:15:13.000+00:00")
    assert "waiting for the tests before the first change: 12.0 s (18.0 s last time); skip: --no-baseline" in view


@pytest.mark.parametrize("width", [100, 60, 30])
def test_answer_commands_are_not_cut_off_by_many_roles(width: int) -> None:
    course = crowd()
    course.started = replace(course.started, playbook="roman-numerals")
    course.questions = {"ok.1": "Ship it?"}
    view = drawn(course, width, height=30)
    assert len(view.splitlines()) <= 30
    assert "codex-multi-role reject" in " ".join(view.split())


def crowd() -> Course:
    tasks = [e.StateChanged(f"solve.1.{number}", f"T{number}", "PENDING", "") for number in range(60)]
    over = [replace(task, state="COMPLETED") for task in tasks[:20]]
    return Course.of(
        in_order(started(), e.StepStarted("solve", 1, 0), *tasks, *over, replace(tasks[40], state="IN_PROGRESS"))
    )


def test_more_tasks_than_lines_leave_those_at_work_in_sight() -> None:
    view = drawn(crowd(), 100, height=20)
    assert len(view.splitlines()) <= 20
    assert "● T40" in view
    assert "more: 20 completed, 2" in view


@pytest.mark.parametrize("width", [200, 92, 91, 64, 63, 40, 24])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    view = drawn(Course.of(whole_run()[:-1]), width)
    assert max(map(len, view.splitlines())) <= width
    assert "planner" in view or width < 30


def test_time_of_a_working_role_grows_with_the_clock() -> None:
    course = Course.of(in_order(started(), *turn("planner", 1, 1)[:1]))
    view = drawn(course, 100, now="2026-01-31T10:16:06.000+00:00")
    assert "● planner: 1 min 05 s" in view or "planner: thinking" in view
    assert "1 min 06 s" in view


def test_nothing_has_happened_yet() -> None:
    assert "starting" in drawn(Course(), 80)


def test_markup_and_control_characters_of_a_model_are_text() -> None:
    record = e.TurnEnded("planner", 1, "completed", "completed", "", 1, 1, 0.1, "[red]\x1b[31mred[/red]")
    assert "[red][31mred[/red]" in drawn(Course.of(in_order(started(), record)), 120)


def test_last_line_of_a_finished_run_says_how_it_ended() -> None:
    (line,) = [line for line in drawn(Course.of(whole_run()), 100).splitlines() if "elapsed" in line]
    assert line.startswith("Done, cycle 2 of 3  28.0 s elapsed")


def test_failed_tests_are_named() -> None:
    view = drawn(Course.of(whole_run()[:16]), 100)
    assert "tests 001: failed: 3 passed, 1 failed" in view
    assert "\n  ✗ test_a::test_one\n" in view


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_long_names_are_whole_and_no_word_is_broken(width: int) -> None:
    course = Course.of(in_order(started()))
    name = "documentation_structure_reviewer.12"
    said = " ".join(f"word{number:03d}" for number in range(40))
    course.apply(e.TurnStarted(name, 1, 1, 1, None, at=course.at))
    course.apply(e.TurnEnded(name, 1, "invalid_reply", "x", "", 1, 1, 4000.0, said, at=course.at))
    view = drawn(course, width)
    assert f"✗ {name}: invalid reply, 1 h" in view
    assert max(map(len, view.splitlines())) <= width
    assert {*re.findall(r"word\w*", view)} <= {*said.split()}


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


def test_ended_step_folds_unless_it_is_the_only_one() -> None:
    over = [e.StateChanged("solve.1.0", "T1", "COMPLETED", ""), e.StepEnded("solve", 1, "COMPLETED"), ended()]
    for steps, folds in ((["solve", "check"], True), (["solve"], False)):
        view = drawn(Course.of(in_order(replace(started(), steps=steps), e.StepStarted("solve", 1, 0), *over)), 80)
        assert ("T1" not in view) is folds
