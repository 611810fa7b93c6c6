from __future__ import annotations

from dataclasses import replace

from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.pieces import REPAIRING, STARTING, WORKING
from codex_multi_role.run_folder import RunEvent, event_of
from codex_multi_role.run_folder import events as e
from tests.support.memory import most_allocated
from tests.support.recorded_runs import ROLES, ended, in_order, started, turn, whole_run


def ready() -> list[RunEvent]:
    """The processes of all roles are ready."""
    return [e.RoleStarted(name, 1, "t", 0.1, False) for name in ROLES]


def test_end_of_a_run_shows_every_role_with_its_sums() -> None:
    course = Course.of(whole_run())
    implementer = course.roles["implementer"]
    assert list(course.roles) == ROLES
    assert (implementer.state, implementer.turn, implementer.turns) == ("completed", 3, 3)
    assert (implementer.input_tokens, implementer.output_tokens, implementer.seconds) == (3600, 102, 4.5)
    assert implementer.last == "what implementer did"
    assert course.ended is not None
    assert course.ended.exit_code == 0


def test_files_tests_and_warnings_are_kept() -> None:
    course = Course.of(whole_run())
    assert (course.files.written, course.files.skipped) == (3, 1)
    assert list(course.files.paths) == ["roman.py", "test_roman.py"]
    assert course.latest_tests is not None
    assert course.latest_tests.told["passed"] == 4
    assert course.warnings == ["the disk is nearly full"]


def test_role_works_from_the_start_to_the_end_of_its_turn() -> None:
    begun = in_order(started(), *turn("planner", 1, 1))
    working = Course.of(begun[:3])
    assert working.roles["planner"].state == WORKING
    assert working.roles["planner"].working_since == begun[1].at
    assert working.roles["planner"].last == "command: ls"
    assert working.roles["implementer"].state == STARTING
    assert Course.of(begun).roles["planner"].working_since == ""


def test_running_turn_counts_at_once_and_only_once() -> None:
    start, _, end = turn("planner", 1, 1)
    counted = [e.UsageCounted("planner", 1, 400, 10, 0.14), e.UsageCounted("planner", 1, 800, 20, None)]
    records = in_order(started(), start, *counted, end, start, e.UsageCounted("planner", 2, 5, 1, 0.08))
    seen = [Course.of(records[:length]) for length in range(2, len(records) + 1)]
    assert [(each.used.input_tokens, each.used.output_tokens) for each in seen] == [
        (0, 0),
        (400, 10),
        (800, 20),
        (1200, 34),
        (1200, 34),
        (1205, 35),
    ]
    costs = [None if each.used.cost.known is None else float(each.used.cost.known) for each in seen]
    assert costs == [0.0, 0.14, None, 0.42, 0.42, 0.5]
    assert [each.step_costs[""] == each.used.cost for each in seen[1:]] == [True] * 5
    assert [each.roles["planner"].has_cost for each in seen] == [False, *[True] * 5]


def test_repair_turn_is_distinguished() -> None:
    course = Course.of(in_order(started(), *turn("planner", 2, 1, repair_of=1)[:1]))
    assert course.roles["planner"].state == REPAIRING


def test_share_grows_with_the_roles_that_have_spoken_in_a_cycle() -> None:
    records = in_order(started(), *turn("planner", 1, 1), *turn("implementer", 1, 1), *turn("planner", 2, 2))
    shares = [round(Course.of(records[:end]).share or 0.0, 3) for end in (1, 4, 7, 8, 10)]
    assert shares == [0.0, 0.167, 0.333, 0.333, 0.5]


def test_turn_that_was_taken_over_uses_none_of_the_limit() -> None:
    start, _, end = turn("planner", 1, 1)
    assert isinstance(end, e.TurnEnded)
    taken = replace(end, input_tokens=0, output_tokens=0, reused_from="earlier/planner/1")
    events = in_order(started(), start, taken, *turn("implementer", 1, 1))
    assert Course.of(events).left(events[-1].at)["turns"] == 20 - 1


