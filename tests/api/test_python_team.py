"""A team written in Python is a team in YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_multi_role import DefinitionError, Flow, Role, Route, Step, Team, events, load_run, run
from codex_multi_role.lifecycle.team_loading import load_catalog, load_team
from tests.support.teams import read

WRITER = Role(name="writer", prompt_text="Write it.\nAll of it.")


def test_written_team_loads_as_it_was_written(tmp_path: Path) -> None:
    steps = [Step(id="write", ask="writer", with_={"n": 1}, next=[Route(when="cycle > 1", end="over"), Route(to="ok")])]
    team = Team(
        roles=[WRITER],
        defaults={"reasoning_effort": "low"},
        flow=Flow(name="own", inputs={"most": 3}, steps=[*steps, Step(id="ok", review="All right?")]),
    )
    team.write(tmp_path)
    flows, catalog = load_team("own", tmp_path)
    assert catalog.role("writer").reasoning_effort == "low"
    assert catalog.role("writer").prompt_text == WRITER.prompt_text
    assert flows["own"].step("write").with_ == {"n": 1}
    assert flows["own"].inputs["most"].default == 3
    assert yaml.safe_load((tmp_path / "flows/own.yaml").read_text())["steps"][0]["with"] == {"n": 1}


def test_files_of_a_role_are_found_from_the_written_team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("writer.yaml").write_text("name: writer\n")
    Path("prompt.md").write_text("Write it from a file.\n")
    Team(roles=[Role(role_file="writer.yaml", prompt_file="prompt.md")]).write(tmp_path / "deep/team")
    assert load_catalog(tmp_path / "deep/team").role("writer").prompt_text == "Write it from a file.\n"


@pytest.mark.real
def test_run_of_a_python_team_keeps_it_and_is_resumed(tmp_path: Path) -> None:
    folders: dict[str, Any] = {"workspace": tmp_path, "runs_dir": tmp_path / "runs"}
    steps = [Step(id="write", ask="writer"), Step(id="ok", review="All right?")]
    team = Team(roles=[WRITER], flow=Flow(steps=steps))
    report = run("reach it", team=team, playbook="auto", run_tests=False, **folders)
    assert (report.flow, report.status) == ("team", "parked")
    kept = report.folder / "catalog" / read(report.folder / "run.json")["catalog_file"]
    assert yaml.safe_load(kept.read_text())["roles"][0]["prompt_text"] == WRITER.prompt_text
    (question,) = report.questions
    report.answer(approved=True, question=question.key)
    assert load_run(runs_dir=tmp_path / "runs").resume().outcome == "success"
    assert [event for event in report.events if isinstance(event, events.Warning)] == []


def test_every_wrong_argument_is_reported() -> None:
    with pytest.raises(DefinitionError) as refused:
        Step(ask="a", prompt=3, limits={"visits": "b"})  # type: ignore[arg-type]
    assert [str(each) for each in refused.value.problems] == [
        'Step(): limits.visits: must be a whole number, not "b"',
        "Step(): prompt: must be text, not 3",
    ]
