"""The exercise for the core works as written, and the commands of each folder name what exists."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.console import completed

TOP = Path(__file__).parents[1]
CONTRIBUTING = (TOP / "CONTRIBUTING.md").read_text()
PAGES = TOP / "docs/development"
EXERCISE = (PAGES / "how-to-add.md").read_text().partition("\n## Exercise\n")[2]
NEW_FILE = re.compile(r"New file `([^`]+)`:\n\n```python\n(.*?)```", re.DOTALL)
NEW_LINES = re.compile(r"^In `([^`]+)`, below `([^`]+)`:\n\n```text\n(.*?)```", re.DOTALL | re.MULTILINE)
FLOW = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
COMMANDS_OF_FOLDERS = re.compile(r"^\| (`[^|]+/`) \| `python -m pytest (tests/[^`|]+)` \|$", re.MULTILINE)
SECONDS = 60.0


def changed_copy(folder: Path) -> Path:
    """A copy of the package with what the exercise adds."""
    for name in ("codex_multi_role", "roles"):
        shutil.copytree(TOP / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path, content in NEW_FILE.findall(EXERCISE):
        assert not (folder / path).exists()
        (folder / path).write_text(content)
    for path, place, lines in NEW_LINES.findall(EXERCISE):
        text = (folder / path).read_text()
        assert text.count(f"{place}\n") == 1, f"{path}: {place}"
        (folder / path).write_text(text.replace(f"{place}\n", f"{place}\n{lines}"))
    return folder


def run(copy: Path, workspace: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "codex_multi_role", *arguments]
    variables = {**os.environ, "PYTHONPATH": str(copy), "PYTHONSAFEPATH": "1"}
    return completed(command, workspace, variables, seconds=SECONDS)


@pytest.mark.long
def test_exercise_works_as_written(tmp_path: Path) -> None:
    copy, workspace = changed_copy(tmp_path / "copy"), tmp_path / "workspace"
    flows = workspace / "roles/flows"
    flows.mkdir(parents=True)
    (workspace / "notes.md").write_text("one\ntwo\n")
    (workspace / "roles/catalog.yaml").write_text("version: 1\nroles: [{name: nobody, role_file: nobody.yaml}]\n")
    (workspace / "roles/nobody.yaml").write_text("name: nobody\nprompt_text: Nothing to do.\n")
    (flows / "exercise.yaml").write_text(FLOW.findall(EXERCISE)[0])

    bound = run(copy, workspace, "flows", "validate", "exercise")
    assert " in 1.0 s" in bound.stdout, bound
    done = run(copy, workspace, "--flow", "exercise", "--goal", "count", "--json", "--playbook", "roman-numerals")
    assert '"outcome": "long_enough"' in done.stdout, done
    assert run(copy, workspace, "where", "latest").stdout.startswith(str(workspace / "runs"))


def rooms() -> list[str]:
    """The folders of the core."""
    found = sorted(path.parent.name for path in (TOP / "codex_multi_role").glob("*/__init__.py"))
    return [name for name in found if name != "extensions"]


@pytest.mark.extensions  # a checkout without them lacks some of the files
def test_each_room_has_a_command_whose_paths_exist() -> None:
    commands = dict(COMMANDS_OF_FOLDERS.findall((PAGES / "tests.md").read_text()))
    for room in [*rooms(), "extensions"]:
        assert commands[f"`codex_multi_role/{room}/`"].split()[0] == f"tests/{room}"
    paths = re.findall(r"[\w./]+", " ".join([*commands, *commands.values()]))
    assert not [path for path in paths if not (TOP / path).exists()]


def test_contributing_fits_one_screen_and_names_each_room() -> None:
    assert len(CONTRIBUTING.splitlines()) <= 60
    for page in (CONTRIBUTING, (PAGES / "house.md").read_text()):
        assert not [room for room in rooms() if f"`{room}/`" not in page]
