"""The wheel works as users install it: by pip, uvx and pipx, from a file and from git, with an empty home.

It is built from the files that the image is built from, and where Docker works, so is the image.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.console import completed
from tests.support.uv_like_pip import uv_like_pip
from tests.support.workspaces import commit_all, git

pytestmark = pytest.mark.extensions  # the wheel has them
TOP = Path(__file__).parents[1]
PROGRAM = "codex-multi-role"
DEADLINE_SECONDS = 280
HOOKS = yaml.safe_load((TOP / ".pre-commit-hooks.yaml").read_text())
needs_network = pytest.mark.long
"""Installs the dependencies anew."""


def image_context() -> set[str]:
    """The names in the repository's folder that .dockerignore lets through."""
    lines = (TOP / ".dockerignore").read_text().splitlines()
    return {line.removeprefix("!") for line in lines if line.startswith("!")}


def without_packages_of_ours(folder: Path) -> dict[str, str]:
    """An environment with an empty home, without anything that is installed for these tests."""
    home = folder / "home"
    home.mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "LANG", "LC_"))}
    return {**kept, **uv_like_pip(), "HOME": str(home), "PATH": os.defpath, "UV_PYTHON": sys.executable}


def run(*command: object, folder: Path, environment: dict[str, str], code: int = 0) -> str:
    done = completed([*map(str, command)], folder, environment, seconds=DEADLINE_SECONDS)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def try_out(*program: object, folder: Path, environment: dict[str, str]) -> None:
    """See that ``program`` is ours, and that its demonstration works in an empty folder, which stays empty."""
    folder.mkdir()
    assert run(*program, "--version", folder=folder, environment=environment).startswith(f"{PROGRAM}, version ")
    said = run(*program, "demo", folder=folder, environment={**environment, "TMPDIR": str(folder.parent)})
    assert "5 passed" in said
    [made] = folder.parent.glob(f"{PROGRAM}-demo-*")
    assert (made / "workspace/roman.py").is_file()
    assert (made / "runs/latest/report.html").is_file()
    assert [*folder.iterdir()] == []


def tool(name: str) -> str:
    """The installer of that name beside this Python, or on PATH."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return found or pytest.skip(f"{name} is not installed")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with no more than what the wheel needs, and the hooks."""
    folder = tmp_path_factory.mktemp("source")
    for name in {*image_context(), ".pre-commit-hooks.yaml"}:
        if (TOP / name).is_dir():
            shutil.copytree(TOP / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(TOP / name, folder)
    commit_all(folder)
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True, timeout=DEADLINE_SECONDS)
    [made] = folder.glob("*.whl")
    return made


@needs_network
def test_pip_installs_a_wheel_that_works(wheel: Path, tmp_path: Path) -> None:
    environment = without_packages_of_ours(tmp_path)
    run(sys.executable, "-m", "venv", tmp_path / "venv", folder=tmp_path, environment=environment)
    binaries = tmp_path / "venv/bin"
    run(binaries / "pip", "install", "--quiet", wheel, folder=tmp_path, environment=environment)
    try_out(binaries / PROGRAM, folder=tmp_path / "shop", environment=environment)
    said = run(binaries / PROGRAM, "doctor", folder=tmp_path / "shop", environment=environment, code=2)
    assert re.findall(r"^problem +(\S+)", said, re.MULTILINE) == ["login"]


@needs_network
@pytest.mark.parametrize("place", ["wheel", "git"])
def test_uvx_runs_it_from(place: str, wheel: Path, source: Path, tmp_path: Path) -> None:
    environment = without_packages_of_ours(tmp_path)
    origin = wheel if place == "wheel" else f"git+{source.as_uri()}"
    try_out(tool("uvx"), "--quiet", "--from", origin, PROGRAM, folder=tmp_path / "shop", environment=environment)


@needs_network
@pytest.mark.parametrize("place", ["wheel", "git"])
def test_pipx_installs_it_from(place: str, wheel: Path, source: Path, tmp_path: Path) -> None:
    environment = without_packages_of_ours(tmp_path)
    origin = wheel if place == "wheel" else f"git+{source.as_uri()}"
    run(tool("pipx"), "install", "--python", sys.executable, origin, folder=tmp_path, environment=environment)
    try_out(tmp_path / "home/.local/bin" / PROGRAM, folder=tmp_path / "shop", environment=environment)


@needs_network
def test_pipx_runs_the_wheel_without_installing_it(wheel: Path, tmp_path: Path) -> None:
    environment = without_packages_of_ours(tmp_path)
    program = (tool("pipx"), "run", "--python", sys.executable, "--spec", wheel, PROGRAM)
    said = run(*program, "--version", folder=tmp_path, environment=environment)
    assert f"{PROGRAM}, version " in said


@needs_network
def test_image_runs_without_rights_of_its_own(tmp_path: Path) -> None:
    docker = tool("docker")
    if subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        pytest.skip("no Docker daemon can be reached")
    everything = dict(os.environ)
    run(docker, "build", "--quiet", "--tag", PROGRAM, TOP, folder=tmp_path, environment=everything)
    said = run(
        *(docker, "run", "--rm", PROGRAM, "--playbook", "roman-numerals", "--no-test-sandbox"),
        folder=tmp_path,
        environment=everything,
    )
    assert "5 passed" in said
    who = run(docker, "run", "--rm", "--entrypoint", "id", PROGRAM, "-u", folder=tmp_path, environment=everything)
    assert who.strip() != "0"


@needs_network
def test_pre_commit_stops_a_commit_of_an_invalid_team(source: Path, tmp_path: Path) -> None:
    environment = without_packages_of_ours(tmp_path)
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    project, program = tmp_path / "project", (tool("pre-commit"), "run", "--all-files")
    team = project / "roles/catalog.yaml"
    team.parent.mkdir(parents=True)
    team.write_text("version: 1\nroles: [{name: one, prompt_text: Do it.}]\n")
    hooks = [{"id": each["id"]} for each in HOOKS]
    revision = git(source, "rev-parse", "HEAD").strip()
    config = {"repos": [{"repo": str(source), "rev": revision, "hooks": hooks}]}
    (project / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    git(project, "init", "--quiet")
    git(project, "add", ".")
    assert run(*program, folder=project, environment=environment).count("Passed") == 2
    team.write_text("version: 1\nroles: [{nam: one, prompt_text: Do it.}]\n")
    said = run(*program, folder=project, environment=environment, code=1)
    assert said.count('did you mean "name"?') == 2


def test_each_hook_names_a_command_of_ours() -> None:
    from codex_multi_role.cli.main import group

    for hook in HOOKS:
        program, name, action = hook["entry"].split()
        assert (program, action) == (PROGRAM, "validate")
        assert name in group.targets


def test_image_is_built_from_what_exists_and_drops_its_rights() -> None:
    assert all((TOP / name).exists() for name in image_context())
    users = re.findall(r"^USER (\S+)$", (TOP / "Dockerfile").read_text(), re.MULTILINE)
    assert users[-1:] not in ([], ["root"])


def test_release_uses_actions_by_their_commits() -> None:
    used = re.findall(r"uses: (\S+)", (TOP / ".github/workflows/release.yml").read_text())
    assert used
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in used)
