"""Run the tests of the core, in a copy that has no extensions.

python -m tests.core                        all of them
python -m tests.core -n 2 tests/engine      pytest's arguments, such as a room
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.core.without_extensions import PACKAGE, copy_without_extensions, environment

DOCUMENTS = ("docs", "examples", "mkdocs.yml", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
INSTALLATION = ("Dockerfile", ".dockerignore", ".pre-commit-hooks.yaml", ".github", "LICENSE")
NAMES = (
    *PACKAGE,
    "tests",
    "benchmarks",
    "action.yml",
    "templates",
    "pyproject.toml",
    *DOCUMENTS,
    *INSTALLATION,
)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="core-") as name:
        copy = copy_without_extensions(Path(name), NAMES)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={copy}", *sys.argv[1:]]
        return subprocess.run(command, cwd=copy, env=environment(copy), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
