"""Which goal starts next, for any goals, bounds and ends."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.extensions.machines.batches.schedule import (
    FAILURES,
    TOTAL_BUDGET,
    Bounds,
    Entry,
    Refusal,
    Schedule,
)

ENTRIES = st.lists(
    st.builds(
        Entry,
        goal_id=st.uuids().map(str),
        priority=st.integers(-2, 2),
        share=st.sampled_from(["", "", "a", "b"]),
        limits=st.integers(1, 9).map(lambda limit: {"turns": limit}),
        used=st.integers(0, 9).map(lambda used: {"turns": used}),
    ),
    max_size=12,
    unique_by=lambda entry: entry.goal_id,
)


@given(ENTRIES, st.integers(1, 4), st.integers(1, 40) | st.none(), st.randoms(use_true_random=False))
def test_bounds_hold_and_every_goal_has_an_end(
    entries: list[Entry], concurrency: int, total: int | None, random: Random
) -> None:
    """Whatever a goal uses within its limit, and in whatever order goals end."""
    before = sum(entry.used["turns"] for entry in entries)
    totals = {} if total is None else {"turns": float(total + before)}
    schedule = Schedule(entries, Bounds(concurrency, totals), {"turns": before})
    by_id = {entry.goal_id: entry for entry in entries}
    running: list[Entry] = []
    started, used, dropped = list[str](), before, dict[str, Refusal]()
    while True:
        while (goal_id := schedule.start_next()) is not None:
            started.append(goal_id)
            running.append(by_id[goal_id])
            shares = [entry.share for entry in running if entry.share]
            assert len(shares) == len(set(shares))
        assert len(running) == schedule.running <= concurrency
        dropped |= schedule.take_dropped()
        if not running:
            break
        entry = running.pop(random.randrange(len(running)))
        most = max(entry.limits["turns"], entry.used["turns"])
        now = random.randint(int(entry.used["turns"]), int(most))
        used += now - int(entry.used["turns"])
        schedule.end(entry.goal_id, {"turns": now}, failed=False)
    assert sorted([*started, *dropped]) == sorted(by_id)
    assert schedule.waiting == 0
    assert total is None or used <= total + before
    assert {why.outcome for why in dropped.values()} <= {TOTAL_BUDGET}


@given(st.lists(st.integers(-3, 3), max_size=20))
def test_higher_priority_starts_first_then_file_order(priorities: list[int]) -> None:
    entries = [Entry(str(number), priority) for number, priority in enumerate(priorities)]
    schedule = Schedule(entries, Bounds(concurrency=100), {})
    started = [schedule.start_next() for _ in entries]
    assert started == [entry.goal_id for entry in sorted(entries, key=lambda each: -each.priority)]


def test_goal_waits_for_what_another_may_leave() -> None:
    """It fits once the first has ended with less than its limit; a smaller one does not overtake it."""
    entries = [Entry(name, limits={"turns": limit}) for name, limit in (("a", 6), ("b", 6), ("c", 1))]
    schedule = Schedule(entries, Bounds(3, {"turns": 10}), {})
    assert [schedule.start_next(), schedule.start_next()] == ["a", None]
    schedule.end("a", {"turns": 2}, failed=False)
    assert [schedule.start_next(), schedule.start_next()] == ["b", "c"]


def test_goal_that_no_longer_fits_is_dropped_with_the_figures() -> None:
    schedule = Schedule([Entry("a", limits={"turns": 6})], Bounds(1, {"turns": 10}), {"turns": 5})
    assert schedule.start_next() is None
    reason = "5 of 10 turns are left for the batch; the goal may use 6"
    assert schedule.take_dropped() == {"a": Refusal(TOTAL_BUDGET, reason)}


def test_total_of_money_is_used_to_the_cent() -> None:
    goals = [Entry(name, limits={"cost": 0.1}) for name in "abcd"]
    schedule = Schedule(goals, Bounds(4, {"cost": 0.3}), {})
    assert [schedule.start_next() for _ in range(4)] == ["a", "b", "c", None]
    for name in "abc":
        schedule.end(name, {"cost": 0.1}, failed=False)
    assert schedule.start_next() is None
    reason = "$0.00 of $0.30 are left for the batch; the goal may use $0.10"
    assert schedule.take_dropped() == {"d": Refusal(TOTAL_BUDGET, reason)}


def test_no_goal_starts_after_the_last_accepted_failure() -> None:
    schedule = Schedule([Entry("a"), Entry("b"), Entry("c")], Bounds(2, max_failures=1), {})
    assert [schedule.start_next(), schedule.start_next()] == ["a", "b"]
    schedule.end("a", {}, failed=True)
    assert schedule.start_next() is None
    assert {name: why.outcome for name, why in schedule.take_dropped().items()} == {"c": FAILURES}
