"""A disturbed line to Codex: messages are lost, late, doubled or strange, or Codex dies.

A point is a profile of `tests.support.message_fates` and the seed of everything that happens in the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_multi_role.codex.locator import find_codex
from tests.endurance.deadlines import lower_deadlines
from tests.endurance.faults.fault import Fault
from tests.endurance.findings import HONEST_OUTCOMES, INTERRUPTED_TURN_ENDS, TURN_ENDS
from tests.endurance.points import Point
from tests.endurance.scenarios import EVERY_MESSAGE
from tests.support.codex_proxy import write_launcher
from tests.support.message_fates import DISTURBING, PROFILES, Case

SEEDS = 10_000


class Line(Fault):
    name = "line"
    scenarios = (EVERY_MESSAGE,)
    honest_outcomes = HONEST_OUTCOMES
    turn_ends = TURN_ENDS | INTERRUPTED_TURN_ENDS
    # An answer that is lost is asked for once more: a repair turn, which the journal has and must have.
    not_compared = ("journal",)
    is_paid_once = False
    process_seconds = 600.0  # a run whose Codex breaks again and again, and is replaced, until its retries are used up
    default_points = 80

    def prepare(self) -> None:
        lower_deadlines()

    def counts(self, _: Mapping[str, Sequence[str]]) -> dict[str, int]:
        return dict.fromkeys(DISTURBING, SEEDS)

    def limits(self, point: Point) -> Mapping[str, float]:
        profile = PROFILES[point.kind]
        return {"idle_seconds": profile.idle_seconds, "turn_seconds": profile.turn_seconds}

    def codex(self, folder: Path, point: Point) -> Path:
        return write_launcher(folder / "codex", Case(*point), _logs(folder, point), find_codex(None, {}))

    def strike(self, folder: Path, point: Point) -> str:
        messages = sum(len(path.read_text().splitlines()) for path in _logs(folder, point).glob("*.jsonl"))
        return f"{messages} disturbed messages" if messages else ""

    def must_succeed(self, point: Point) -> bool:
        return PROFILES[point.kind].bearable


def _logs(folder: Path, point: Point) -> Path:
    return folder / f"proxy-{point.kind}-{point.number}"
