"""Flows of one's own: single asks, checks, routes, named ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.teams import WRITER, TeamFolder, read, say, with_flow

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
