"""The clock of a run's work, by a time that the test sets."""

from __future__ import annotations

from codex_multi_role.steps.work_clock import WorkClock


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_work_clock_resumes_and_pauses_while_awaiting_person() -> None:
    """It continues from the time of earlier sessions and pauses while the run waits only for a person."""
    time = Time()
    clock = WorkClock(5.0, time)
    time.now += 1
    with clock.person():
        time.now += 10
        assert clock.seconds == 6
        with clock.person():
            time.now += 10
        time.now += 10
    time.now += 2
    assert clock.seconds == 8


def test_turn_beside_the_question_counts() -> None:
    time = Time()
    clock = WorkClock(0, time)
    with clock.person():
        time.now += 10
        with clock.turn():
            time.now += 3
        time.now += 10
    assert clock.seconds == 3


def test_turn_that_asks_itself_counts_only_where_another_does() -> None:
    time = Time()
    clock = WorkClock(0, time)
    with clock.turn():
        time.now += 1
        with clock.person(within_turn=True):
            time.now += 10
            with clock.turn():
                time.now += 3
        time.now += 1
    assert clock.seconds == 5
