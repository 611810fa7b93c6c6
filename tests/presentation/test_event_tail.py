"""All runs, looked at again and again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import psutil

from codex_multi_role.presentation.event_tail import RunsReader
from codex_multi_role.presentation.recorded import Records
from codex_multi_role.run_folder import RunFolder
from tests.support.recorded_runs import make_run, record


def make_live(folder: RunFolder) -> None:
    """As if this process worked on the run."""
    folder.write_record(record(folder.run_id, status="running", exit_code=None))
    folder.owner_path.write_text(json.dumps({"pid": os.getpid(), "start_time": psutil.Process().create_time()}))


def test_record_is_read_again_only_where_it_changed(tmp_path: Path) -> None:
    first, second = (make_run(tmp_path, name) for name in ("first", "second"))
    reader = RunsReader(Records(tmp_path).look)
    before = {run.run_id: run.record for run in reader.look()}
    first.write_record(record("first", status="succeeded"))
    after = {run.run_id: run.record for run in reader.look()}
    assert list(before) == list(after) == ["first", "second"]
    assert after["first"]["status"] == "succeeded"
    assert after["second"] is before["second"]
    second.record_path.unlink()
    assert [run.run_id for run in reader.look()] == ["first"]


def test_event_of_another_version_does_not_end_the_looking(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "live")
    make_live(folder)
    with folder.events_path.open("a") as events:
        events.write('{"type": "turn_started", "at": "2026-01-31T10:16:00.000+00:00"}\n')
    [run] = RunsReader(Records(tmp_path).look).look()
    assert run.alive
