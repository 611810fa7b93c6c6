"""Flows of one's own: single asks, checks, routes, named ends, roles that have a file instead of an entry."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from codex_multi_role.errors import DefinitionError
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


STEPS = {"steps": [{"id": "ask", "ask": "guest"}]}


def team_with_guest(folder: Path, where: Path) -> TeamFolder:
    team = TeamFolder(folder, {"one": {}}, {"guest": [say("hello"), say("again")]})
    where.mkdir(exist_ok=True)
    (where / "guest.yaml").write_text(yaml.safe_dump({"name": "guest", "prompt_text": "Be polite."}))
    return with_flow(team, STEPS)


def test_it_is_found_beside_the_catalog_and_kept_with_the_run(tmp_path: Path) -> None:
    team = team_with_guest(tmp_path, tmp_path / "roles")
    report = team.run(flow="own")
    assert report.exit_code == 0, report
    assert "Be polite." in (report.folder / "guest/turn_001/prompt.txt").read_text()
    assert (report.folder / "catalog/guest.yaml").exists()


def test_packaged_role_is_found_and_kept_for_a_resumed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role that is not in the catalog may also be a packaged one. A resumed run uses its own copy."""
    packaged = tmp_path / "packaged"
    team = team_with_guest(tmp_path, packaged)
    monkeypatch.setattr("codex_multi_role.catalog.flow_loading.definition_folders", lambda: [packaged])
    team.plays["guest"] = []
    team.write_plays()
    assert team.run(flow="own").exit_code == 3
    (packaged / "guest.yaml").unlink()
    team.plays["guest"] = [say("late")]
    team.write_plays()
    assert team.resume(playbook=str(team.playbook)).exit_code == 0


def test_role_of_the_catalog_comes_first(tmp_path: Path) -> None:
    team = team_with_guest(tmp_path, tmp_path / "roles")
    team.roles["guest"] = {"prompt_text": "Be brief."}
    team.write_catalog()
    report = team.run(flow="own")
    assert "Be brief." in (report.folder / "guest/turn_001/prompt.txt").read_text()


def test_invalid_role_file_is_named_in_the_error(tmp_path: Path) -> None:
    team = team_with_guest(tmp_path, tmp_path / "roles")
    (tmp_path / "roles/guest.yaml").write_text("name: other\nprompt_text: x\n")
    with pytest.raises(DefinitionError, match='unknown role "guest"'):
        team.run(flow="own")
    (tmp_path / "roles/guest.yaml").write_text("name: guest\nprompt: x\n")
    with pytest.raises(DefinitionError, match=r'guest\.yaml:\d+:1: unknown key "prompt"'):
        team.run(flow="own")
