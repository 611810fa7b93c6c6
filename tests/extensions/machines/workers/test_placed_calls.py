"""What a run asks of workers for the items of a step, and what it makes of their answers."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.machines.workers.placed_calls import (
    MAX_ID,
    PlacedRun,
    Placer,
    enclosing_units,
    placed_id,
)
from codex_multi_role.run_folder import RunEvent
from codex_multi_role.run_folder.events import PlacedRunEnded
from codex_multi_role.run_folder.folder import RUN_ID
from codex_multi_role.steps import StepOutcome
from codex_multi_role.steps.budget import Budget, Limits
from codex_multi_role.steps.placing import placed_outcome
from codex_multi_role.steps.work_clock import WorkClock
from tests.support.teams import Record


def test_placed_id_is_a_short_unique_run_id() -> None:
    assert placed_id("first", "each.1.0", 0) == "first.each.1.0"
    units = ["each.1.0", "each.1.0/in.1.0", "each.1.0_in.1.0", "x" * 200, "x" * 201, "each.1.0/in.1.0" * 9]
    ids = {placed_id("first", unit, place) for unit in units for place in (0, 7)}
    assert len(ids) == 2 * len(units)
    assert all(RUN_ID.fullmatch(each) and len(each) <= MAX_ID for each in ids)


def test_enclosing_units_begin_with_the_outermost() -> None:
    assert enclosing_units("a.1.0/b.2.1") == ["a.1.0", "a.1.0/b.2.1"]


class OverRun:
    """The runs of workers that have executed a called flow and spent ``totals``."""

    def __init__(self, totals: Record) -> None:
        self._totals = totals

    def find(self, run_id: str) -> PlacedRun:
        return PlacedRun(ending=ExitCode.GOAL_REACHED, totals=self._totals)

    def outcome(self, run_id: str, copy: object) -> Record:
        return StepOutcome({"run": run_id}).as_json()

    waiting = staticmethod(nullcontext)


def test_what_an_item_spent_on_workers_is_an_event() -> None:
    totals: dict[str, int | float | None] = {"turns": 2, "input_tokens": 10, "output_tokens": 5, "cost": 1.5}
    told: list[RunEvent] = []
    clock = WorkClock(0.0, lambda: 0.0)
    called: Any = OverRun(totals)
    services = SimpleNamespace(
        placer=Placer(called), folder=SimpleNamespace(run_id="first"), events=SimpleNamespace(publish=told.append),
        budget=Budget(Limits(), [], clock), clock=clock,
    )  # fmt: skip
    run: Any = SimpleNamespace(services=services, progress=SimpleNamespace(stopping=None), within="")
    step = SimpleNamespace(isolate=None, retry=None)
    unit: Any = SimpleNamespace(key="each.1.0", step=step, record=lambda _, work: work(0), set_state=lambda *_: None)
    assert placed_outcome(run, unit, {}) == StepOutcome({"run": "first.each.1.0"})
    assert told == [PlacedRunEnded("first.each.1.0", "each.1.0", totals)]
