"""Runs with ``--playbook auto``."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from codex_multi_role.errors import DefinitionError
from tests.support.console import console
from tests.support.teams import TeamFolder, fan, read, say, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

VERDICT = {"type": "object", "required": ["verdict"], "properties": {"verdict": {"enum": ["revise", "accept"]}}}
FINISHER = {"behaviors": {"can_finish": True}}


def test_team_is_done_in_its_second_cycle(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"writer": {}, "judge": FINISHER}, {})
    report = team.run(playbook="auto", cycles=3)
    assert (report.outcome, report.totals["turns"], report.totals["repairs"]) == ("done", 4, 0)
    assert read(report.folder / "run.json")["playbook"] == "auto (automatic answers)"
    assert team.of_type("run_started")[0]["playbook"] == "auto (automatic answers)"
    assert "no model was asked" in read(report.folder / "writer/turn_001/handoff.json")["summary"]


def test_resume_may_change_to_automatic_answers_and_keeps_its_own_copy(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"writer": {}, "judge": FINISHER}, {"writer": [say("written")], "judge": [say()]})
    team.run()
    report = team.resume(playbook="auto", cycles=2)
    [kept] = (report.folder / "catalog").rglob("auto.yaml")
    assert set(yaml.safe_load(kept.read_text())["roles"]) == {"writer", "judge"}
    assert "Automatic" in read(report.folder / "writer/turn_002/handoff.json")["summary"]
    assert team.resume(cycles=3).outcome == "done"


def test_loop_and_fan_out_of_a_flow_end(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"solver": {}, "critic": {}}, {})
    again = {"when": "steps.judge.verdict == 'revise'", "to": "solve"}
    judge = {
        "id": "judge",
        "ask": "critic",
        "reply": VERDICT,
        "limits": {"visits": 5},
        "next": [again, {"end": "accepted"}],
    }
    with_flow(team, {"steps": [fan(["a", "b"]), judge]})
    report = team.run(playbook="auto", flow="own")
    assert (report.outcome, report.totals["turns"]) == ("accepted", 6)


def test_team_without_a_valid_answer_leaves_no_folder(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"writer": {"output_schema": {"type": "array"}}}, {})
    with pytest.raises(DefinitionError, match="role writer: --playbook auto found no valid answer"):
        team.run(playbook="auto")
    assert not team.runs.exists()


def test_command_needs_no_goal_and_names_the_answers(tmp_path: Path) -> None:
    TeamFolder(tmp_path, {"judge": FINISHER}, {})
    done = console("--playbook", "auto", "--roles", "roles", "--no-run-tests", folder=tmp_path)
    assert done.returncode == 0, done
    assert "from the playbook auto (automatic answers)" in done.stderr
    assert read(tmp_path / "runs/latest/run.json")["goal"] == "Try this team with automatic answers."
