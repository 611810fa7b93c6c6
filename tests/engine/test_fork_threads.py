"""What the roles of a fork remember: forks of the threads they had, up to where it begins."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_multi_role import resume
from codex_multi_role.codex.codex_settings import as_settings
from codex_multi_role.playbook import Playbook, PlaybookServer
from tests.support.forks import Parent, builders, forked
from tests.support.models import model_requests
from tests.support.processes import watched
from tests.support.teams import NEVER, Record, TeamFolder, read, say, with_flow
from tests.support.workspaces import tree

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]


@pytest.fixture
def bodies() -> Iterator[list[Record]]:
    """The model requests of the test."""
    with model_requests() as bodies:
        yield bodies


def said(body: Record) -> list[str]:
    """What the role itself said in the conversation that a model request holds."""
    return [
        json.loads(part["text"])["summary"]
        for item in body["input"]
        if item.get("role") == "assistant"
        for part in item["content"]
    ]


def test_what_a_role_remembers_ends_where_the_fork_begins(parent: Parent, bodies: list[Record]) -> None:
    team, original = parent
    report = forked(team, "build:2")
    assert report.outcome == "judged"
    memories = [said(body) for body in bodies]
    assert memories == [["build 1"], ["judge 1"], ["build 1", "build 2"], ["judge 1", "judge 2"]]
    bodies.clear()
    forked(team, "build:1", max_turns=2, run=original.run_id)
    assert [said(body) for body in bodies] == [[], []]
    assert {event["role"]: event["resumed"] for event in team.of_type("role_started")}["build"] is False
    threads = [read(folder / "judge/turn_001/turn.json")["thread_id"] for folder in (original.folder, report.folder)]
    assert threads[0] == threads[1] != read(report.folder / "judge/turn_002/turn.json")["thread_id"]


def test_forked_thread_outlives_a_crash_in_its_first_turn(parent: Parent, bodies: list[Record]) -> None:
    team, _ = parent
    team.plays["judge"][1] = {"attempts": [{"fault": {"stall_seconds": 60}}, say("judge 2")]}
    team.write_plays()
    team.write_catalog(judge={"limits": {"idle_seconds": 1, "turn_seconds": 60}})
    report = forked(team, "judge:2", max_turns=2, playbook=str(team.playbook), roles=team.folder / "roles")
    assert [turn[2] for turn in team.turns()] == ["stalled", "completed"], report
    assert [said(body) for body in bodies] == [["judge 1"], ["judge 1"]]


def test_role_with_lost_codex_thread_receives_its_handoffs(parent: Parent) -> None:
    """The fork repeats the role's own handoffs in the prompt."""
    team, original = parent
    shutil.rmtree(original.folder / ".codex/judge")
    report = forked(team, "judge:2", max_turns=1)
    assert '"summary": "judge 1"' in (report.folder / "judge/turn_002/prompt.txt").read_text()


@pytest.mark.long
def test_another_model(tmp_path: Path, bodies: list[Record]) -> None:
    """No short test gives a forked thread of the real binary another model."""
    team = builders(tmp_path, [{"ask": "build"}, {"ask": "judge"}])
    with PlaybookServer(Playbook.load(team.playbook)) as server:
        provider = {"name": "local", "base_url": server.base_url, "wire_api": "responses"}
        config = as_settings({"model_provider": "local", "model_providers.local": provider})
        team.run(flow="own", playbook=None, config=config, model="first-model")
        report = forked(team, "judge", model="second-model")
    assert report.outcome == "success", report
    assert [body["model"] for body in bodies] == ["first-model"] * 2 + ["second-model"]
    assert read(report.folder / "judge/turn_001/turn.json")["model"] == "second-model"


def test_fork_of_a_fork_and_its_resumption(parent: Parent, bodies: list[Record]) -> None:
    team, original = parent
    child = forked(team, "build:3", max_turns=1)
    assert child.exit_code == 5
    inherited = forked(team, "judge:2", run=child.run_id, max_turns=1)
    assert (inherited.exit_code, team.turns()) == (5, [("judge", 2, "completed")])
    shutil.rmtree(original.folder)
    bodies.clear()
    own = forked(team, "chores:3", run=child.run_id)
    assert (own.outcome, team.turns()) == ("judged", [("judge", 3, "completed")])
    assert read(own.folder / "build/turn_003/turn.json")["inherited"]
    assert tree(team.folder / f"workspace.fork-{own.run_id[-8:]}")["a.txt"] == "3\n"
    team.events.clear()
    resumed = resume(inherited.run_id, runs_dir=team.runs, changes={"max_turns": None}, on_event=team.events.append)
    assert (resumed.outcome, team.turns()) == ("judged", [("build", 3, "completed"), ("judge", 3, "completed")])
    assert resumed.totals["turns"] == 3
    assert [said(body) for body in bodies] == [
        ["judge 1", "judge 2"],
        ["build 1", "build 2"],
        ["judge 1", "judge 2"],
    ]
    assert read(resumed.folder / "run.json")["forked_from"]["run_id"] == child.run_id


def test_each_ask_of_fork_continues_its_own_thread(tmp_path: Path, bodies: list[Record]) -> None:
    """A role with several threads continues the one that this step would have used in the original run."""
    steps: list[Record] = [
        {"id": "many", "ask": "solver", "for_each": {"items": ["x", "y"], "concurrency": 2}},
        {"id": "mine", "ask": "solver"},
        {"id": "others", "ask": "solver", "for_each": ["z"]},
        {"id": "apart", "ask": "solver", "isolate": "worktree"},
        {"id": "again", "ask": "solver"},
        {"id": "more", "ask": "solver"},
    ]
    plays = [say(f"answer {number}") for number in range(1, 8)]
    team = with_flow(TeamFolder(tmp_path, {"solver": {}}, {"solver": plays}), {"steps": steps})
    assert team.run(flow="own").outcome == "success"
    bodies.clear()
    again = forked(team, "again")
    assert again.outcome == "success", again
    forked(team, "more", run=again.run_id)
    memories = [["answer 3"], ["answer 3", "answer 6"], ["answer 3", "answer 6"]]
    assert [said(body) for body in bodies] == memories
    forked(team, "others")
    assert [said(body) for body in bodies[3:]] == [[], [], ["answer 3"], ["answer 3", "answer 6"]]


@pytest.mark.long
def test_fork_killed_in_first_turn_forks_thread_again_on_resume(tmp_path: Path, bodies: list[Record]) -> None:
    """The kill harness has no scenario of a fork."""
    team = builders(tmp_path)
    original = team.run(flow="own")
    good = team.plays["judge"][1]
    team.plays["judge"][1] = NEVER
    team.write_plays()
    command = ["-m", "codex_multi_role", "fork", "latest", "--from", "judge:2", "--playbook", "playbook.yaml", "--json"]
    process = subprocess.Popen(
        [sys.executable, *command], cwd=team.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with watched(process, until=("turn_started", "judge")):
        process.kill()
    team.plays["judge"][1] = good
    team.write_plays()
    bodies.clear()
    report = team.resume(playbook=str(team.playbook))
    assert report.outcome == "judged", report
    assert [said(body) for body in bodies] == [["judge 1"], ["build 1", "build 2"], ["judge 1", "judge 2"]]
    threads = [read(report.folder / f"judge/turn_00{number}/turn.json")["thread_id"] for number in (1, 2, 3, 4)]
    assert threads[0] == read(original.folder / "judge/turn_001/turn.json")["thread_id"]
    assert threads[2] == threads[3]
    assert len(set(threads)) == 3
