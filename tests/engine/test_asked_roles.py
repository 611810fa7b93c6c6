"""A flow may ask roles that the catalog does not name: each has a file of its name."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from codex_multi_role.errors import DefinitionError
from tests.support.teams import TeamFolder, say, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

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
