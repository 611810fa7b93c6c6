"""Variables that would load code which a model can write: every command that works on a run refuses them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from codex_multi_role import RunReport, UsageError
from codex_multi_role.errors import ExitCode
from codex_multi_role.host import programs
from codex_multi_role.lifecycle.running import fork
from tests.support.console import console
from tests.support.teams import WRITER, TeamFolder, say

pytestmark = pytest.mark.usefixtures("scripted_codex")

VALUES = ["src", "{workspace}/src/lib", "{folder}/link", "/opt/nothing:"]
"""Of PYTHONPATH; which entries of which variables count is tried in `tests/host/test_programs.py`."""
HARMLESS = {"PYTHONPATH": "/opt/nothing:{workspace}-of-another", "GIT_CONFIG_GLOBAL": "/dev/null"}


@pytest.fixture(autouse=True)
def _nothing_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_excluded", set())


def team(folder: Path, **role: object) -> TeamFolder:
    made = TeamFolder(folder, {"one": {**WRITER, **role}}, {"one": [say()] * 4})
    (folder / "link").symlink_to(made.workspace)
    (folder / "workspace-of-another").mkdir()
    return made


def set_variable(made: TeamFolder, monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value.format(workspace=made.workspace, folder=made.folder))


@pytest.mark.parametrize("value", VALUES)
def test_run_names_the_variable_and_starts_nothing(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = team(tmp_path)
    set_variable(made, monkeypatch, "PYTHONPATH", value)
    with pytest.raises(UsageError) as caught:
        made.run()
    assert " through PYTHONPATH: " in str(caught.value)
    assert "env -u VARIABLE" in caught.value.hint
    assert not made.runs.exists()


def test_harmless_variables_do_not_disturb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = team(tmp_path)
    for variable, value in HARMLESS.items():
        set_variable(made, monkeypatch, variable, value)
    assert made.run().outcome == "cycles_used_up"


@pytest.mark.parametrize("place", ["role", "option", "user"])
def test_folder_that_settings_make_writable_counts(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shared" / "lib").mkdir(parents=True)
    writable = f'["{tmp_path}/shared"]'
    key = "sandbox_workspace_write.writable_roots"
    made = team(tmp_path, **({"codex_config": {key: [f"{tmp_path}/shared"]}} if place == "role" else {}))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}/shared/lib")
    options: dict[str, object] = {"config": (f"{key}={writable}",)} if place == "option" else {}
    if place == "user":
        home = tmp_path / "home"
        home.mkdir()
        (home / "config.toml").write_text(f"[sandbox_workspace_write]\nwritable_roots = {writable}\n")
        (home / "auth.json").write_text("{}")
        monkeypatch.setenv("CODEX_HOME", str(home))
        options = {"playbook": None}
    with pytest.raises(UsageError, match=f'PYTHONPATH: "{tmp_path}/shared/lib"'):
        made.run(**options)
    assert not made.runs.exists()


@pytest.mark.parametrize("command", ["resume", "fork", pytest.param("rerun", marks=pytest.mark.extensions)])
def test_run_that_exists_is_not_continued(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = team(tmp_path)
    assert made.run().outcome == "cycles_used_up"
    before = sorted(path.name for path in made.runs.iterdir())
    set_variable(made, monkeypatch, "PYTHONPATH", "{workspace}/src")
    commands: dict[str, Callable[[], RunReport]] = {
        "resume": lambda: made.resume(cycles=2),
        "fork": lambda: fork("latest", runs_dir=made.runs, start="team"),
        "rerun": lambda: import_module("codex_multi_role.extensions.replays").rerun("latest", runs_dir=made.runs),
    }
    with pytest.raises(UsageError, match="PYTHONPATH"):
        commands[command]()
    assert sorted(path.name for path in made.runs.iterdir()) == before


@pytest.mark.extensions
def test_batch_starts_no_goal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support.batches import batch, one_role, write_goals

    made = one_role(tmp_path)
    write_goals(made, {"id": "a", "goal": "first"})
    monkeypatch.setenv("PYTHONPATH", "src")
    done = batch(made)
    assert done.returncode == ExitCode.WRONG_USAGE
    assert 'PYTHONPATH: "src"' in done.stderr
    assert not list(made.runs.glob("*/run.json"))


@pytest.mark.extensions
def test_worker_takes_no_run(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/runs.sqlite"
    places = {"PYTHONPATH": f"{tmp_path}/work/x"}
    given = ("worker", "--until-empty", "--work-dir", "work", "--database-url", database)
    done = console(*given, folder=tmp_path, variables=places)
    assert done.returncode == ExitCode.WRONG_USAGE
    assert f'PYTHONPATH: "{tmp_path}/work/x"' in done.stderr


def test_doctor_reports_it(tmp_path: Path) -> None:
    done = console("doctor", "--json", "--codex-bin", "nowhere", folder=tmp_path, variables={"PYTHONPATH": os.curdir})
    [finding] = [each for each in json.loads(done.stdout) if each["name"] == "environment"]
    assert not finding["ok"]
    assert 'PYTHONPATH: "."' in finding["detail"]
    assert finding["advice"]
