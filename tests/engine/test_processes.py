"""``--max-processes`` on the real binary: further turns wait, idle processes make room, and threads live on.

Costs: two of its runs start real Codex processes, and all of them work with threads that wait.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from codex_multi_role import RunReport, run
from tests.support.processes import interrupted
from tests.support.teams import ECHO, Record, TeamFolder, fan, read, say, solver, with_flow

pytestmark = pytest.mark.real

LOOK_SECONDS = 0.05


def app_servers() -> int:
    """How many Codex processes of this one are alive."""
    found = 0
    for child in psutil.Process().children():
        try:
            found += child.status() != psutil.STATUS_ZOMBIE and "app-server" in child.cmdline()
        except psutil.NoSuchProcess:
            continue
    return found


@dataclass
class Counter:
    """Looks all the time while a run works."""

    most: int = 0
    events: list[Record] = field(default_factory=list)

    def run(self, team: TeamFolder, **changes: object) -> RunReport:
        over = threading.Event()
        looking = threading.Thread(target=self._look, args=(over,))
        looking.start()
        try:
            return run(team.options(flow="own", **changes), self.events.append)
        finally:
            over.set()
            looking.join()

    def _look(self, over: threading.Event) -> None:
        while not over.wait(LOOK_SECONDS):
            self.most = max(self.most, app_servers())


def turns(report: RunReport) -> dict[str, list[Record]]:
    """By instance, the ``turn.json`` files of a run."""
    found: dict[str, list[Record]] = {}
    for path in sorted(report.folder.glob("*/turn_*/turn.json")):
        found.setdefault(path.parts[-3], []).append(read(path))
    return found


def test_six_parallel_items_share_two_processes(tmp_path: Path) -> None:
    """Their results are in item order, and every item has its own thread."""
    letters = list("abcdef")
    in_order = f"steps.solve.results | map(attribute='summary') | list == {[f'did {each}' for each in letters]}"
    end = [{"when": in_order, "end": "in_order"}, {"end": "no"}]
    counter = Counter()
    report = counter.run(solver(tmp_path, [fan(letters, concurrency=6, next=end)]), max_processes=2)
    assert report.outcome == "in_order", report
    assert counter.most == 2
    assert read(report.folder / "run.json")["options"]["max_processes"] == 2
    assert len({turn["thread_id"] for each in turns(report).values() for turn in each}) == len(letters)


def test_two_roles_sharing_one_process_remember_conversations(tmp_path: Path) -> None:
    again = [{"when": "steps.one.visits < 2", "to": "one"}]
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, {name: [say("x" * 4000)] * 2 for name in ("one", "two")})
    with_flow(team, {"steps": [{"ask": "one"}, {"ask": "two", "next": again}]})
    counter = Counter()
    report = counter.run(team, max_processes=1)
    assert report.outcome == "success", report
    assert counter.most == 1
    by_role = turns(report)
    assert [len({turn["thread_id"] for turn in by_role[role]}) for role in ("one", "two")] == [1, 1]
    started = [event["resumed"] for event in counter.events if event["type"] == "role_started"]
    assert started.count(True) == 2
    assert not [event for event in counter.events if event["type"] == "role_restarted"]
    for role in ("one", "two"):  # the model is sent all that was said before
        first, second = (turn["tokens"]["input"] for turn in by_role[role])
        assert second > first + 1000


@pytest.mark.usefixtures("scripted_codex")
def test_calls_within_a_fan_out_do_not_lock_each_other_out(tmp_path: Path) -> None:
    team = solver(
        tmp_path, [{"id": "outer", "call": "inner", "for_each": {"items": [1, 2], "concurrency": 2}}], [say()] * 20
    )
    parts = {
        "id": "parts",
        "ask": "solver",
        "prompt": "P {{ item }}",
        "for_each": {"items": ["x", "y"], "concurrency": 2},
    }
    with_flow(team, {"steps": [parts, {"ask": "last"}]}, "inner")
    report = team.run(flow="own", max_processes=1)
    assert (report.outcome, report.totals["turns"]) == ("success", 2 * (2 + 1)), report


@pytest.mark.usefixtures("scripted_codex")
def test_ctrl_c_ends_a_run_whose_turns_wait_for_a_process(tmp_path: Path) -> None:
    """It may be resumed with more processes."""
    team = solver(tmp_path, [fan(list("abc"), concurrency=3)], [{**say(), "delay_seconds": 300}] * 3)
    assert interrupted(team, ("turn_started", "solver"), flow="own", max_processes=1).exit_code == 130
    team.plays["solver"] = [ECHO] * 9
    team.write_plays()
    report = team.resume(playbook=str(team.playbook), max_processes=2)
    assert (report.outcome, len(team.turns())) == ("success", 3)
    assert read(report.folder / "run.json")["options"]["max_processes"] == 2
