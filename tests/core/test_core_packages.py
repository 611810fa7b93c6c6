"""The packages of the core are enough for a team; what needs another says which extra brings it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.core.commands import Ends, run_commands
from tests.core.without_extensions import TOP
from tests.support.catalogs import files_of_skill, seven_zipped
from tests.support.uv_like_pip import uv_like_pip

pytestmark = pytest.mark.real

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {missing}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Missing())
"""
TEAM = "--goal numbers --playbook roman-numerals"
TEAM_WITH = "version: 1\nroles: [{{name: one, prompt_text: Do it., {}}}]\n"
PATTERN, PACKED = "output_schema: {properties: {id: {pattern: '^T[0-9]$'}}}", "skills: [draw]"
INSTALL = "hint: Install it: pip install 'codex-multi-role[{}]'\n"


def packages_of_core() -> set[str]:
    """What pip installs for codex-multi-role without an extra, as far as it is installed here."""
    found, left = {"codex-multi-role"}, ["codex-multi-role"]
    while left:
        needed = map(Requirement, requires(left.pop()) or ())
        names = {
            canonicalize_name(each.name) for each in needed if not each.marker or each.marker.evaluate({"extra": ""})
        }
        left += names - found
        found |= names
    return found


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (folder := tmp_path / "workspace").mkdir()
    return folder


@pytest.fixture
def run(workspace: Path) -> Callable[..., Ends]:
    """Run commands in a process that cannot import any other package than those of the core."""
    known = packages_of_core()
    missing = {
        module
        for module, names in packages_distributions().items()
        if module.isidentifier() and not known & {canonicalize_name(name) for name in names}
    }
    return partial(run_commands, workspace, env=dict(os.environ), before=WITHOUT.format(missing=missing))


def see_a_team_work(run: Callable[..., Ends]) -> None:
    first, second, story, page, team, words = run(
        f"{TEAM} --cycles 1 --json", "resume --cycles 3 --playbook roman-numerals", "show", "report", "init", "--help"
    )
    assert json.loads(first[1].splitlines()[-1])["outcome"] == "cycles_used_up", first
    assert (first[0], second[0]) == (1, 0), second
    assert "Done: integrator said DONE" in second[2]
    for code, _, said in (story, page, team, words):
        assert code == 0, said
    assert all(f"\n  {command} " in words[1] for command in ("batch", "serve", "rerun", "diff"))


def test_team_works_with_the_packages_of_the_core(run: Callable[..., Ends]) -> None:
    see_a_team_work(run)


@pytest.mark.long
def test_team_works_in_an_environment_of_its_own(workspace: Path, tmp_path: Path) -> None:
    """Installed without an extra, as pip does; this needs the network, or packages that uv has kept."""
    uv, variables = [sys.executable, "-m", "uv"], {**os.environ, **uv_like_pip()}
    environment = tmp_path / "environment"
    python = str(environment / "bin/python")
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, environment], check=True)
    subprocess.run([*uv, "pip", "install", "--quiet", "--python", python, "-e", TOP], env=variables, check=True)
    env = {**os.environ, "PATH": f"{environment / 'bin'}:{os.defpath}", "VIRTUAL_ENV": str(environment)}
    see_a_team_work(partial(run_commands, workspace, env=env, python=python))


@pytest.mark.parametrize(
    ("command", "module", "extra"),
    [
        ("serve", "h11", "web"),
        ("flows validate document", "networkx", "document"),
        ("flows validate plan-solve", "mpmath", "plan-solve"),
    ],
)
def test_missing_extra_is_named(run: Callable[..., Ends], command: str, module: str, extra: str) -> None:
    [(code, _, said)] = run(command)
    assert code == 2, said
    assert f" needs {module}, which is not installed\n" in said
    assert said.endswith(INSTALL.format(extra))


def test_missing_extra_of_a_team_is_named(run: Callable[..., Ends], workspace: Path) -> None:
    """A 7z archive and a pattern are found out in definitions."""
    (workspace / "roles/skills").mkdir(parents=True)
    (workspace / "roles/skills/draw.skill").write_bytes(seven_zipped(files_of_skill("draw")))
    for text, command, extra in ((PACKED, "roles validate", "7z"), (PATTERN, "--goal g --playbook auto", "patterns")):
        (workspace / "roles/catalog.yaml").write_text(TEAM_WITH.format(text))
        [(code, _, said)] = run(command)
        assert code == 2, said
        assert f"pip install 'codex-multi-role[{extra}]'" in said
