"""Which Python tests run with, and what its environment lacks.

Costs: virtual environments are made, and Pythons started in them.
"""

from __future__ import annotations

import base64
import gc
import hashlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from codex_multi_role.checks.interpreter import OWN, Interpreter, find_interpreter, inspect
from codex_multi_role.checks.plugins.codex_multi_role_python import described
from codex_multi_role.checks.process_of_tests import interpreter_of
from codex_multi_role.errors import RunInterrupted, UsageError
from codex_multi_role.workspace.commands import no_sandbox
from tests.support.checks import MakeContext
from tests.support.console import console
from tests.support.teams import TeamFolder, say, with_flow
from tests.support.workspaces import Program, write_files

NO_PYTEST = '#!/bin/sh\necho \'{"version": "3.9.1", "prefix": "x", "packages": {"pytest": false}, "roots": []}\'\n'
MEASURING = {
    "steps": [
        {
            "id": "measure",
            "check": "coverage",
            "with": {"target": "sign.py"},
            "next": [{"when": "steps.measure.coverage == 100", "end": "measured"}, {"end": "short", "exit": 1}],
        }
    ]
}
SIGN = {
    "sign.py": "def sign(number):\n    return -1 if number < 0 else 1\n",
    "tests/test_sign.py": "from sign import sign\n\n\ndef test_below():\n    assert sign(-3) == -1\n",
}
APPLIES = {"behaviors": {"apply_files": True}}
NO_COVERAGE = NO_PYTEST.replace("false", "true")


def environment(folder: Path, program: str = "") -> Path:
    """An environment whose Python is ours, or a shell's ``program``."""
    python = Program(program or f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    write_files(folder, {"pyvenv.cfg": "", "bin/python": python})
    return folder


def _poetry(home: Path, root: Path) -> Path:
    (root / "pyproject.toml").write_text('[project]\nname = "My_Shop.App"\n')
    store = home / ".cache/pypoetry/virtualenvs"
    environment(store / f"my-shop-app-{_digest(root)}-py3.9")
    return environment(store / f"my-shop-app-{_digest(root)}-py3.11")


def _digest(root: Path) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(os.path.realpath(root).encode()).digest()).decode()[:8]


def _conda(home: Path, root: Path) -> Path:
    (root / "environment.yml").write_text("name: shop\n")
    found = environment(home / "miniconda" / "envs" / "shop")
    write_files(home, {".conda/environments.txt": f"{home}/miniconda\n{found}\n"})
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


@pytest.mark.parametrize(
    ("project", "name"),
    [
        ('[project]\nname = "shop"\n', "shop"),
        ('[tool.poetry]\nname = "My__Shop.App"\n', "my-shop-app"),
        ("[tool.poetry]\npackage-mode = false\n", "non-package-mode"),
    ],
)
@pytest.mark.parametrize(
    ("file", "setting", "place"),
    [
        ("work/poetry.toml", '[virtualenvs]\npath = "../envs"\n', "envs"),
        ("work/poetry.toml", '[virtualenvs]\npath = "~/envs"\n', "home/envs"),
        ("home/.config/pypoetry/config.toml", 'cache-dir = "~/kept"\n', "home/kept/virtualenvs"),
        ("home/.config/pypoetry/config.toml", '[virtualenvs]\npath = "{cache-dir}/x"\n', "home/.cache/pypoetry/x"),
    ],
)
def test_poetry_environment_is_found_by_its_settings(
    tmp_path: Path, project: str, name: str, file: str, setting: str, place: str
) -> None:
    """The names and places are those of poetry 2.5; ``envs.toml`` names the version that ``poetry env use`` chose."""
    home, root = tmp_path / "home", tmp_path / "work"
    write_files(tmp_path, {"work/pyproject.toml": project, file: setting})
    base = f"{name}-{_digest(root)}"
    environment(tmp_path / place / f"{base}-py3.12")
    chosen = environment(tmp_path / place / f"{base}-py3.10")
    (tmp_path / place / "envs.toml").write_text(f'[{base}]\nminor = "3.10"\npatch = "3.10.13"\n')
    found = find_interpreter(root, {"HOME": str(home)})
    assert (found.path.resolve(), found.source) == (chosen / "bin" / "python", "poetry")


