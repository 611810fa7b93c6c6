"""``--max-processes`` on the real binary: further turns wait, idle processes make room, and threads live on."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
import yaml

from codex_multi_role import RunReport, resume, run
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


@pytest.mark.long
def test_calls_within_a_fan_out_do_not_lock_each_other_out(tmp_path: Path) -> None:
    team = solver(tmp_path, [{"id": "outer", "call": "inner", "for_each": [1, 2], "concurrency": 2}], [say()] * 20)
    inner: list[Record] = [
        {"id": "parts", "ask": "solver", "prompt": "P {{ item }}", "for_each": ["x", "y"], "concurrency": 2},
        {"ask": "last"},
    ]
    (tmp_path / "roles/flows/inner.yaml").write_text(yaml.safe_dump({"steps": inner}))
    counter = Counter()
    report = counter.run(team, max_processes=1)
    assert report.outcome == "success", report
    assert counter.most == 1
    assert report.totals["turns"] == 2 * (2 + 1)


@pytest.mark.long
def test_retry_continues_in_its_workspace_copy(tmp_path: Path) -> None:
    """The pause before a retry frees the process; its replacement knows the thread and the folder."""
    failing: Record = {"attempts": [{"fault": {"status": 500}}, {"steps": [
        {"call": "exec_command", "arguments": {"cmd": "pwd"}},
        {"json": {"summary": "{{ tool_outputs[0] }}"}},
    ]}]}  # fmt: skip
    team = solver(tmp_path, [fan(["a", "b"], concurrency=2, isolate="worktree")], [failing, failing])
    report = Counter().run(team, max_processes=1)
    assert report.outcome == "success", report
    answers = [read(path)["summary"] for path in report.folder.glob("solver*/turn_*/handoff.json")]
    assert len(answers) == 2
    assert all("/copies/" in answer and "/solve.1." in answer for answer in answers), answers


@pytest.mark.long
def test_resumed_run_may_have_another_number(tmp_path: Path) -> None:
    team = solver(tmp_path, [fan(list("abcd"), concurrency=4)], [ECHO] * 9)
    assert Counter().run(team, max_processes=1, max_turns=2).exit_code == 5
    report = resume("latest", runs_dir=team.runs, changes={"max_processes": 2, "max_turns": None})
    assert report.outcome == "success"
    assert read(report.folder / "run.json")["options"]["max_processes"] == 2


@pytest.mark.long
def test_ctrl_c_ends_a_run_whose_turns_wait_for_a_process(tmp_path: Path) -> None:
    slow: Record = {**say(), "delay_seconds": 300}
    team = solver(tmp_path, [fan(list("abc"), concurrency=3)], [slow] * 3)

    def press(event: Record) -> None:
        if event["type"] == "turn_started":
            os.kill(os.getpid(), signal.SIGINT)

    assert run(team.options(flow="own", max_processes=1), press).exit_code == 130
    team.plays["solver"] = [ECHO] * 9
    team.write_plays()
    report = team.resume(playbook=str(team.playbook))
    assert (report.outcome, len(team.turns())) == ("success", 3)
