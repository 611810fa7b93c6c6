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

VARIABLES = {
    "relative": ("PYTHONPATH", "src"),
    "current": ("PYTHONPATH", "."),
    "parent": ("PYTHONPATH", ".."),
    "empty-entry": ("PYTHONPATH", "/opt/nothing:"),
    "first-empty": ("PYTHONPATH", ":/opt/nothing"),
    "workspace": ("PYTHONPATH", "{workspace}"),
    "below": ("PYTHONPATH", "{workspace}/src/lib"),
    "dots": ("PYTHONPATH", "/opt/..{workspace}/src"),
    "link": ("PYTHONPATH", "{folder}/link"),
    "archive": ("PYTHONPATH", "{workspace}/code.zip"),
    "tilde": ("PYTHONPATH", "~/lib"),
    "line-break": ("PYTHONPATH", "lib\n\x1b[31m"),
    "home-of-python": ("PYTHONHOME", "{workspace}/.python"),
    "user-base": ("PYTHONUSERBASE", "{workspace}/.local"),
    "missing-in-temporary": ("PYTHONPATH", "{workspace}-missing/lib"),
    "temporary": ("PYTHONPATH", "/tmp"),
    "python-itself": ("PYTHONEXECUTABLE", "{workspace}/.venv/bin/python"),
    "bytecode": ("PYTHONPYCACHEPREFIX", "{workspace}/.cache"),
    "coverage": ("COVERAGE_PROCESS_START", ".coveragerc"),
    "preload": ("LD_PRELOAD", "{workspace}/x.so"),
    "audit": ("LD_AUDIT", "./x.so"),
    "libraries": ("LD_LIBRARY_PATH", "/opt/nothing:{workspace}/lib"),
    "libraries-empty": ("LD_LIBRARY_PATH", "/opt/nothing:"),
    "git-programs": ("GIT_EXEC_PATH", "{workspace}/.git-core"),
    "git-settings": ("GIT_CONFIG_GLOBAL", "{workspace}/.gitconfig"),
    "git-system": ("GIT_CONFIG_SYSTEM", "gitconfig"),
    "library-folder": ("PYTHONPLATLIBDIR", "{workspace}/lib"),
    "ssh": ("GIT_SSH_COMMAND", "{workspace}/bin/ssh -v"),
    "askpass": ("SSH_ASKPASS", "bin/askpass"),
    "git-template": ("GIT_TEMPLATE_DIR", "{workspace}/template"),
}
HARMLESS = {
    "elsewhere": ("PYTHONPATH", "/opt/nothing:/usr/share/nothing"),
    "beside": ("PYTHONPATH", "{workspace}-of-another"),  # which exists
    "set-to-nothing": ("PYTHONPATH", ""),
    "by-name": ("LD_PRELOAD", "libnothing.so.2"),
    "no-settings": ("GIT_CONFIG_GLOBAL", "/dev/null"),
    "repository": ("GIT_DIR", "{workspace}/.git"),
}


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


@pytest.mark.parametrize(("variable", "value"), VARIABLES.values(), ids=VARIABLES)
def test_run_names_the_variable_and_starts_nothing(
    variable: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = team(tmp_path)
    set_variable(made, monkeypatch, variable, value)
    with pytest.raises(UsageError) as caught:
        made.run()
    assert f" through {variable}: " in str(caught.value)
    assert "env -u VARIABLE" in caught.value.hint
    assert str(caught.value).isprintable()
    assert not made.runs.exists()


@pytest.mark.parametrize(("variable", "value"), HARMLESS.values(), ids=HARMLESS)
def test_harmless_variable_does_not_disturb(
    variable: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = team(tmp_path)
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