def test_resumed_run_keeps_its_counts() -> None:
    killed = in_order(started(), *turn("planner", 1, 1), *turn("implementer", 1, 1)[:1])
    course = Course.of([*killed, *in_order(started(resumed=True))])
    assert course.roles["planner"].input_tokens == 1200
    assert {name: role.state for name, role in course.roles.items()} == {
        "planner": "completed",
        "implementer": "interrupted",
    }
    assert course.roles["implementer"].working_since == ""


def test_roles_that_were_busy_at_the_end_are_interrupted() -> None:
    course = Course.of(in_order(started(), *turn("planner", 1, 1)[:1], ended(exit_code=1)))
    assert course.roles["planner"].state == "interrupted"


def test_skipped_and_a_restarted_role_say_why() -> None:
    course = Course.of(
        in_order(started(), e.RoleSkipped("planner", "timed out"), e.RoleRestarted("implementer", "it crashed"))
    )
    assert (course.roles["planner"].state, course.roles["planner"].last) == ("skipped", "timed out")
    assert course.roles["implementer"].last == "restarted: it crashed"


def test_events_of_a_newer_version_are_passed_over() -> None:
    course = Course.of([*in_order(started()), e.UnknownEvent(at="2026-01-31T10:16:00+00:00"), e.UnknownEvent()])
    assert course.at == "2026-01-31T10:16:00+00:00"


def test_where_shows_run_state_and_number_of_finished_tasks() -> None:
    """The state is the run's own word for it."""

    def state(unit: str, state: str) -> e.StateChanged:
        return e.StateChanged(unit, unit[-1:], state, "")

    tasks = [state("solve.1.0", "PENDING"), state("solve.1.1", "PENDING"), state("solve.1.0", "COMPLETED")]
    called = state("solve.1.0/inner.1.0", "PENDING")
    solving = [e.StepStarted("solve", 1, 1), state("", "SOLVING"), *tasks, called]
    records = in_order(started(), *ready(), *solving, e.StepStarted("verify", 1, 1))
    assert [Course.of(records[:end]).where for end in (4, 5, 9, 10)] == [
        "cycle 1 of 3",
        "SOLVING",
        "SOLVING, 1 of 2 tasks",
        "SOLVING",
    ]
    assert [Course.of(records[:end]).share for end in (3, 7, 9, 10)] == [None, 0.0, 0.5, 0.0]


def test_time_left_counts_down_during_tests_but_not_questions() -> None:
    """It stops while a person is asked."""
    begun = e.TurnStarted("planner", 1, 1, 1, None, worked_seconds=10.0)
    over = e.TurnEnded("planner", 1, "completed", "completed", "", 0, 0, 1.0, "", worked_seconds=11.0)
    asked = e.ReviewAsked("approve.1", "Keep it?")
    answered = e.ReviewAnswered("approve.1", True, "", "somebody")
    tests = e.TestsStarted(1, "planner", 1)
    records = in_order(started(), begun, over, tests, asked, tests, answered, tests, ended())
    now = in_order(*[tests] * 20)[-1].at
    left = [600 - Course.of(records[:end]).left(now)["seconds"] for end in range(1, 10)]
    assert left == [19, 10 + 18, 11 + 17, 11 + 17, 13, 13, 13 + 13, 13 + 13, 12.5]


def test_current_step_is_one_of_the_flows_own_whatever_its_name() -> None:
    steps = [e.StepStarted(name, 1, 1) for name in ("look.1", "batch", "batch.1.3/analyse")]
    records = in_order(started(), *steps)
    assert [Course.of(records[:end]).current_step for end in (2, 3, 4)] == ["look.1", "batch", "batch"]


def uses(cycles: int, *events: RunEvent) -> Course:
    begun = replace(started(), cycles=cycles, steps=["plan", "build"])
    return Course.of(in_order(begun, *ready(), *events))


def test_bar_is_full_once_the_flow_has_ended() -> None:
    begun = [started(), *turn("planner", 1, 1)]
    assert [Course.of(in_order(*begun, ended(exit_code=code))).share for code in (0, 1)] == [1.0, 1.0]
    parked = replace(ended(), exit_code=4)
    assert Course.of(in_order(*begun, parked)).share == Course.of(in_order(*begun)).share
    assert uses(0, ended()).share == 1.0


