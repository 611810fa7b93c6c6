"""An option is declared in one place: a field added there is an option everywhere."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.plugins import distribution

TOP = Path(__file__).parents[1]
FIELD = 'max_files: int | None = option(None, "Park the run after N files.", "N", range=Range(1), use=BOUNDING)'
DECLARED = f"    {FIELD}\n"
ADDED = f"""
from dataclasses import dataclass
from codex_multi_role.run_options import BOUNDING, AddedOptions, Range, Section, option

@dataclass(frozen=True, kw_only=True)
class Files(AddedOptions):
    section = Section.LIMITS
    {FIELD}
"""
BEFORE = "    prices: Path | None = option("
PROGRAM = """
import json, sys
from click import Context
from codex_multi_role import RunOptions, UsageError
from codex_multi_role.extensions.machines.batches.goal_line import GoalLine
from codex_multi_role.extensions.setup.json_schemas import schema_of
from codex_multi_role.cli.main import group
from codex_multi_role.run_options import Use, all_options, require_changeable
from tests.docs.option_keywords import option_keywords
from tests.docs.reference import PAGES

def refusal(**options):
    try:
        RunOptions(**options)
    except UsageError as error:
        return str(error)

def help_of(name):
    context = Context(group, info_name="codex-multi-role")
    return " ".join(group.get_command(context, name).get_help(context).split())

options = RunOptions.from_record(json.loads(json.dumps(RunOptions(max_files=7).as_record())))
json.dump({
    "record": options.as_keywords()["max_files"],
    "kept": [require_changeable({"max_files": 7}, use, "", {}) for use in (Use.RESUME, Use.FORK)],
    "refused": [refusal(max_files=0), refusal(max_files="7")],
    "help": {name: help_of(name) for name in ("run", "resume", "fork", "batch")},
    "goal line": GoalLine.model_validate({"goal": "g", "max_files": 7}).given("max_files"),
    "schemas": [schema_of(kind)["properties"]["max_files"]["description"] for kind in ("batch-goal", "settings")],
    "variable": next(row for row in PAGES["settings"]().splitlines() if "max-files" in row),
    "goal page": "`max_files`" in PAGES["goal-file"](),
    "api page": "`max_files`" in PAGES["python-api"](),
    "command": [*all_options()["max_files"].arguments(7)],
    "keyword": "    max_files: int | None\\n" in option_keywords(),
}, sys.stdout)
"""


def declare(folder: Path) -> None:
    """Add the option to a copy of ours."""
    file = folder / "codex_multi_role/run_options.py"
    file.write_text(file.read_text().replace(BEFORE, DECLARED + BEFORE, 1))


def add(folder: Path) -> None:
    """Install an extension with the option."""
    distribution(folder, "files", "codex_multi_role.run_options", ["files = added_files:Files"])
    (folder / "added_files.py").write_text(ADDED)


@pytest.mark.extensions  # the page of the Python API has theirs
@pytest.mark.real
@pytest.mark.parametrize("change", [declare, add])
def test_added_option_is_known_everywhere(change: Callable[[Path], None], tmp_path: Path) -> None:
    for name in ("codex_multi_role", "tests/docs", "tests/support", "docs", "roles"):
        shutil.copytree(TOP / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
    for name in ("tests/__init__.py", "tests/house.py", "tests/registered_names.py", "pyproject.toml"):
        shutil.copy(TOP / name, tmp_path / name)
    change(tmp_path)
    argv = [sys.executable, "-c", PROGRAM]
    found: dict[str, Any] = json.loads(subprocess.run(argv, cwd=tmp_path, capture_output=True, check=True).stdout)
    told = "Park the run after N files."
    shown = found.pop("help")
    assert all(f"--max-files N {told}" in text for text in shown.values())
    assert "Limits:" in shown["run"].split("--max-files")[0]
    assert found == {
        "record": 7,
        "kept": [None, None],
        "refused": ["max_files must be at least 1, not 0", "max_files must be a whole number, not '7'"],
        "goal line": 7,
        "schemas": [told, told],
        "variable": f"| `max-files` | `CODEX_MULTI_ROLE_MAX_FILES` | `--max-files` | {told} |",
        "goal page": True,
        "api page": True,
        "command": [["--max-files", "7"]],
        "keyword": change is declare,  # an extension's are given in their own type
    }
