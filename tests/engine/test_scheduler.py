"""Pieces of work side by side: their order, their number at a time, and what ends them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from codex_multi_role.engine.journal_slots import RunHalted
from codex_multi_role.engine.scheduler import Scheduler
from codex_multi_role.errors import BudgetUsedUp, ReviewWaiting, RoleFailed, ending_for

Work = Callable[[], str]


def failing(error: BaseException) -> Work:
    def work() -> str:
        raise error

    return work


def giving(result: str, started: list[str]) -> str:
    started.append(result)
    return result


def test_results_are_in_order_of_the_works() -> None:
    first_is_done = threading.Event()

    def slow() -> str:
        assert first_is_done.wait(10)
        return "slow"

    def quick() -> str:
        first_is_done.set()
        return "quick"

    assert Scheduler[str]("item", 2).run([slow, quick]) == (["slow", "quick"], None)


@pytest.mark.parametrize("is_tolerated", [True, False])
def test_budget_counts_before_a_tolerated_failure(is_tolerated: bool) -> None:
    errors = [RunHalted(ending_for(each)) for each in (RoleFailed("no", "bad_request"), BudgetUsedUp("used up"))]
    cancelled: list[None] = []
    cancel = partial(cancelled.append, None) if is_tolerated else None
    scheduler = Scheduler[str]("item", 2, cancel_rest=cancel)
    _, error = scheduler.run([*map(failing, errors)])
    assert (error, cancelled) == (errors[is_tolerated], [])


def test_nothing_to_do_is_not_an_error() -> None:
    assert Scheduler[str]("item", 2).run([]) == ([], None)


@pytest.mark.parametrize("concurrency", [1, 2, 3])
def test_never_more_at_a_time_than_its_concurrency(concurrency: int) -> None:
    together = threading.Barrier(concurrency)  # broken, after 10 s, if fewer ran at a time
    lock, running, most = threading.Lock(), 0, 0

    def work() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(10)
        with lock:
            running -= 1
        return ""

    Scheduler[str]("item", concurrency).run([work] * 6)
    assert most == concurrency


def test_work_starts_after_what_it_needs() -> None:
    started: list[str] = []
    works = [partial(giving, name, started) for name in ("roof", "walls", "ground")]
    done, error = Scheduler[str]("item", 3, needs=[[1], [2], []]).run(works)
    assert started == ["ground", "walls", "roof"]
    assert (done, error) == (["roof", "walls", "ground"], None)


def test_nothing_starts_after_an_exception() -> None:
    started: list[str] = []
    problem = ValueError("broken")
    works: list[Work] = [partial(giving, "one", started), failing(problem), partial(giving, "never", started)]
    assert Scheduler[str]("item", 1).run(works) == (["one"], problem)
    assert started == ["one"]


def test_nothing_starts_after_the_last_result() -> None:
    started: list[str] = []
    works = [partial(giving, name, started) for name in ("one", "DONE", "never")]
    done, error = Scheduler[str]("role", 1, is_last=lambda result: result == "DONE").run(works)
    assert (done, error, started) == (["one", "DONE"], None, ["one", "DONE"])


def test_waiting_for_a_person_does_not_hold_up_others() -> None:
    started: list[str] = []
    waiting = RunHalted(ending_for(ReviewWaiting("is it good?")))
    works: list[Work] = [failing(waiting), partial(giving, "other", started), partial(giving, "needs it", started)]
    done, error = Scheduler[str]("item", 1, needs=[[], [], [0]]).run(works)
    assert (done, error, started) == (["other"], waiting, ["other"])


def test_failure_counts_before_waiting_for_a_person() -> None:
    waiting, broken = RunHalted(ending_for(ReviewWaiting("is it good?"))), ValueError("broken")
    _, error = Scheduler[str]("item", 1).run([failing(waiting), failing(broken)])
    assert error is broken
