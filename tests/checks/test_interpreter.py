from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from codex_multi_role.checks.interpreter import OWN, Interpreter, find_interpreter, inspect
from codex_multi_role.errors import RunInterrupted, UsageError
from codex_multi_role.workspace.commands import no_sandbox
from tests.support.console import DEADLINE_SECONDS, console
from tests.support.generation import ABOVE, BELOW, IMPORT, P1, P2, SIGN, Generation, code, plan
from tests.support.teams import TeamFolder, read, say

NO_PYTEST = '#!/bin/sh\necho \'{"version": "3.9.1", "prefix": "x", "packages": {"pytest": null}, "roots": []}\'\n'
NO_COVERAGE = NO_PYTEST.replace("null", "true")


def environment(folder: Path, program: str = "") -> Path:
    """An environment whose Python is ours, or a shell's ``program``."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    python = folder / "bin" / "python"
    python.write_text(program or f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return folder


def _poetry(home: Path, root: Path) -> Path:
    (root / "pyproject.toml").write_text('[tool.poetry]\nname = "My Shop"\n')
    digest = base64.urlsafe_b64encode(hashlib.sha256(os.path.realpath(root).encode()).digest()).decode()[:8]
    environment(home / ".cache/pypoetry/virtualenvs" / f"my_shop-{digest}-py3.9")
    return environment(home / ".cache/pypoetry/virtualenvs" / f"my_shop-{digest}-py3.11")


def _conda(home: Path, root: Path) -> Path:
    (root / "environment.yml").write_text("name: shop\n")
    found = environment(home / "miniconda" / "envs" / "shop")
    (home / ".conda").mkdir()
    (home / ".conda" / "environments.txt").write_text(f"{home}/miniconda\n{found}\n")
    return found


PLACES: dict[str, Callable[[Path, Path], Path]] = {
    ".venv": lambda home, root: environment(root / ".venv"),
    "venv": lambda home, root: environment(root / "venv"),
    "uv": lambda home, root: environment(root / "of-uv"),
    "poetry": _poetry,
    "conda": _conda,
}


@pytest.mark.parametrize("source", PLACES)
def test_environment_of_the_project_is_found(tmp_path: Path, source: str) -> None:
    home, root = tmp_path / "home", tmp_path / "work"
    root.mkdir()
    made = PLACES[source](home, root)
    variables = {"HOME": str(home), "UV_PROJECT_ENVIRONMENT": "of-uv"}
    assert find_interpreter(root, variables) == Interpreter(made / "bin" / "python", source)


def test_active_environment_comes_before_those_of_the_project(tmp_path: Path) -> None:
    active = environment(tmp_path / "active")
    environment(tmp_path / "work" / ".venv")
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        found = find_interpreter(tmp_path / "work", {name: str(active)})
        assert (found.path, found.source) == (active / "bin" / "python", name)


@pytest.mark.parametrize(
    "variables",
    [
        {"VIRTUAL_ENV": sys.prefix},
        {"VIRTUAL_ENV": "/gone"},
        {"CONDA_PREFIX": sys.prefix, "CONDA_DEFAULT_ENV": "base"},
    ],
    ids=["our own", "gone", "the base of conda"],
)
def test_what_is_active_for_other_reasons_does_not_count(tmp_path: Path, variables: dict[str, str]) -> None:
    assert find_interpreter(tmp_path, variables) == Interpreter(Path(sys.executable), OWN)
    environment(tmp_path / "venv")
    assert find_interpreter(tmp_path, variables).source == "venv"


def test_setting_names_a_program_or_an_environment(tmp_path: Path) -> None:
    given = environment(tmp_path / "given")
    environment(tmp_path / ".venv")
    for setting in (given, given / "bin" / "python"):
        found = find_interpreter(tmp_path, {"VIRTUAL_ENV": str(tmp_path / ".venv")}, setting)
        assert (found.path, found.source) == (given / "bin" / "python", "--python")
    with pytest.raises(UsageError, match="is not a Python"):
        find_interpreter(tmp_path, {}, tmp_path / "nowhere")


def test_missing_packages_are_reported_with_install_command(tmp_path: Path) -> None:
    found = inspect(find_interpreter(environment(tmp_path / "venv").parent, {}), tmp_path, {}, no_sandbox)
    assert (found.problem, found.version) == ("", f"{'.'.join(map(str, sys.version_info[:3]))}")
    bare = Interpreter(environment(tmp_path / "bare", NO_PYTEST) / "bin" / "python", "venv")
    found = inspect(bare, tmp_path, {}, no_sandbox)
    assert found.problem == f"the Python that runs the tests (venv: {bare.path}) has no pytest and no coverage"
    assert found.hint == f"Run: {bare.path} -m pip install pytest coverage"
    (bare.environment / "pyvenv.cfg").write_text("home = x\nuv = 0.5\n")
    assert inspect(bare, tmp_path, {}, no_sandbox).hint.startswith(f"Run: uv pip install --python {bare.path} pytest")
    broken = Interpreter(
        environment(tmp_path / "broken", "#!/bin/sh\necho no >&2; exit 1\n") / "bin" / "python", "venv"
    )
    assert "cannot be started: no" in inspect(broken, tmp_path, {}, no_sandbox).problem


@pytest.mark.parametrize(
    ("name", "text", "unmet"),
    [
        ("pyproject.toml", '[project]\ndependencies = ["click", "not-there-x>=2"]\n', "not-there-x>=2"),
        ("pyproject.toml", '[project]\ndependencies = ["click>=999"]\n', "click>=999"),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.9"\nnot-there-x = "*"\n', "not-there-x"),
        ("requirements.txt", "# x\n-r more.txt\nclick\nnot-there-x==1 --hash=sha256:0 \\\n", "not-there-x==1"),
        ("pyproject.toml", '[project]\ndependencies = ["click", "gone; python_version < \'3\'"]\n', ""),
        ("pyproject.toml", "not toml", ""),
        ("setup.cfg", "[options]\ninstall_requires =\n  click\n  not-there-x>1\n", "not-there-x>1"),
        ("setup.cfg", "not a setting", ""),
        ("setup.py", "from x import setup\nsetup(install_requires=['click', 'not-there-x'])\n", "not-there-x"),
        ("setup.py", "setup(install_requires=read('requirements.txt') or 1)\n", ""),
        ("setup.py", "setup(install_requires=5)\n", ""),
        ("setup.py", "setup(", ""),
    ],
)  # fmt: skip
def test_own_python_is_used_only_if_requirements_are_met(tmp_path: Path, name: str, text: str, unmet: str) -> None:
    """If the project has no environment, our own Python runs its tests only if it has what the project requires."""
    (tmp_path / name).write_text(text)
    found = inspect(find_interpreter(tmp_path, {}), tmp_path, {}, no_sandbox)
    assert (f"the project needs {unmet} and has no" in found.problem) == bool(unmet), found
    assert (f"Run in {tmp_path}: python3 -m venv .venv && " in found.hint) == bool(unmet)


def test_pytest_by_its_name_is_the_projects(tmp_path: Path) -> None:
    python = Interpreter(environment(tmp_path / "venv") / "bin" / "python", "venv")
    active = python.activate({"PATH": "/usr/bin", "VIRTUAL_ENV": "/other", "PYTHONHOME": "/x"})
    assert active == {"PATH": f"{tmp_path}/venv/bin:/usr/bin", "VIRTUAL_ENV": f"{tmp_path}/venv"}


def _generation(folder: Path) -> Generation:
    plays = {"test_planner": [plan(P1, P2)], "test_developer": [code(IMPORT + BELOW + ABOVE)]}
    return Generation(folder, {"sign.py": SIGN}, **plays)


def test_run_says_which_python_runs_its_tests(tmp_path: Path) -> None:
    given = _generation(tmp_path)
    python = environment(given.team.workspace / "venv") / "bin" / "python"
    assert given.run("sign.py", sandbox=True).exit_code == 0
    version = ".".join(map(str, sys.version_info[:3]))
    told = {"path": str(python), "version": version, "source": "venv"}
    assert given.team.of_type("run_started")[0]["python"] == told
    assert read(given.report.folder / "results.json")["python"] == told


def test_run_stops_before_first_turn_if_python_lacks_pytest(tmp_path: Path) -> None:
    given = _generation(tmp_path)
    environment(given.team.workspace / "venv", NO_PYTEST)
    with pytest.raises(UsageError, match="has no pytest and no coverage"):
        given.run("sign.py", sandbox=True)
    assert not given.team.runs.exists()


def test_tests_after_turns_need_a_python_that_has_pytest(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {"sandbox": "workspace-write"}}, {"one": [say()]})
    environment(team.workspace / ".venv", NO_PYTEST)
    assert team.run().exit_code == 1  # without tests
    with pytest.raises(UsageError, match="has no pytest and no coverage"):
        team.run(run_tests=True)
    assert len(list(team.runs.glob("2*"))) == 1


def test_only_what_measures_needs_coverage(tmp_path: Path) -> None:
    """Many projects have pytest without it."""
    team = TeamFolder(tmp_path / "team", {"one": {"sandbox": "workspace-write"}}, {"one": [say()]})
    environment(team.workspace / ".venv", NO_COVERAGE)
    assert team.run(run_tests=True).outcome == "cycles_used_up"
    given = _generation(tmp_path)
    environment(given.team.workspace / "venv", NO_COVERAGE)
    with pytest.raises(UsageError, match="has no coverage"):
        given.run("sign.py", sandbox=True)


def test_inspection_that_nobody_waits_for_is_stopped(tmp_path: Path) -> None:
    slow = Interpreter(environment(tmp_path / "slow", "#!/bin/sh\nexec sleep 600\n") / "bin" / "python", "venv")
    stopping = Event()
    stopping.set()
    with pytest.raises(RunInterrupted):
        inspect(slow, tmp_path, {}, no_sandbox, stopping)


def test_startup_skips_packaging_import_without_requirements(tmp_path: Path) -> None:
    """`packaging` is imported only if a file of the project names requirements."""
    check = f"""import sys
from pathlib import Path
from codex_multi_role.lifecycle.definitions import load_definitions
from codex_multi_role.run_options import RunOptions
load_definitions(RunOptions(goal="x", workspace=Path({str(tmp_path)!r})))
sys.exit("packaging" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", check], cwd=tmp_path, check=True, timeout=DEADLINE_SECONDS)


def test_doctor_says_which_python_runs_the_tests(tmp_path: Path) -> None:
    environment(tmp_path / "venv", NO_PYTEST)
    done = console("doctor", "-c", "model_provider=ollama", "--json", folder=tmp_path)
    (found,) = [SimpleNamespace(**each) for each in json.loads(done.stdout) if each["name"] == "tests"]
    assert (done.returncode, found.ok) == (2, False)
    assert found.advice == f"Run: {tmp_path}/venv/bin/python -m pip install pytest coverage"