def test_conda_prefix_needs_no_list_of_environments(tmp_path: Path) -> None:
    made = environment(tmp_path / "made")
    (tmp_path / "environment.yml").write_text(f"name: shop\nprefix: {made}\n")
    found = find_interpreter(tmp_path, {"HOME": str(tmp_path)})
    assert found == Interpreter(made / "bin" / "python", "conda")


@pytest.mark.parametrize("mark", [".git", "pyproject.toml"])
def test_environment_above_workspace_is_found_in_same_project(tmp_path: Path, mark: str) -> None:
    top, member = tmp_path / "top", tmp_path / "top/packages/foo"
    member.mkdir(parents=True)
    environment(tmp_path / ".venv")
    (top / mark).touch()
    assert find_interpreter(member, {}).source == OWN
    shared = environment(top / ".venv")
    assert find_interpreter(member, {}) == Interpreter(shared / "bin" / "python", ".venv")
    own = environment(member / "venv")
    assert find_interpreter(member, {}) == Interpreter(own / "bin" / "python", "venv")


def test_environment_in_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {".git": "", "pyproject.toml": '[tool.uv.workspace]\nmembers = ["*"]\n'})
    environment(tmp_path / ".venv")
    (tmp_path / "mine").mkdir()
    assert find_interpreter(tmp_path / "mine", {}).source == "uv"
    owner = "codex_multi_role.checks.environments.owner_of"
    monkeypatch.setattr(owner, lambda folder: folder != tmp_path)
    assert find_interpreter(tmp_path / "mine", {}).source == OWN


@pytest.mark.parametrize(
    ("members", "found"), [('["packages/*"]', "uv"), ('["packages/foo"]', "uv"), ('["libs/*"]', OWN), ("[]", OWN)]
)
def test_members_of_uv_workspace_share_its_environment(tmp_path: Path, members: str, found: str) -> None:
    """``uv init`` makes each member a repository of its own if no folder above is one."""
    member = tmp_path / "packages/foo"
    write_files(member, {".git": ""})
    (tmp_path / "pyproject.toml").write_text(f"[tool.uv.workspace]\nmembers = {members}\n")
    environment(tmp_path / ".venv")
    assert find_interpreter(member, {}).source == found
    (member / "src").mkdir()
    assert find_interpreter(member / "src", {}).source == found


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
    with pytest.raises(UsageError, match="is not a Python executable"):
        find_interpreter(tmp_path, {}, tmp_path / "nowhere")


@pytest.mark.real
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


@pytest.mark.real
@pytest.mark.parametrize("printed", ["", "{}", "[1]", '{"version": "3", "packages": null, "roots": []}', "hello"])
def test_program_that_is_not_python_is_named(tmp_path: Path, printed: str) -> None:
    """A broken environment is the user's to recreate, not an unexpected error of ours."""
    script = f"#!/bin/sh\necho '{printed}'\n"
    broken = Interpreter(environment(tmp_path / "broken", script) / "bin" / "python", ".venv")
    judged = inspect(broken, tmp_path, {}, no_sandbox)
    assert judged.problem == (
        f"the Python that runs the tests (.venv: {broken.path}) cannot be started: "
        "it does not describe itself as a Python does"
    )
    assert judged.hint == f"Recreate the environment, or name another Python with --python: {broken.path}"


@pytest.mark.real
def test_environment_may_print_lines_of_its_own(tmp_path: Path) -> None:
    script = f'#!/bin/sh\necho "welcome"; exec {sys.executable} "$@"\n'
    chatty = Interpreter(environment(tmp_path / "chatty", script) / "bin" / "python", ".venv")
    assert inspect(chatty, tmp_path, {}, no_sandbox).problem == ""


