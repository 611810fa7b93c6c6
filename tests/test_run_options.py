"""The options of a run: declared in one place, remembered wherever it is resumed, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role import RunOptions
from codex_multi_role.errors import UsageError
from codex_multi_role.option import Option
from codex_multi_role.run_options import MOST_REPAIRS, all_options
from tests.support.plugins import distribution

TEXT = st.text(st.characters(codec="utf-8"))
ABSOLUTE = st.sampled_from([Path("/a/b"), Path("/a b/ü"), Path("/")])
KINDS: dict[type, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    str: TEXT,
    Path: ABSOLUTE,
    tuple: st.lists(TEXT, max_size=3).map(tuple),
    dict: st.dictionaries(TEXT, TEXT, max_size=3),
}
SET: dict[str, st.SearchStrategy[Any]] = {
    "goal": TEXT.filter(str.strip),
    "worktree": st.just(True),
    "database_url": st.sampled_from([None, "sqlite:////a/b.sqlite"]),
    "replay": st.none(),
    "playbook": st.none() | TEXT.filter(lambda text: not {*"/."} & {*text}),  # a path is remembered in full
}
"""Those that take only some texts, or exclude others."""


def values(option: Option) -> st.SearchStrategy[Any]:
    """What the option accepts."""
    kind = st.sampled_from(option.choices) if option.choices else KINDS.get(option.kind, st.nothing())
    if option.range is not None:
        least, most = option.range.minimum, min(option.range.maximum, 10**9)
        whole = st.integers(int(least), int(most))
        kind = whole if option.kind is int else st.floats(least, most, exclude_min=option.range.above)
    return st.none() | kind if option.is_optional else kind


OPTIONS = st.deferred(
    lambda: st.fixed_dictionaries({name: SET.get(name, values(each)) for name, each in all_options().items()})
)


def remembered(options: RunOptions) -> RunOptions:
    return RunOptions.from_record(json.loads(json.dumps(options.as_record())))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cycles": 0}, "cycles must be at least 1, not 0"),
        ({"repair_attempts": -1}, "repair_attempts must be at least 0 and at most 10, not -1"),
        ({"repair_attempts": MOST_REPAIRS + 1}, "repair_attempts must be at least 0 and at most 10, not 11"),
        ({"max_processes": 0}, "max_processes must be at least 1, not 0"),
        ({"test_seconds": 0}, "test_seconds must be more than 0 and at most 86400, not 0"),
        ({"test_seconds": -1.5}, "not -1.5"),
        ({"test_seconds": float("nan")}, "not nan"),
        ({"max_seconds": float("inf")}, "not inf"),
        ({"test_seconds": 1e308}, "not 1e.308"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        RunOptions(**{"goal": "g", **changes})
    with pytest.raises(UsageError, match=words):
        replace(RunOptions(goal="g"), **changes)


@given(given=OPTIONS)
def test_run_remembers_its_options(given: dict[str, Any]) -> None:
    options = RunOptions(**given)
    assert remembered(options) == options


def test_paths_are_remembered_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = RunOptions(goal="g", workspace=Path("shop"), roles=Path("../roles"), codex_bin=Path("bin/codex"))
    record = options.as_record()
    monkeypatch.chdir("/")
    found = RunOptions.from_record(record)
    assert (found.place.workspace, found.place.runs_dir, found.answers.codex_bin) == (
        tmp_path / "shop",
        tmp_path / "runs",
        tmp_path / "bin/codex",
    )
    assert found.place.roles == tmp_path.parent / "roles"


def test_options_of_a_run_older_than_an_option_get_its_default() -> None:
    record = RunOptions(goal="g", cycles=7).as_record()
    del record["test_seconds"], record["model"]
    assert (RunOptions.from_record(record).cycles, RunOptions.from_record(record).tests.test_seconds) == (7, 300.0)


def test_option_that_nothing_adds_is_refused_unless_it_has_no_value() -> None:
    record = RunOptions(goal="g").as_record()
    assert RunOptions.from_record({**record, "from_the_past": None, "not_given": ""}).goal == "g"
    with pytest.raises(UsageError, match="no installed extension adds: from_the_future"):
        RunOptions.from_record({**record, "from_the_future": 1})


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
