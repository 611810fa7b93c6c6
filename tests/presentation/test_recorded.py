"""What recorded runs show: of a folder, of all runs, of earlier runs of a flow, and what changed between two points."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import psutil
import pytest

import codex_multi_role.run_folder.events as e
from codex_multi_role.cli.flows import typical_runs
from codex_multi_role.errors import UsageError
from codex_multi_role.presentation.event_tail import RunsReader
from codex_multi_role.presentation.recorded import Records, changed_files, changes_of, read_tests
from codex_multi_role.run_folder import RunFolder, TurnFolder
from codex_multi_role.workspace.differences import FileChange
from tests.support.histories import Files, History
from tests.support.recorded_runs import make_run, record


def leave_turn(folder: RunFolder, *handed_in: str, **result: Any) -> TurnFolder:
    turn = TurnFolder.create(folder, "writer")
    turn.write_result(result)
    if handed_in:
        skipped = {"path": "/etc/passwd", "status": "SKIPPED", "reason": "unsafe path"}
        turn.write_files([skipped, *({"path": path, "status": "WROTE"} for path in handed_in)])
    return turn


def test_changed_files_are_named_once_whoever_wrote_them(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "run")
    leave_turn(folder, "theirs.py", changed_paths=["theirs.py"], inherited=True)
    leave_turn(folder, changed_paths=["b.py", "ü.py"], status="failed")
    leave_turn(folder, "./b.py", *(f"many/{number}.py" for number in range(30)), changed_paths=["a.py"])
    leave_turn(folder, changed_paths=["taken_back.py"]).undone_path.write_bytes(b"")
    TurnFolder.create(folder, "writer")
    assert changed_files(folder, {}) == ["b.py", "ü.py", "a.py", *(f"many/{number}.py" for number in range(30))]
    assert changed_files(folder, {"files": [{"path": "by_a_check.md", "added": 1, "removed": 0}]}) == ["by_a_check.md"]


def test_tests_are_in_order_beyond_a_thousand_too(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "run")
    for name in ("1000", "999", "002", "notes"):
        (folder.path / "tests" / name).mkdir(parents=True)
        (folder.path / "tests" / name / "result.json").write_text("{}")
    assert [result["number"] for result in read_tests(folder)] == [2, 999, 1000]


def took(turns: int, seconds: float, **more: float) -> dict[str, float]:
    return {"turns": turns, "seconds": seconds, **more}


def test_cost_is_that_of_runs_which_have_one(tmp_path: Path) -> None:
    for number, cost in enumerate([{}, {"cost": 0.5}, {"cost": 0.25}, {"cost": 4.0}]):
        make_run(tmp_path, f"run{number}", totals=took(2, 60.0, **cost))
    [known] = typical_runs(tmp_path).values()
    assert known.in_words == "typically 2 turns in 1 min 00 s for $0.50 (known for 3 runs), the median of 4 runs"


def test_figures_are_the_medians_of_runs_that_ended_with_a_model(tmp_path: Path) -> None:
    for number, (turns, seconds) in enumerate([(4, 60.0), (8, 200.0), (30, 4000.0)]):
        make_run(tmp_path, f"run{number}", totals=took(turns, seconds))
    make_run(tmp_path, "played", totals=took(99, 1.0), playbook="roman-numerals")
    make_run(tmp_path, "parked", totals=took(99, 1.0), exit_code=5)
    make_run(tmp_path, "forked", totals=took(99, 1.0), forked_from={"run_id": "run0"})
    make_run(tmp_path, "other", flow="testgen", totals=took(1, 12.0))
    found = typical_runs(tmp_path)
    assert {flow: each.in_words for flow, each in found.items()} == {
        "cycles": "typically 8 turns in 3 min 20 s, the median of 3 runs",
        "testgen": "typically 1 turn in 12 s, as in the only run so far",
    }


def test_nothing_is_typical_before_the_first_run(tmp_path: Path) -> None:
    assert typical_runs(tmp_path / "nowhere") == {}


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


def asked_twice(folder: Path) -> History:
    """Turns, each followed by the review ``look``, and a last one."""
    made = History(folder, {"a.txt": "one\ntwo\n", "b.txt": "b\n" * 5, ".gitignore": "!runs\n"}, inside=True)
    changed: list[Files] = [{"a.txt": "one\n2\n"}, {"new é.txt": "new\n", "b.txt": None}]
    for visit, files in enumerate(changed, start=1):
        made.turn("writer", files)
        made.happened(e.StepStarted("look", visit, visit, visit + 1, made.snapshots.take()))
        made.happened(e.ReviewAsked(f"look.{visit}", "Ship it?"))
    made.turn("writer", {"c.txt": "b\n" * 5})
    made.ended()
    return made


def test_changes_between_points_of_a_run(tmp_path: Path) -> None:
    run = asked_twice(tmp_path).run
    first, second = FileChange("a.txt", "modified", 1, 1), FileChange("new é.txt", "added", 1, 0)
    gone = FileChange("b.txt", "deleted", 0, 5)
    assert changes_of(run, until="look.1").files == changes_of(run, until="look:1").files == (first,)
    assert changes_of(run, since="look.1", until="look.2").files == (gone, second)
    assert b"+new\n" in changes_of(run, "look.1", "look.2").patch("new é.txt")
    moved = FileChange("c.txt", "renamed", 0, 0, "b.txt")
    assert changes_of(run).files == (first, moved, second)  # without the folder of the runs
    with pytest.raises(UsageError, match=r"no state of the workspace at look\.3 or now"):
        changes_of(run, since="look.3")


def test_run_without_states_has_no_points(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="recorded no state of the workspace"):
        changes_of(make_run(tmp_path, "first"))
