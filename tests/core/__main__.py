"""Run the tests of the core, in a copy that has no extensions.

python -m tests.core                        all of them
python -m tests.core -n 2 tests/engine      pytest's arguments, such as a room
python -m tests.core --minimal              in a new environment without what only extensions need
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from tests.core.without_extensions import PACKAGE, TOP, copy_without_extensions, environment
from tests.support.uv_like_pip import uv_like_pip

DOCUMENTS = ("docs", "examples", "mkdocs.yml", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
INSTALLATION = ("Dockerfile", ".dockerignore", ".pre-commit-hooks.yaml", ".github", "LICENSE")
NAMES = (
    *PACKAGE,
    "tests",
    "schemas",
    "benchmarks",
    "action.yml",
    "templates",
    "pyproject.toml",
    *DOCUMENTS,
    *INSTALLATION,
)


MINIMAL = "--minimal"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="core-") as name:
        folder = Path(name)
        arguments = [each for each in sys.argv[1:] if each != MINIMAL]
        copy = copy_without_extensions(folder / "copy", NAMES)
        python = _minimal_python(folder / "environment", copy) if MINIMAL in sys.argv else sys.executable
        command = [python, "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={copy}", *arguments]
        return subprocess.run(command, cwd=copy, env=_first_on_path(python, environment(copy)), check=False).returncode


def _minimal_python(folder: Path, copy: Path) -> str:
    """The Python of a new environment with ``copy``, the dependencies of the core and the tools of its tests."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    every = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    packages = [each for each in every if not each.startswith("codex-multi-role")]
    python = str(folder / "bin/python")
    uv, variables = [sys.executable, "-m", "uv"], {**os.environ, **uv_like_pip()}
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, folder], env=variables, check=True)
    install = [*uv, "pip", "install", "--quiet", "--python", python]
    subprocess.run([*install, *packages], env=variables, check=True)
    subprocess.run([*install, "--no-deps", "-e", copy], env=variables, check=True)
    return python


def _first_on_path(python: str, variables: dict[str, str]) -> dict[str, str]:
    path = os.pathsep.join([str(Path(python).parent), variables.get("PATH", os.defpath)])
    return {**variables, "PATH": path, "VIRTUAL_ENV": str(Path(python).parents[1])}


if __name__ == "__main__":
    sys.exit(main())
