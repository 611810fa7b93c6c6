"""Calls in copies of the workspace, and what a run asks of workers; those at work are tried with the extension."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.errors import BudgetUsedUp, DefinitionError
from codex_multi_role.run_folder.placed_runs import record_spent, spent_elsewhere
from codex_multi_role.steps.budget import Budget, Limits
from codex_multi_role.steps.work_clock import WorkClock
from tests.support.placed_calls import calling
from tests.support.teams import Record, read

pytestmark = pytest.mark.usefixtures("scripted_codex")


def test_called_flows_work_in_copies_without_workers(tmp_path: Path) -> None:
    team = calling(tmp_path, ["a", "b"])
    report = team.run(flow="own")
    assert report.outcome == "success", report
    assert sorted(path.name for path in team.workspace.iterdir()) == ["a.txt", "b.txt"]
    assert [event["paths"] for event in team.of_type("copy_merged")] == [["a.txt"], ["b.txt"]]
    turns = [read(path)["unit"] for path in report.folder.glob("writer*/turn_*/turn.json")]
    assert sorted(turns) == ["each.1.0/write.1", "each.1.1/write.1"]


NESTED: list[Record] = [{"id": "write", "ask": "writer", "isolate": "worktree"}]


@pytest.mark.parametrize(
    ("inner", "keys", "problem"),
    [
        (None, {"isolate": None}, "place: the flow inner may change the workspace; on another machine"),
        (NESTED, {}, "isolate: the flow inner has steps in copies of their own"),
        (None, {"for_each": None, "concurrency": None}, "place belongs to for_each"),
        (None, {"call": None, "ask": "writer", "with": {}}, "place belongs to call: only a called flow has a state"),
    ],
)
def test_place_that_would_lose_changes_is_refused(
    tmp_path: Path, inner: list[Record] | None, keys: Record, problem: str
) -> None:
    team = calling(tmp_path, ["a"], inner=inner, **keys)
    with pytest.raises(DefinitionError, match=problem):
        team.run(flow="own")
    assert not team.runs.exists()


PLANNER = RoleSpec(name="planner", prompt_text="Plan.")


def budget(turns: int, tokens: int | None = None) -> Budget:
    return Budget(Limits(turns, tokens), [], WorkClock(0.0, lambda: 0.0))


def test_peers_get_equal_shares_of_what_is_left() -> None:
    shared = budget(turns=10, tokens=1000)
    shared.reserve_turn(PLANNER)
    assert [shared.reserve_share(run_id, 3) for run_id in "abc"] == [Limits(3, 333), Limits(3, 333), Limits(3, 334)]
    with pytest.raises(BudgetUsedUp, match="10 of 10 turns"):
        shared.reserve_turn(PLANNER)


def test_ended_run_leaves_what_it_did_not_use() -> None:
    shared = budget(turns=6)
    assert [shared.reserve_share(run_id, 2).turns for run_id in "ab"] == [3, 3]
    with pytest.raises(BudgetUsedUp):
        shared.reserve_share("c", 2)
    assert shared.is_shared
    shared.count_elsewhere("a", 1, 0, is_reserved=False)
    assert shared.reserve_share("c", 2).turns == 2


def test_run_that_needs_more_gets_it_from_the_rest() -> None:
    """Its new limit includes what it has spent, and its old reservation is not counted twice."""
    shared = budget(turns=6)
    assert [shared.reserve_share(run_id, 2).turns for run_id in "ab"] == [3, 3]
    shared.count_elsewhere("b", 1, 0, is_reserved=False)
    shared.count_elsewhere("a", 3, 0, is_reserved=False)
    assert shared.reserve_share("a", 2).turns == 4
    shared.count_elsewhere("a", 4, 0, is_reserved=False)
    assert not shared.is_shared


def test_spent_elsewhere_is_counted_once(tmp_path: Path) -> None:
    for turns in (1, 2, 2):
        record_spent(tmp_path, "first.each.1.0", {"turns": turns, "input_tokens": 5, "seconds": 9})
    spent = {"turns": 2, "repairs": 0, "input_tokens": 5, "output_tokens": 0, "cost": None, "unpriced_turns": 2}
    assert spent_elsewhere(tmp_path) == {"first.each.1.0": spent}
