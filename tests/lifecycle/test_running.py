"""Work on a run until it ends: what `run` and `resume` promise a program that calls them."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import RunReport, resume, run
from codex_multi_role.codex.locator import find_codex
from codex_multi_role.errors import CodexMultiRoleError, RunNotFound, StorageError, UsageError
from codex_multi_role.run_folder import Record, RunFolder
from tests.support.teams import TeamFolder, read, read_lines, say

pytestmark = pytest.mark.usefixtures("scripted_codex")

ENDING = ("status", "outcome", "reason", "exit_code", "totals")


def team_of_two(folder: Path) -> TeamFolder:
    plays = {name: [say(f"{name} {cycle}") for cycle in (1, 2)] for name in ("one", "two")}
    return TeamFolder(folder, {"one": {}, "two": {}}, plays)


def test_report_the_record_and_the_last_event_say_the_same(tmp_path: Path) -> None:
    team = team_of_two(tmp_path)
    report = team.run(run_id="mine")
    assert (report.run_id, report.folder, report.exit_code) == ("mine", team.runs / "mine", 1)
    record, last = read(report.folder / "run.json"), team.events[-1]
    for name in ENDING:
        assert getattr(report, name) == record[name] == last[name]
    assert last["folder"] == str(report.folder)
    assert record["options"] == team.options(run_id="mine").as_record()
    named = {"goal": "reach it", "flow": "cycles", "workspace": str(team.workspace), "playbook": "test"}
    assert named.items() <= record.items()
    assert events(report) == team.events
    assert [event["type"] for event in (team.events[0], last)] == ["run_started", "run_ended"]


def test_resumed_run_adds_to_its_events_and_totals(tmp_path: Path) -> None:
    team = team_of_two(tmp_path)
    first = team.run()
    second = team.resume(cycles=2)
    assert (second.folder, second.totals["turns"]) == (first.folder, 4)
    assert second.totals["seconds"] > first.totals["seconds"]
    assert second.totals["input_tokens"] > first.totals["input_tokens"]
    assert [event["resumed"] for event in events(second) if event["type"] == "run_started"] == [False, True]
    record = read(second.folder / "run.json")
    assert len(record["resumed_at"]) == 1
    assert record["started_at"] < record["resumed_at"][0] < record["ended_at"]
    assert record["options"]["cycles"] == 2


def events(report: RunReport) -> list[Record]:
    return read_lines(report.folder / "events.jsonl")


def test_error_before_start_is_raised_and_leaves_no_files(tmp_path: Path) -> None:
    team = team_of_two(tmp_path)
    (team.folder / "roles/catalog.yaml").write_text("version: 2\n")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CodexMultiRoleError):
        team.run()
    assert sorted(tmp_path.rglob("*")) == before


def test_bug_of_ours_ends_a_run_like_any_failure(tmp_path: Path) -> None:
    team = team_of_two(tmp_path)

    def faulty(record: Record) -> None:
        if record["type"] == "turn_started":
            raise ZeroDivisionError("a subscriber's fault")

    report = run(team.options(), faulty)
    assert (report.status, report.outcome, report.exit_code) == ("failed", "internal_error", 3)
    assert "a subscriber's fault" in (report.folder / "traceback.txt").read_text()
    assert team.resume().outcome == "cycles_used_up"


@pytest.mark.extensions  # one of them adds the last of these options
def test_run_keeps_what_it_is(tmp_path: Path) -> None:
    team = team_of_two(tmp_path)
    before = read(team.run().folder / "run.json")
    for name in ("goal", "flow", "run_id", "runs_dir", "database_url"):
        changes: Any = {name: "another"}
        with pytest.raises(UsageError, match=f"a resumed run keeps its {name}"):
            team.resume(**changes)
    assert read(team.runs / "latest/run.json") == before


def test_no_run_by_that_name(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match=r"there are no runs in /.*/runs"):
        resume("nowhere", runs_dir=tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


def test_run_can_be_resumed_from_another_folder_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = team_of_two(tmp_path)
    monkeypatch.chdir(tmp_path)
    first = team.run(runs_dir=Path("runs"), workspace=Path("workspace"), roles=Path("roles"), playbook="playbook.yaml")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    again: list[Record] = []
    report = resume(first.run_id, runs_dir=Path("../runs"), changes={"cycles": 2}, on_event=again.append)
    assert (report.folder, report.outcome) == (first.folder, "cycles_used_up")
    assert [event["resumed"] for event in again if event["type"] == "role_started"] == [True, True]


def test_run_in_a_thread_and_two_in_one_process(tmp_path: Path) -> None:
    reports: list[RunReport] = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        thread = threading.Thread(target=lambda folder=folder: reports.append(team_of_two(folder).run()))
        thread.start()
        thread.join(60)
    assert [report.outcome for report in reports] == ["cycles_used_up", "cycles_used_up"]


def test_child_processes_of_caller_are_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        team_of_two(tmp_path).run()
        assert child.poll() is None
        child.kill()


def test_binary_found_on_the_path_is_remembered_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = team_of_two(tmp_path)
    with monkeypatch.context() as patched:
        codex = find_codex(None, {})
        patched.setenv("PATH", f"{codex.parent}{os.pathsep}{os.environ['PATH']}")
        team.run(codex_bin=Path(codex.name))
    assert read(team.runs / "latest/run.json")["options"]["codex_bin"] == str(codex)
    assert team.resume().outcome == "cycles_used_up"


@pytest.mark.parametrize("left", [None, b""])
def test_run_whose_journal_is_gone_is_not_paid_for_again(tmp_path: Path, left: bytes | None) -> None:
    team = team_of_two(tmp_path)
    folder = RunFolder(team.run().folder)
    before = folder.record()
    folder.journal_path.unlink()
    if left is not None:
        folder.journal_path.write_bytes(left)
    with pytest.raises(StorageError, match=r"the journal .* is missing") as caught:
        team.resume(cycles=2)
    assert "copy" in caught.value.hint
    assert (folder.record(), team.turns()) == (before, [])


def test_resume_that_cannot_replay_leaves_the_state_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = team_of_two(tmp_path)
    state = team.run().folder / "controller_state.json"
    before = state.read_text()
    monkeypatch.setattr("codex_multi_role.engine.journal_slots.JOURNAL_VERSION", "another")
    assert team.resume(max_turns=9).outcome == "storage_failed"
    assert state.read_text() == before
