from __future__ import annotations

import json
from pathlib import Path

from codex_multi_role.run_folder import Owner
from tests.support.console import console
from tests.support.recorded_runs import make_run


def test_no_runs_yet(tmp_path: Path) -> None:
    done = console("runs", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "There are no runs in runs.\n")
    assert json.loads(console("runs", "--json", folder=tmp_path).stdout) == []
    assert list(tmp_path.iterdir()) == []


def test_table_has_one_line_of_any_length_per_run(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first")
    make_run(tmp_path / "runs", "second", goal="long " * 100, status="succeeded", outcome="done")
    heading, first, second = console("runs", folder=tmp_path).stdout.splitlines()
    assert heading.split() == ["run", "started", "flow", "status", "outcome", "turns", "tokens", "goal"]
    assert first.startswith("first")
    assert "cycles_used_up" in first
    assert "2468" in first
    assert second.split()[0] == "second"
    assert len(second) > 100


def test_machines_get_the_records(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first")
    (run,) = json.loads(console("runs", "--json", folder=tmp_path).stdout)
    assert (run["run_id"], run["status"], run["exit_code"]) == ("first", "ended", 1)


def test_run_whose_process_is_gone_was_killed(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first", status="running", exit_code=None, totals={})
    folder.owner_path.write_text('{"pid": 1, "start_time": 1.5}')
    line = console("runs", folder=tmp_path).stdout.splitlines()[1]
    assert " killed " in line
    assert "2468" in line


def test_run_whose_process_lives_is_running(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first", status="running", exit_code=None)
    owner = Owner(folder.owner_path)
    owner.acquire()
    output = console("runs", folder=tmp_path).stdout
    owner.release()
    assert " running " in output


def test_one_unreadable_run_does_not_hide_the_others(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first")
    make_run(tmp_path / "runs", "second").record_path.write_text("{")
    output = console("runs", folder=tmp_path).stdout
    assert "first" in output
    assert "unreadable" in output
