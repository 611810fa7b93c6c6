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
from codex_multi_role.option import Option
from codex_multi_role.run_options import MOST_REPAIRS, all_options

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
