from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.cli.main import group
from codex_multi_role.cli.options import RUN
from codex_multi_role.cli.settings import read_file
from codex_multi_role.extensions.setup.init import PURPOSES, settings_file
from codex_multi_role.flow.references import unsent_roles, unused_roles
from codex_multi_role.lifecycle.dry_run import dry_run
from codex_multi_role.lifecycle.team_loading import load_catalog, load_team
from codex_multi_role.reading.shipped import definition_folders
from codex_multi_role.run_options import RunOptions
from tests.support.catalogs import begin
from tests.support.console import at_terminal, console
from tests.support.workspaces import files_below

TRIED: dict[str, Any] = {
    "coding": {"goal": "Add a --version flag"},
    "tests": {"inputs": {"target": "here.py"}},
    "research": {"goal": "Who built the old bridge?", "inputs": {"sources": "here"}},
    "documentation": {},
    "plan-solve": {"goal": "Area and circumference of a circle"},
    "empty": {"goal": "Add a --version flag"},
}
NOT_ALWAYS = {"test_developer_2"}
"""Roles that a starter's flow asks with certain inputs only."""


def test_shipped_roles_are_copied_and_each_file_is_named(tmp_path: Path) -> None:
    done = console("init", "project", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    copied = [path for path in files_below(tmp_path / "project" / "roles") if not path.startswith(".schemas/")]
    shipped = {path for folder in definition_folders() for path in files_below(folder)}
    assert copied == sorted(path for path in shipped if not path.startswith("starters/"))
    for path in copied:
        assert f"wrote project/roles/{path}" in done.stderr
    assert (tmp_path / "project" / "codex-multi-role.yaml").is_file()


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    (tmp_path / "codex-multi-role.yaml").write_text("cycles: 5\n")
    done = console("init", folder=tmp_path)
    assert done.returncode == 2
    assert "codex-multi-role.yaml" in done.stderr
    assert files_below(tmp_path) == ["codex-multi-role.yaml"]
    done = console("init", "--force", folder=tmp_path)
    assert done.returncode == 0
    assert "overwrote codex-multi-role.yaml" in done.stderr


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = console("init", "taken/project", folder=tmp_path)
    assert done.returncode == 3
    assert "cannot write taken/project" in done.stderr


def test_every_line_of_the_settings_file_can_be_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "codex-multi-role.yaml"
    path.write_text(settings_file())
    known = {setting.key: setting for setting in RUN}
    assert read_file(path, known) == {}
    keys = [line[2:] for line in settings_file().splitlines() if line.startswith("# ") and yaml_key(line[2:]) in known]
    path.write_text("\n".join(keys))
    assert len(read_file(path, known)) == len(keys) > 10


@pytest.mark.extensions
def test_settings_file_offers_nothing_that_is_of_one_run_only() -> None:
    offered = {line[2:].partition(":")[0] for line in settings_file().splitlines()}
    assert "repair-attempts" in offered
    assert not offered & {"goal", "record", "replay", "dry-run", "junit", "summary", "annotations"}


@pytest.mark.extensions
def test_settings_file_offers_options_of_extensions() -> None:
    assert {"# replay-match: strict", "# database-url: URL"} <= {*settings_file().splitlines()}


def yaml_key(line: str) -> str:
    loaded = yaml.safe_load(line) if line.partition(":")[0].replace("-", "").isalpha() else None
    return next(iter(loaded)).replace("-", "_") if isinstance(loaded, dict) else ""


@pytest.mark.extensions
@pytest.mark.parametrize("name", TRIED)
def test_each_starter_is_valid_as_it_is(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    begin(name)
    Path("here").mkdir()
    Path("here.py").write_text("")
    flow = str(read_file(Path("codex-multi-role.yaml"), {setting.key: setting for setting in RUN})["flow"].value)
    flows, complete = load_team(flow, None)
    assert not unused_roles(flows, complete)
    assert not unsent_roles(flows, complete)
    assert {role.name for role in complete.roles} - {role.name for role in load_catalog(None).roles} <= NOT_ALWAYS
    asked = [record["role"] for record in dry_run(RunOptions(flow=flow, **TRIED[name])) if record["type"] == "ask"]
    assert asked
    for line in Path("roles/catalog.yaml").read_text().splitlines():
        assert len(line) <= 120


@pytest.mark.extensions
def test_every_starter_is_offered_and_tried_here() -> None:
    there = {path.name for folder in definition_folders() for path in (folder / "starters").iterdir()}
    assert there == set(PURPOSES) == TRIED.keys()
    assert (PURPOSES[0], PURPOSES[-1]) == ("coding", "empty")


def test_starter_is_all_that_a_run_needs(tmp_path: Path) -> None:
    assert console("init", "--for", "coding", folder=tmp_path).returncode == 0
    done = console("--goal", "Add a --version flag", "--dry-run", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("=== ") == 4


def test_every_folder_of_a_project_has_its_team_and_runs(tmp_path: Path) -> None:
    assert console("init", "--for", "empty", folder=tmp_path).returncode == 0
    (tmp_path / ".git").touch()
    (tmp_path / "src/shop").mkdir(parents=True)
    listed = console("roles", "list", "--json", folder=tmp_path / "src/shop")
    assert [role["source"] for role in json.loads(listed.stdout)] == [f"{tmp_path}/roles/catalog.yaml"]
    shown = json.loads(console("config", "show", "--json", folder=tmp_path / "src/shop").stdout)
    assert shown["runs-dir"] == {"value": f"{tmp_path}/runs", "source": f"{tmp_path}/codex-multi-role.yaml:6"}


@pytest.mark.real
def test_on_a_terminal_it_asks_what_the_team_is_for(tmp_path: Path) -> None:
    with at_terminal([sys.executable, "-m", "codex_multi_role", "init"], tmp_path) as session:
        session.wait_for("What is the team for?")
        session.wait_for("A number or a name [coding]: ")
        session.type("nothing\n")
        session.wait_for("is not one of")
        session.wait_for("A number or a name [coding]: ")
        session.type(f"{len(PURPOSES)}\n")
        assert session.end() == 0
    assert "name: worker" in (tmp_path / "roles/catalog.yaml").read_text()


@pytest.mark.real
def test_nothing_is_written_where_the_question_is_left(tmp_path: Path) -> None:
    with at_terminal([sys.executable, "-m", "codex_multi_role", "init"], tmp_path) as session:
        session.wait_for("A number or a name [coding]: ")
        session.type("\x04")
        assert session.end() == 130
    assert not list(tmp_path.iterdir())


def test_purpose_and_all_shipped_roles_cannot_both_be_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(group, ["init", "--for", "coding", "--shipped", str(tmp_path)]) == 2
    assert not list(tmp_path.iterdir())
    assert run_guarded(group, ["init", "--shipped", str(tmp_path)]) == 0
    assert "wrote" in capsys.readouterr().err