@pytest.mark.parametrize(
    ("name", "text", "unmet"),
    [
        ("pyproject.toml", '[project]\ndependencies = ["click", "not-there-x>=2"]\n', "not-there-x>=2"),
        ("pyproject.toml", '[project]\ndependencies = ["click>=999"]\n', "click>=999"),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.9"\nnot-there-x = "*"\n', "not-there-x"),
        ("requirements.txt", "# x\n-r more.txt\nclick\nnot-there-x==1 --hash=sha256:0 \\\n", "not-there-x==1"),
        ("requirements.txt", "click\nblack>=999\nFlake8==0\npylint\npre-commit\nmypy<0  # no test needs them\n", ""),
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


@pytest.mark.real
def test_copy_with_its_own_environment_uses_it(tmp_path: Path, make_context: MakeContext) -> None:
    """As a setup makes it: the run's Python may import the code of the user's tree. It is not used if it is worse."""
    project = environment(tmp_path / "project/.venv").parent
    python = inspect(find_interpreter(project, {}), project, {}, no_sandbox)
    context = replace(make_context({}), python=python)
    root = context.workspace.root
    assert interpreter_of(context) == python
    own = environment(root / ".venv") / "bin/python"
    found = interpreter_of(context)
    assert (found.path, found.project, found.problem) == (own, root, "")
    assert interpreter_of(replace(context, python=replace(python, source="--python"))).path == python.path
    own.write_text(NO_PYTEST)
    assert interpreter_of(context) == python
    assert interpreter_of(replace(context, python=replace(python, problem="also bad"))).path == own


def test_pytest_by_its_name_is_the_projects(tmp_path: Path) -> None:
    python = Interpreter(environment(tmp_path / "venv") / "bin" / "python", "venv")
    path = f"/other/bin:{sys.prefix}/bin:/usr/bin"
    active = python.activate({"PATH": path, "VIRTUAL_ENV": "/other", "PYTHONHOME": "/x"})
    assert active == {"PATH": f"{tmp_path}/venv/bin:/usr/bin", "VIRTUAL_ENV": f"{tmp_path}/venv"}


def _measuring(folder: Path) -> TeamFolder:
    """A team whose flow measures the coverage of a file."""
    team = with_flow(TeamFolder(folder, {"one": {}}, {}), MEASURING)
    (team.workspace / "tests").mkdir()
    for name, text in SIGN.items():
        (team.workspace / name).write_text(text)
    return team


@pytest.mark.real
def test_run_says_which_python_runs_its_tests(tmp_path: Path) -> None:
    team = _measuring(tmp_path)
    python = environment(team.workspace / "venv") / "bin" / "python"
    assert team.run(flow="own", test_sandbox=True).outcome == "measured"
    version = ".".join(map(str, sys.version_info[:3]))
    assert team.of_type("run_started")[0]["python"] == {"path": str(python), "version": version, "source": "venv"}


@pytest.mark.real
def test_run_stops_before_first_turn_if_python_lacks_pytest(tmp_path: Path) -> None:
    team = _measuring(tmp_path)
    environment(team.workspace / "venv", NO_PYTEST)
    with pytest.raises(UsageError, match="has no pytest and no coverage"):
        team.run(flow="own")
    assert not team.runs.exists()


@pytest.mark.real
def test_tests_after_turns_need_a_python_that_has_pytest(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {"sandbox": "workspace-write"}}, {"one": [say()]})
    environment(team.workspace / ".venv", NO_PYTEST)
    assert team.run().exit_code == 1  # without tests
    with pytest.raises(UsageError, match="has no pytest and no coverage"):
        team.run(run_tests=True)
    assert len(list(team.runs.glob("2*"))) == 1


@pytest.mark.real
@pytest.mark.parametrize("command", ["pytest -q", "python -m pytest"])
def test_command_that_starts_pytest_needs_one_in_the_project(tmp_path: Path, command: str) -> None:
    team = TeamFolder(tmp_path, {"one": {"sandbox": "workspace-write"}}, {"one": [say()]})
    environment(team.workspace / ".venv", NO_PYTEST)
    with pytest.raises(UsageError, match="has no pytest and no coverage"):
        team.run(run_tests=True, pytest_cmd=command)
    assert not team.runs.exists()


@pytest.mark.long
def test_other_command_is_run_with_python_reported(tmp_path: Path) -> None:
    """What it starts is not known, but ``python`` is the project's, and no other environment's pytest is found."""
    turn = say(files=[{"path": "a.txt", "content": "x"}])
    team = TeamFolder(tmp_path, {"one": {"sandbox": "workspace-write", **APPLIES}}, {"one": [turn]})
    environment(team.workspace / ".venv", NO_PYTEST)
    team.run(run_tests=True, pytest_cmd="sh -c 'command -v python pytest'")
    assert team.of_type("run_started")[0]["python"]["version"] == "3.9.1"
    output = (team.runs / "latest" / "tests" / "001" / "pytest_output.txt").read_text().splitlines()
    assert output[0] == f"{team.workspace}/.venv/bin/python"
    assert f"{sys.prefix}/bin/pytest" not in output


@pytest.mark.long
def test_only_what_measures_needs_coverage(tmp_path: Path) -> None:
    """Many projects have pytest without it."""
    team = TeamFolder(tmp_path / "team", {"one": {"sandbox": "workspace-write"}}, {"one": [say()]})
    environment(team.workspace / ".venv", NO_COVERAGE)
    assert team.run(run_tests=True).outcome == "cycles_used_up"
    measuring = _measuring(tmp_path)
    environment(measuring.workspace / "venv", NO_COVERAGE)
    with pytest.raises(UsageError, match="has no coverage"):
        measuring.run(flow="own")


@pytest.mark.real
def test_inspection_that_nobody_waits_for_is_stopped(tmp_path: Path) -> None:
    slow = Interpreter(environment(tmp_path / "slow", "#!/bin/sh\nexec sleep 600\n") / "bin" / "python", "venv")
    stopping = Event()
    stopping.set()
    with pytest.raises(RunInterrupted):
        inspect(slow, tmp_path, {}, no_sandbox, stopping)


@pytest.mark.real
def test_doctor_says_which_python_runs_the_tests(tmp_path: Path) -> None:
    environment(tmp_path / "venv", NO_PYTEST)
    done = console("doctor", "-c", "model_provider=ollama", "--json", folder=tmp_path)
    (found,) = [SimpleNamespace(**each) for each in json.loads(done.stdout) if each["name"] == "tests"]
    assert (done.returncode, found.ok) == (2, False)
    assert found.advice == f"Run: {tmp_path}/venv/bin/python -m pip install pytest coverage"


def test_module_loaded_meanwhile_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of the run imports the journal while the interpreter is described."""

    class Name(str):
        def startswith(self, *_: object) -> bool:
            monkeypatch.setitem(sys.modules, "imported_meanwhile", sys)
            return False

    monkeypatch.setitem(sys.modules, Name("before"), sys)
    assert described()["version"]


def test_garbage_collected_meanwhile_does_no_harm() -> None:
    """What is collected while the loaded modules are listed may import or let another thread do so."""
    seen: list[str] = []

    def load(phase: str, _: dict[str, int]) -> None:
        seen.append(name := f"loaded_by_garbage_{len(seen)}")
        sys.modules[name] = sys

    thresholds = gc.get_threshold()
    gc.callbacks.append(load)
    gc.set_threshold(1)
    try:
        assert described()["version"]
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(load)
        for name in seen:
            del sys.modules[name]
