"""Verdicts on real projects: does a run judge a right, a wrong and no change, and deleted tests as a person would?

    pip download --no-deps --no-binary :all: boltons==25.0.0 …        the projects of `PROJECTS`; unpack each archive
    python benchmarks/verdicts.py FOLDER --python PYTHON

``FOLDER`` has the unpacked archives; ``PYTHON`` has pytest < 8.4 (a hook of boltons) and hypothesis, for all of them.
A scripted team of one role says DONE after its change. Prints the exit code, the tests before and after, and what is
new; the exit code is 1 if a verdict is wrong. Nine tests of boltons fail before and after, in and out of the sandbox.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml

RIGHT, WRONG, NONE, DELETES = "right", "wrong", "none", "deletes"
EXPECTED = {RIGHT: 0, WRONG: 1, NONE: 0, DELETES: 1}
ROLE = {"name": "one", "prompt_text": "Work.", "behaviors": {"can_finish": True, "apply_files": True}}


@dataclass(frozen=True)
class Project:
    """``function`` of the module ``code`` is used by its tests; ``tests`` is one file of them."""

    name: str
    code: str
    function: str
    tests: str


PROJECTS = (
    Project("boltons-25.0.0", "boltons/mathutils.py", "clamp", "tests/test_mathutils.py"),
    Project("more_itertools-11.2.1", "more_itertools/recipes.py", "take", "tests/test_recipes.py"),
    Project("parso-0.8.7", "parso/utils.py", "split_lines", "test/test_utils.py"),
    Project("pyrsistent-0.20.0", "pyrsistent/_helpers.py", "thaw", "tests/freeze_test.py"),
    Project("tomlkit-0.13.3", "tomlkit/api.py", "loads", "tests/test_api.py"),
    Project("toolz-1.2.0", "toolz/dicttoolz.py", "merge_with", "toolz/tests/test_dicttoolz.py"),
)


def change(project: Project, kind: str, root: Path) -> dict[str, str]:
    """The files that the role writes, by their paths."""
    code = (root / project.code).read_text(encoding="utf-8")
    broken = code.replace(f"def {project.function}(", f"def renamed_{project.function}(", 1)
    changes = {
        RIGHT: {project.code: f"{code}\n# a comment\n"},
        WRONG: {project.code: broken},
        DELETES: {project.tests: '"""Nothing is left."""\n'},
    }
    return changes.get(kind, {})


def judged(project: Project, kind: str, root: Path, python: Path) -> Iterator[str]:
    """Run the team in ``root``; yields what is shown, and raises `AssertionError` for a wrong verdict."""
    subprocess.run(["git", "init", "--quiet", "."], cwd=root, check=True)
    files = [
        {"path": path, "content": f"{{% raw %}}{text}{{% endraw %}}"}
        for path, text in change(project, kind, root).items()
    ]
    with tempfile.TemporaryDirectory() as name:
        roles = Path(name)
        (roles / "catalog.yaml").write_text(yaml.safe_dump({"version": 1, "roles": [ROLE]}))
        answer = {"json": {"summary": kind, "status": "DONE", "files": files}}
        (roles / "playbook.yaml").write_text(yaml.safe_dump({"name": kind, "roles": {"one": [answer]}}))
        options = ["--goal", kind, "--cycles", "1", "--roles", str(roles), "--run-id", "one", "--quiet"]
        options += ["--playbook", str(roles / "playbook.yaml"), "--python", str(python)]
        command = [sys.executable, "-m", "codex_multi_role", *options]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    before, after = (result(root / "runs/one" / part) for part in ("baseline", "tests/001"))
    yield f"exit {done.returncode}  before {before.get('passed')} passed, {before.get('failed')} failed"
    if after:
        yield f"after {after['passed']} passed, {after['failed']} failed, {after.get('new_failures', 'unknown')} new"
    assert done.returncode == EXPECTED[kind], done.stderr


def result(folder: Path) -> Mapping[str, Any]:
    """A test result; empty if the tests did not run."""
    path = folder / "result.json"
    found: Mapping[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


@click.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("--python", required=True, type=click.Path(exists=True, path_type=Path))
def main(folder: Path, python: Path) -> None:
    wrong = 0
    for project in PROJECTS:
        for kind in EXPECTED:
            with tempfile.TemporaryDirectory() as name:
                root = shutil.copytree(folder / project.name, Path(name) / project.name)
                try:
                    shown = "  ".join(judged(project, kind, root, python.absolute()))
                except AssertionError as error:
                    wrong, shown = wrong + 1, f"WRONG VERDICT: {error}"
            click.echo(f"{project.name:22} {kind:8} {shown}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
