"""The options of a run: what is refused, and that a run remembers them wherever it is resumed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role import RunOptions
from codex_multi_role.errors import UsageError
from codex_multi_role.run_options import MOST_REPAIRS

TEXT = st.text(st.characters(codec="utf-8"))
ABSOLUTE = st.sampled_from([Path("/a/b"), Path("/a b/ü"), Path("/")])
OPTIONS = st.builds(
    RunOptions,
    goal=TEXT.filter(str.strip),
    cycles=st.integers(1, 1000),
    flow=TEXT,
    inputs=st.dictionaries(TEXT, TEXT, max_size=3),
    workspace=ABSOLUTE,
    worktree=st.just(True),
    branch=st.none() | TEXT,
    workspace_copy=st.lists(TEXT, max_size=3).map(tuple),
    workspace_setup=st.none() | TEXT,
    roles=st.none() | ABSOLUTE,
    runs_dir=ABSOLUTE,
    run_id=st.none() | TEXT,
    model=st.none() | TEXT,
    repair_attempts=st.integers(0, MOST_REPAIRS),
    run_tests=st.booleans(),
    pytest_cmd=st.none() | TEXT,
    test_sandbox=st.booleans(),
    test_seconds=st.floats(0.001, 86_400),
    config=st.lists(TEXT, max_size=3).map(tuple),
    codex_bin=st.none() | ABSOLUTE,
    playbook=st.none() | TEXT,
    max_turns=st.none() | st.integers(1, 1000),
    max_tokens=st.none() | st.integers(1, 10**9),
    max_seconds=st.none() | st.floats(0.001, 1e6),
    max_cost=st.none() | st.floats(0.001, 1e6),
    prices=st.none() | ABSOLUTE,
    max_processes=st.none() | st.integers(1, 64),
    yes=st.booleans(),
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
        ({"test_seconds": float("inf")}, "not inf"),
        ({"test_seconds": 1e308}, "not 1e.308"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        RunOptions(**{"goal": "g", **changes})
    with pytest.raises(UsageError, match=words):
        replace(RunOptions(goal="g"), **changes)


@given(options=OPTIONS)
def test_run_remembers_its_options(options: RunOptions) -> None:
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
