"""The address of a database as an option of a run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from codex_multi_role import RunOptions
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.machines.run_options import MachineOptions
from tests.support.batches import OF_TEAM, one_role
from tests.support.console import console
from tests.support.teams import read

URL = "postgresql://runs@db/runs?sslmode=require"


def test_run_remembers_the_address() -> None:
    options = RunOptions(goal="g", workspace=Path("/w"), runs_dir=Path("/r"), added=[MachineOptions(database_url=URL)])
    record = json.loads(json.dumps(options.as_record()))
    assert record["database_url"] == URL
    assert RunOptions.from_record(record) == options == replace(options, goal="g")
    assert options == replace(options.changed(cycles=1), cycles=3)


def test_run_without_one_records_nothing_of_it() -> None:
    assert "database_url" not in RunOptions().as_record()


def test_wrong_address_is_refused() -> None:
    with pytest.raises(UsageError, match="the database URL has no scheme"):
        RunOptions(added=[MachineOptions(database_url="here")])
    with pytest.raises(UsageError, match='did you mean "database_url"'):
        RunOptions(databse_url=URL)  # type: ignore[call-arg]


@pytest.mark.usefixtures("scripted_codex")
def test_run_stores_its_journal_there(tmp_path: Path) -> None:
    team = one_role(tmp_path)
    url = f"sqlite:///{tmp_path}/runs.sqlite"
    done = console("run", "--goal", "reach it", *OF_TEAM, "--database-url", url, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read(team.runs / "latest/run.json")["options"]["database_url"] == url
    assert not (team.runs / "latest/journal.sqlite").exists()
    assert console("resume", "--cycles", "2", folder=tmp_path).returncode == 0
