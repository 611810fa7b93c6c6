"""Flows of one's own: single asks, checks, routes, named ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role import RunReport
from codex_multi_role.errors import DefinitionError, UsageError
from tests.support.console import console
from tests.support.teams import WRITER, Record, TeamFolder, read, say, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")


@pytest.mark.real
def test_loop_over_ask_and_check_until_the_tests_pass(tmp_path: Path) -> None:
    files = [{"path": "test_it.py", "content": f"def test_it():\n    assert {value}\n"} for value in (False, True)]
    team = TeamFolder(tmp_path, {"writer": WRITER}, {"writer": [say(files=[file]) for file in files]})
    route = [
        {"when": "steps.measure.failed == 0", "end": "green"},
        {"when": "steps.measure.visits >= inputs.most", "end": "gave_up", "exit": 1},
        {"to": "writer"},
    ]
    steps = [{"ask": "writer"}, {"id": "measure", "check": "tests", "next": route}]
    report = with_flow(team, {"inputs": {"most": 3}, "steps": steps}).run(flow="own")
    assert (report.outcome, report.exit_code) == ("green", 0)
    assert [turn[:2] for turn in team.turns()] == [("writer", 1), ("writer", 2)]
    assert '"status": "failed"' in (report.folder / "writer/turn_002/prompt.txt").read_text()
    record = read(report.folder / "run.json")
    assert (record["flow"], record["inputs"]) == ("own", {"most": 3})
    assert (report.folder / "catalog/flows/own.yaml").is_file()


def test_unbounded_flow_is_refused_before_anything_starts(tmp_path: Path) -> None:
    team = with_flow(TeamFolder(tmp_path, {"one": {}}, {}), {"steps": [{"ask": "one", "next": [{"to": "one"}]}]})
    with pytest.raises(DefinitionError, match="one -> one"):
        team.run(flow="own")
    assert not team.runs.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"flow": "cyclse"}, "cycles"), ({"inputs": {"x": "1"}}, "input"), ({"playbook": "roman"}, "roman-numerals")],
)
def test_wrong_names_are_refused_with_the_nearest(tmp_path: Path, changes: Record, words: str) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {})
    with pytest.raises(UsageError) as caught:
        team.run(**changes)
    assert words in f"{caught.value} {caught.value.hint}"
    assert not team.runs.exists()


def suggested(report: RunReport) -> str:
    found: str = read(report.folder / "run.json")["suggestion"]
    return found


def test_cycles_used_up_suggests_more_cycles_and_they_help(tmp_path: Path) -> None:
    """The suggested resume continues the run."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say("a"), say("b"), say("c")]})
    report = team.run(cycles=1)
    assert suggested(report) == "resume RUN --cycles 4"
    assert (
        f"next: codex-multi-role resume {report.run_id} --cycles 4" in console("show", "latest", folder=tmp_path).stdout
    )
    assert team.resume(cycles=3).outcome == "cycles_used_up"
    assert len(team.turns()) == 2


@pytest.mark.real
def test_done_with_failing_tests_needs_another_cycle_or_a_fork(tmp_path: Path) -> None:
    """A resume alone would only find the same DONE again."""
    files = [{"path": "test_it.py", "content": "def test_it():\n    assert False\n"}]
    keys: Record = {"behaviors": {"apply_files": True, "can_finish": True}}
    team = TeamFolder(tmp_path, {"one": keys}, {"one": [say("a"), say("b", files=files, status="DONE")]})
    report = team.run(cycles=2, run_tests=True)
    assert (report.outcome, suggested(report)) == ("tests_failed", "resume RUN --cycles 5")
    assert team.resume().outcome == "tests_failed"
    assert team.turns() == []
