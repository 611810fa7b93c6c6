"""The address of a database as an option of a run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from codex_multi_role import RunOptions
from codex_multi_role.errors import UsageError

URL = "postgresql://runs@db/runs?sslmode=require"


def test_run_remembers_the_address() -> None:
    options = RunOptions(goal="g", workspace=Path("/w"), runs_dir=Path("/r"), database_url=URL)
    record = json.loads(json.dumps(options.as_record()))
    assert record["database_url"] == URL
    assert RunOptions.from_record(record) == options == replace(options, goal="g")
    assert options.changed(database_url=None) == replace(options, added={})


def test_run_without_one_records_nothing_of_it() -> None:
    assert "database_url" not in RunOptions().as_record()


def test_wrong_address_is_refused() -> None:
    with pytest.raises(UsageError, match="the database URL has no scheme"):
        RunOptions(database_url="here")
    with pytest.raises(UsageError, match='did you mean "database_url"'):
        RunOptions(databse_url=URL)  # type: ignore[call-arg]
