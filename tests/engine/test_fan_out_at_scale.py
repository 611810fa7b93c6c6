"""32 items, 8 at a time, on the real binary: one process is killed and one answer never comes, and the rest is done."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from codex_multi_role import run
from tests.support.teams import Record, TeamFolder, say, with_flow

ITEMS = [f"item-{number:02d}" for number in range(32)]
AT_ONCE = 8
KILLED, HUNG = ITEMS[11], ITEMS[17]
ANSWER: Record = {
    "choose": [
        {"when": f"'{HUNG}' in prompt", "fault": {"stall_seconds": 300}},
        {"json": {"summary": "did {{ (prompt | string).split('DO ')[1].split('!')[0] }}"}},
    ]
}
SOLVE: Record = {
    "id": "solve",
    "ask": "solver",
    "prompt": "DO {{ item }}!",
    "for_each": ITEMS,
    "concurrency": AT_ONCE,
    "limits": {"idle_seconds": 60, "turn_seconds": 3},
    "retry": {"attempts": 2, "backoff_seconds": 0},
    "on_error": "skip",
}
TELL: Record = {"ask": "reader", "prompt": "RESULTS {{ steps.solve.results | tojson }}"}


@dataclass
class Killer:
    """Takes a run's events; kills the process that is asked for `KILLED`, once, as soon as its turn begins."""

    events: list[Record] = field(default_factory=list)
    pids: dict[str, int] = field(default_factory=dict)
    killed: str = ""

    def __call__(self, event: Record) -> None:
        self.events.append(event)
        if event["type"] == "role_started":
            self.pids[event["role"]] = event["pid"]
        if event["type"] == "turn_started" and not self.killed and KILLED in self._prompt(event):
            self.killed = event["role"]
            os.kill(self.pids[self.killed], signal.SIGKILL)

    def _prompt(self, event: Record) -> str:
        folder = Path(self.events[0]["folder"])
        return (folder / str(event["role"]) / f"turn_{event['turn']:03d}" / "prompt.txt").read_text()

    def of(self, kind: str) -> list[Record]:
        return [event for event in self.events if event["type"] == kind]


@pytest.mark.long
def test_crash_and_hang_among_32_items_keep_results_in_order(tmp_path: Path) -> None:
    """All other items finish, and the results stay in item order."""
    team = TeamFolder(tmp_path, {"solver": {}, "reader": {}}, {"solver": [ANSWER] * len(ITEMS), "reader": [say()]})
    killer = Killer()
    report = run(with_flow(team, {"steps": [SOLVE, TELL]}).options(flow="own"), killer)
    assert (report.outcome, report.exit_code) == ("success", 0), report

    solvers = {"solver", *(f"solver.{number}" for number in range(2, AT_ONCE + 1))}
    started = [event for event in killer.of("role_started") if event["role"] != "reader"]
    assert {event["role"] for event in started} == solvers
    restarted = [event["role"] for event in killer.of("role_restarted")]
    assert killer.killed in restarted
    assert len(started) == len({event["pid"] for event in started}) == AT_ONCE + len(restarted)

    prompt = (report.folder / "reader/turn_001/prompt.txt").read_text()
    results = json.loads(prompt.split("RESULTS ")[1].splitlines()[0])
    assert [result["index"] for result in results] == list(range(len(ITEMS)))
    failed = results.pop(ITEMS.index(HUNG))
    assert (failed["status"], "longer than 3 s" in failed["error"]) == ("failed", True)
    assert [result["summary"] for result in results] == [f"did {item}" for item in ITEMS if item != HUNG]

    statuses = [(event["role"], event["status"]) for event in killer.of("turn_ended")]
    assert statuses.count((killer.killed, "crashed")) == 1
    assert [status for _, status in statuses].count("timed_out") >= SOLVE["retry"]["attempts"]
    assert any("longer than 3 s" in event["reason"] for event in killer.of("role_skipped"))
