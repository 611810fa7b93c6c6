"""What the check ``testgen_state`` leaves in the workspace, and which options it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.test_generation.results_file import _status
from codex_multi_role.extensions.test_generation.testgen_state import advance_state
from tests.support.checks import MakeContext
from tests.support.teams import Record

ONE, TWO = ({"path": f"tests/test_{name}.py", "content": f"{name} = 1\n"} for name in ("one", "two"))
GREEN = {"reason": "", "crashed": False, "passed": 2, "failed": 0, "errors": 0, "failures": [], "uncovered": []}
MERGED = {"reason": "", "candidates": [], "merged": {}, "dropped": []}
LIMITS = {"max_iterations": 5, "target_coverage": 100.0}


def judged(
    make_context: MakeContext, files: list[Record], coverage: float, state: Record | None = None
) -> tuple[Record, set[str]]:
    """What is known of the attempt whose files are in the workspace, and which files are there then."""
    measured = {**GREEN, "coverage": coverage, "output_tail": ""}
    tests = {**MERGED, "files": files}
    there = {file["path"]: file["content"] for file in files}
    executed = advance_state(make_context(there, state=state or {}, limits=LIMITS, tests=tests, executed=measured))
    context = make_context({}, state=executed["state"], limits=LIMITS, judged={})
    result: dict[str, Any] = advance_state(context)
    return result, {path.name for path in context.workspace.root.rglob("*.py")}


def test_kept_attempt_replaces_all_files_of_the_best(make_context: MakeContext) -> None:
    state = judged(make_context, [ONE, TWO], 50.0)[0]["state"]
    result, there = judged(make_context, [ONE], 60.0, state)
    assert (result["status"], there) == ("kept", {"test_one.py"})


def test_rollback_restores_exactly_the_files_of_the_best(make_context: MakeContext) -> None:
    state = judged(make_context, [ONE], 50.0)[0]["state"]
    result, there = judged(make_context, [{**ONE, "content": "changed = 1\n"}, TWO], 40.0, state)
    assert (result["status"], result["state"]["best"], there) == ("rolled back", state["best"], {"test_one.py"})
    assert (make_context({}).workspace.root / ONE["path"]).read_text() == ONE["content"]


def test_rolled_back_attempt_is_kept_as_an_artifact(make_context: MakeContext) -> None:
    state = judged(make_context, [ONE], 50.0)[0]["state"]
    judged(make_context, [{**ONE, "content": "changed = 1\n"}], 40.0, state)
    assert (make_context({}).folder / "attempt.py.txt").read_text() == "changed = 1\n"


@pytest.mark.parametrize("events", [{}, {"planned": [], "judged": {}}])
def test_exactly_one_event_is_reported(make_context: MakeContext, events: Record) -> None:
    with pytest.raises(UsageError, match="needs one of planned, verdicts, compared, executed and judged"):
        advance_state(make_context({}, state={}, limits=LIMITS, **events))


WHOLE = {"crashed": False, "failures": [], "pruned": [], "coverage": 100.0}


@pytest.mark.parametrize(
    ("outcome", "left", "status"),
    [
        ("success", {"coverage": None}, "incomplete"),
        ("success", {"untested": ["P1"]}, "incomplete"),
        ("timeout", {"untested": ["P1"]}, "incomplete"),
        ("timeout", {"untested": ["P1"], "coverage": 90.0}, "timeout"),
        ("timeout", {}, "timeout"),
    ],
)
def test_item_that_no_test_asserts_is_incomplete_if_only_that_is_left(outcome: str, left: Record, status: str) -> None:
    rounds = {"outcome": outcome, "vars": {"state": {"best": {}}}}
    found, reason = _status({}, rounds, {**WHOLE, **left}, 100.0)
    assert (found, "without a test: P1" in reason) == (status, "untested" in left)


SCORED = {"mutants": 4, "survivors": []}


@pytest.mark.parametrize(
    ("first", "second", "winner", "why"),
    [
        ({"crashed": True, "coverage": 100.0}, {"coverage": 10.0}, "b", "execute.crashed is false, the next best has"),
        ({"coverage": 60.0}, {"coverage": 70.0, "failed": 2}, "b", "reached is 70.0, the next best has 60.0"),
        ({"failed": 2}, {"failed": 1}, "b", "execute.failed is 1, the next best has 2"),
        (
            {"score_percent": 50.0},
            {"score_percent": 75.0},
            "b",
            "mutants.score_percent is 75.0, the next best has 50.0",
        ),
        ({}, {}, "a", "equal in every key"),
    ],
)
def test_better_candidate_wins(make_context: MakeContext, first: Record, second: Record, winner: str, why: str) -> None:
    measured = {**GREEN, "coverage": 100.0, "output_tail": ""}
    compared = [
        {
            "vars": {"developer": name},
            "steps": {
                "write": ONE,
                "execute": {**measured, **given},
                "mutants": {"score_percent": 0.0, **SCORED, **given},
            },
        }
        for name, given in {"a": first, "b": second}.items()
    ]
    result: dict[str, Any] = advance_state(make_context({}, state={}, limits=LIMITS, compared=compared))
    chosen = result["state"]["attempt"]["chosen"]
    assert (chosen["winner"], result["winner"]) == (winner, "ab".index(winner))
    assert why in chosen["reason"]
