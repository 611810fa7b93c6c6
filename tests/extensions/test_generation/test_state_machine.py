"""What holds on every way through the state machine of test generation, and each of its decisions by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.extensions.test_generation import state_machine as machine
from codex_multi_role.extensions.test_generation.state_machine import START, MeasuredTests, Next, RoundLimits, State
from codex_multi_role.extensions.test_generation.test_files import TestFile

PLAN = [{"id": name, "expected": name.lower()} for name in ("P1", "P2")]
LIMITS = RoundLimits(max_iterations=5, target_coverage=100.0)
SCORED = {"mutants": 4, "score_percent": 75.0, "survivors": [{"id": "m1"}]}
NOTHING: dict[str, Any] = {}
AWAY = {"test": "test_p1", "assertion": "assert f() == 1", "id": "P1", "expected": "1"}


def attempt(**figures: Any) -> MeasuredTests:
    """A green attempt with full coverage, except for ``figures``."""
    lists = ("failures", "uncovered", "untested", "unasserting", "away", "survivors")
    empty: dict[str, Any] = {name: [] for name in lists}
    files = [TestFile(path="tests/test_one.py", content="one"), TestFile(path="tests/test_two.py", content="two")]
    usual: dict[str, Any] = {"files": files, "code": "", "reason": "", "output_tail": "", "score": None, "chosen": {}}
    counts: dict[str, Any] = {"crashed": False, "passed": 2, "failed": 0, "coverage": 100.0}
    return MeasuredTests(**{**empty, **usual, **counts, **figures})


def state(**fields: Any) -> State:
    return START.model_copy(update={"plan": PLAN, **fields})


def judged(
    now: MeasuredTests, before: State | None = None, limits: RoundLimits = LIMITS, **event: Any
) -> tuple[State, Next]:
    begun, _ = machine.executed(before or state(), now, limits)
    return machine.judged(begun, **{"mutation": NOTHING, "limits": limits, **event})


def after(best: MeasuredTests, **fields: Any) -> State:
    """The state after one round, whose attempt is the best."""
    return judged(best)[0].model_copy(update=fields)


@pytest.mark.parametrize(
    ("figures", "limits", "following"),
    [
        ({"coverage": 50.0}, {"mutation": True}, "mutants"),
        ({"coverage": 50.0}, {"mutation": False}, "judge"),
        ({"coverage": 50.0}, {"mutation": True, "max_iterations": 1}, "judge"),
        ({"coverage": 50.0, "crashed": True}, {"mutation": True}, "judge"),
        ({"coverage": 50.0, "failed": 1}, {"mutation": True}, "judge"),
        ({"coverage": 50.0, "untested": ["P2"]}, {"mutation": True}, "mutants"),
        ({}, {"mutation": True}, "judge"),
        ({}, {"mutation": True, "target_mutation_score": 50.0}, "mutants"),
        ({}, {"mutation": True, "target_mutation_score": 50.0, "max_iterations": 1}, "mutants"),
    ],
)
def test_mutants_are_judged_if_the_score_is_of_use(
    figures: dict[str, Any], limits: dict[str, Any], following: str
) -> None:
    bounds = LIMITS.model_copy(update=limits)
    assert machine.executed(state(), attempt(**figures), bounds)[1] == following
    assert machine.executed(state(), attempt(**figures), bounds, is_scored=True)[1] == "judge"


@pytest.mark.parametrize(
    ("figures", "mode", "following"),
    [
        ({}, "append", "success"),
        ({"coverage": 50.0}, "append", "plan"),
        ({"coverage": None}, "append", "plan"),
        ({"failed": 1}, "fix", "develop"),
        ({"untested": ["P2"]}, "fix", "develop"),
        ({"unasserting": ["test_p1"]}, "fix", "develop"),
        ({"away": [AWAY]}, "fix", "develop"),
        ({"crashed": True, "coverage": None}, "syntax", "develop"),
        ({"score": 40.0}, "append", "plan"),
        ({"score": 50.0}, "append", "success"),
    ],
)
def test_figures_decide_the_mode_and_what_follows(figures: dict[str, Any], mode: str, following: str) -> None:
    limits = LIMITS.model_copy(update={"target_mutation_score": 50.0})
    found, next_ = judged(attempt(**figures), limits=limits)
    assert (found.mode, next_) == (mode, following)
    appended = ("one", [TestFile(path="tests/test_two.py", content="two")])
    assert (found.before, found.others) == (appended if mode == "append" else ("", []))
    last = judged(attempt(**figures), limits=limits.model_copy(update={"max_iterations": 1}))[1]
    assert last == (following if following == "success" else "timeout")


@pytest.mark.parametrize(
    ("best", "now", "reason"),
    [
        ({}, {"coverage": 100.0, "away": [AWAY]}, "changes what failing tests expect: test_p1 (assert f() == 1)"),
        ({"coverage": 50.0}, {"crashed": True, "reason": "exit 2", "coverage": None}, "crashed: exit 2"),
        ({"crashed": True}, {"crashed": True}, ""),
        ({"crashed": True, "coverage": None}, {"coverage": 10.0}, ""),
        ({"coverage": 60.0}, {"coverage": 50.0}, "reaches 50.0 %, the best so far 60.0 %"),
        ({"coverage": 60.0}, {"coverage": None}, "reaches None %, the best so far 60.0 %"),
        ({"coverage": 60.0, "passed": 3}, {"coverage": 60.0}, "2 tests pass, of the best so far 3"),
        ({"passed": 3}, {}, ""),
        ({"coverage": 90.0, "score": 80.0}, {"coverage": 90.0, "score": 75.0}, "kills 75.0 % of the mutants, the"),
        ({"coverage": 90.0, "score": 80.0}, {"coverage": 95.0, "score": 75.0}, ""),
        ({"coverage": 90.0, "score": 80.0}, {"coverage": 90.0, "score": None}, ""),
        ({"coverage": 90.0, "score": 80.0}, {"coverage": 90.0, "score": 80.0}, ""),
    ],
)
def test_worse_attempt_is_rolled_back(best: dict[str, Any], now: dict[str, Any], reason: str) -> None:
    before, latest = attempt(**best), attempt(**now)
    found, _ = judged(latest, after(before))
    verdict = found.rounds[-1]
    assert verdict.reason.startswith(reason)
    assert (verdict.status, bool(verdict.reason)) == ("rolled back" if reason else "kept", bool(reason))
    assert found.best == (before if reason else found.attempt)


@pytest.mark.parametrize(("mutants", "score", "survivors"), [(4, 75.0, [{"id": "m1"}]), (0, None, [])])
def test_score_is_that_of_judged_mutants(mutants: int, score: float | None, survivors: list[dict[str, str]]) -> None:
    best = judged(attempt(), mutation={**SCORED, "mutants": mutants})[0].best
    assert best is not None
    assert (best.score, best.survivors) == (score, survivors)


# Mostly figures of tests that run and pass: only these come to be compared.
FIGURES = st.fixed_dictionaries(
    {
        "crashed": st.sampled_from([False, False, False, True]),
        "passed": st.integers(1, 3),
        "failed": st.sampled_from([0, 0, 0, 1]),
        "coverage": st.sampled_from([None, 40.0, 60.0, 80.0, 100.0]),
        "away": st.sampled_from([[], [], [AWAY]]),
        "untested": st.sampled_from([[], [], ["P2"]]),
        "unasserting": st.sampled_from([[], [], ["test_p1"]]),
    }
)
SCORES = st.sampled_from([NOTHING, *({**SCORED, "score_percent": percent} for percent in (20.0, 50.0, 100.0))])
ROUNDS = st.lists(st.tuples(FIGURES, SCORES, st.booleans()), min_size=6, max_size=6)
ALL_LIMITS = st.builds(
    RoundLimits,
    max_iterations=st.integers(1, 6),
    target_coverage=st.sampled_from([50.0, 100.0]),
    target_mutation_score=st.sampled_from([0.0, 60.0]),
    mutation=st.booleans(),
    merge=st.booleans(),
)


def walk(
    rounds: Sequence[tuple[dict[str, Any], dict[str, Any], bool]], limits: RoundLimits
) -> list[tuple[State, Next]]:
    """The states after each judgement, by events that follow from ``next`` as the flow has it."""
    now, following = machine.planned(START, PLAN)
    assert following == "items"
    now, following = machine.doubted(now, {}, {})
    found = []
    for figures, mutation, is_duel in rounds:
        assert following in ("plan", "develop")
        own = attempt(**figures)
        if is_duel:
            now, following = machine.compared(now, own, not own.crashed, limits)
        else:
            now, following = machine.executed(now, own, limits)
        if following == "merge":
            now, following = machine.executed(now, own, limits, is_scored=True)
        assert following in ("take", "judge", "mutants")
        now, following = machine.judged(now, mutation if following == "mutants" else NOTHING, limits)
        found.append((now, following))
        if following in ("success", "timeout"):
            return found
    raise AssertionError("no end")


@given(ROUNDS, ALL_LIMITS)
def test_every_way_ends_within_the_iterations(rounds: list[Any], limits: RoundLimits) -> None:
    walked = walk(rounds, limits)
    assert [len(now.rounds) for now, _ in walked] == list(range(1, len(walked) + 1))
    last, end = walked[-1]
    assert len(last.rounds) <= limits.max_iterations
    assert end == "success" or len(last.rounds) == limits.max_iterations
    assert State.model_validate(last.model_dump()) == last


@given(ROUNDS, ALL_LIMITS)
def test_success_has_everything_and_nothing_else_has(rounds: list[Any], limits: RoundLimits) -> None:
    for now, following in walk(rounds, limits):
        latest = now.attempt
        assert latest is not None
        is_reached = latest.reached >= limits.target_coverage
        is_noticed = latest.score is None or latest.score >= limits.target_mutation_score
        is_complete = is_reached and is_noticed and not latest.crashed and not latest.to_fix
        assert (following == "success") == is_complete
        assert (following == "develop") <= (latest.crashed or latest.to_fix > 0)


@given(ROUNDS, ALL_LIMITS)
def test_best_never_gets_worse(rounds: list[Any], limits: RoundLimits) -> None:
    """Its coverage falls only to an attempt that reaches the target and has nothing to fix."""
    states = [now for now, _ in walk(rounds, limits)]
    for before, now in pairwise(states):
        assert before.best is not None
        assert now.best is not None
        if now.best is before.best:
            continue
        assert not now.best.away
        assert now.best is now.attempt
        assert now.best.crashed <= before.best.crashed
        if None not in (now.best.score, before.best.score) and now.best.reached <= before.best.reached:
            assert (now.best.score or 0.0) >= (before.best.score or 0.0)
        is_enough = not now.best.to_fix and now.best.reached >= limits.target_coverage
        if not now.best.crashed and not before.best.crashed and not is_enough:
            assert now.best.reached >= before.best.reached
            assert now.best.passed >= before.best.passed


@given(ROUNDS, ALL_LIMITS)
def test_verdict_says_what_happened_to_the_attempt(rounds: list[Any], limits: RoundLimits) -> None:
    before = START
    for now, _ in walk(rounds, limits):
        verdict = now.rounds[-1]
        assert now.best == (now.attempt if verdict.status == "kept" else before.best)
        assert (verdict.mode, bool(verdict.reason)) == (before.mode, verdict.status == "rolled back")
        before = now