def test_cycles_are_named_only_where_a_flow_has_several() -> None:
    step = e.StepStarted("plan", 1, 1)
    assert [uses(cycles, step).where for cycles in (0, 1, 2)] == ["step plan", "step plan", "cycle 1 of 2"]
    assert uses(2, e.StepStarted("plan", 3, 3)).where == "cycle 3"
    only = in_order(replace(started(), cycles=1), *ready(), e.StepStarted("team", 1, 1))
    assert Course.of(only).where == ""


def test_cycle_of_a_called_flow_is_not_that_of_the_run() -> None:
    inner = [e.StepStarted("plan.1/team", 1, 1), *turn("planner", 1, 1)]
    assert uses(3, e.StepStarted("plan", 2, 2), *inner).cycle == 2


def test_processes_are_starting_until_one_has_a_turn() -> None:
    starting = [e.ProcessesStarting([*ROLES, "implementer.2"]), e.StepStarted("team", 1, 1)]
    records = in_order(started(), *starting, *ready(), e.RoleStarted("implementer.2", 1, "t", 0.1, False))
    assert [Course.of(records[:end]).where for end in (2, 4, 5, 6)] == [
        "starting 3 Codex processes",
        "starting 3 Codex processes, 1 ready",
        "starting 3 Codex processes, 2 ready",
        "cycle 1 of 3",
    ]
    first = in_order(started(), *starting, *turn("planner", 1, 1)[:1])
    assert Course.of(first).where == "cycle 1 of 3"


def test_current_tool_or_command_outlasts_messages() -> None:
    begun = turn("planner", 1, 1)[0]
    told = ["reasoning", "message", "command: ls", "message", "reasoning", "tool: ask_user"]
    records = in_order(started(), begun, *(e.RoleActivity("planner", 1, each) for each in told))
    assert [Course.of(records[:end]).roles["planner"].last for end in range(2, 9)] == [
        "thinking",
        "thinking",
        "writing its answer",
        "command: ls",
        "command: ls",
        "command: ls",
        "tool: ask_user",
    ]


def test_tasks_are_named_and_so_is_the_one_a_role_works_on() -> None:
    def state(number: int, state: str) -> e.StateChanged:
        return e.StateChanged(f"solve.1.{number}", f"T{number}", state, "")

    tasks = [state(number, "PENDING") for number in range(9)]
    states = [state(number, "IN_PROGRESS") for number in range(7)] + [state(1, "FAILED"), state(2, "COMPLETED")]
    solving = e.TurnStarted("solver.2", 1, 1, 1, None, unit="solve.1.3/inner.1")
    activity = e.RoleActivity("solver.2", 1, "command: ls")
    course = Course.of(in_order(started(), e.StepStarted("solve", 1, 1), *tasks, *states, solving, activity))
    assert course.roles["solver.2"].doing == "T3: command: ls"
    over = turn("solver.2", 1, 1)[-1]
    course.apply(replace(over, at=course.at))
    assert course.roles["solver.2"].doing == "what solver.2 did"


def test_fork_is_not_among_the_warnings() -> None:
    course = Course.of(in_order(started(), e.RunForked("forked from first before team:2")))
    assert (course.forked, course.warnings) == ("forked from first before team:2", [])


def work(tasks: int) -> None:
    """A fan-out in which each task has one turn and its tests."""
    course = Course.of([replace(started(), at="2026-01-31T10:15:00.000+00:00")])
    for number in range(tasks):
        unit, role, at = f"work.1.{number}", f"coder.{number % 8}", f"2026-01-31T10:15:00.{number:06d}+00:00"
        states = [e.StateChanged(unit, f"T{number}", state, "", f"task {number}") for state in ("PENDING", "COMPLETED")]
        over = replace(turn(role, number, 1)[-1], summary=f"wrote the function number {number}")  # type: ignore[call-arg]
        tests = [e.TestsStarted(number, role, number), e.TestsEnded(number, "passed", number, 0, 0, 0, number / 7)]
        for event in (states[0], e.TurnStarted(role, number, 1, 1, None, unit=unit), over, *tests, states[1]):
            course.apply(event_of({**event.as_record(), "at": at}))


def test_turns_of_a_fan_out_take_little_memory() -> None:
    """With the longer texts of real runs, 10,000 of them take 2,000 bytes each."""
    assert (most_allocated(work, 2_000) - most_allocated(work, 1)) / 2_000 <= 1_800
