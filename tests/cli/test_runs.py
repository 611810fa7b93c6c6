"""The commands ``runs`` and ``show``."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path

import pytest

from codex_multi_role.presentation.wording import ago
from codex_multi_role.run_folder import Owner, Question, Questions
from codex_multi_role.run_folder import events as e
from tests.support.console import at_terminal, console
from tests.support.recorded_runs import BEGAN, in_order, make_run


def test_result_is_shown_first_and_can_be_printed_alone(tmp_path: Path) -> None:
    result = {"title": "Answer", "text": "# 42\n\nwhy", "format": "markdown", "figures": {"verified": True}}
    make_run(tmp_path / "runs", "first", result=result)
    lines = console("show", "first", folder=tmp_path).stdout.splitlines()
    assert lines[:5] == ["Answer", "  # 42", "", "  why", "  verified yes"]
    assert console("show", "first", "--result", folder=tmp_path).stdout == "# 42\n\nwhy\n"
    make_run(tmp_path / "runs", "second")
    done = console("show", "second", "--result", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "run second has no result" in done.stderr


@pytest.mark.real
def test_result_on_a_terminal_has_no_control_characters(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first", result={"title": "T", "text": "a\tb\x1b[2J"})
    show = [sys.executable, "-m", "codex_multi_role", "show", "--result"]
    assert console("show", "--result", folder=tmp_path).stdout == "a\tb\x1b[2J\n"
    with at_terminal(show, tmp_path) as session:
        assert session.end() == 0
    assert session.drawn == "a       b[2J\r\n"


def test_shown_is_what_the_record_has(tmp_path: Path) -> None:
    """What would help after a failure, no next command where the goal is reached, no cycles where there are none."""
    failed = {"status": "failed", "outcome": "unauthorized", "exit_code": 3, "hint": "Log in\nagain."}
    folder = make_run(tmp_path / "runs", "first", **failed)
    shown = console("show", "first", folder=tmp_path).stdout
    assert "hint       Log in again.\n" in shown
    assert "flow       cycles, 3 cycles" in shown
    folder.events_path.write_text(folder.events_path.read_text().replace('"cycles": 3', '"cycles": 0'))
    assert "flow       cycles\n" in console("show", "first", folder=tmp_path).stdout
    make_run(tmp_path / "runs", "second", exit_code=0, status="succeeded", outcome="done")
    assert "next:" not in console("show", "second", folder=tmp_path).stdout


def test_no_runs_yet(tmp_path: Path) -> None:
    done = console("runs", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "There are no runs in runs.\n")
    assert json.loads(console("runs", "--json", folder=tmp_path).stdout) == []
    assert list(tmp_path.iterdir()) == []


def test_table_has_one_line_of_any_length_per_run(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first")
    make_run(tmp_path / "runs", "second", goal="long " * 100, status="succeeded", outcome="done")
    heading, first, second = console("runs", folder=tmp_path).stdout.splitlines()
    assert heading.split() == ["run", "state", "started", "flow", "turns", "tokens", "cost", "goal"]
    assert re.split(r" {2,}", first) == [
        "first", "ended: cycles used up", ago(BEGAN.isoformat()), "cycles", "2", "2468",
        "Convert roman numerals",
    ]  # fmt: skip
    assert second.split()[:2] == ["second", "succeeded"]
    assert len(second) > 100


def test_list_shows_what_failed_what_is_new_and_what_waits_for_a_person(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "old")
    now = datetime.now(UTC).isoformat()
    make_run(tmp_path / "runs", "done", status="succeeded", outcome="done", exit_code=0, started_at=now)
    parked = {"status": "parked", "outcome": "waiting_for_review", "exit_code": 4, "started_at": now}
    waiting = make_run(tmp_path / "runs", "waiting", **parked)
    Questions(waiting.path).ask(Question("ok.1", "Ship it?", "", now, None, None))

    def listed(*options: str) -> list[str]:
        return [run["run_id"] for run in json.loads(console("runs", "--json", *options, folder=tmp_path).stdout)]

    assert listed() == ["old", "done", "waiting"]
    assert listed("--failed") == ["old"]
    assert listed("--since", "2h") == listed("--since", f"{BEGAN:%Y-%m-%d}T20:00Z") == ["done", "waiting"]
    assert listed("--since", "2h", "--failed") == []
    told = console("runs", "--since", "2h", "--failed", folder=tmp_path)
    assert (told.returncode, told.stderr) == (0, "There are no such runs in runs.\n")
    assert "  waiting for you: ok.1: Ship it?  " in console("runs", folder=tmp_path).stdout
    wrong = console("runs", "--since", "soon", folder=tmp_path)
    told_wrong = "'soon' is neither a period, such as 30min, 2h or 3d, nor a date, such as 2026-01-31"
    assert (wrong.returncode, told_wrong in wrong.stderr) == (2, True)


def test_machines_get_the_records_and_everything_of_one(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first")
    (run,) = json.loads(console("runs", "--json", folder=tmp_path).stdout)
    assert (run["run_id"], run["status"], run["exit_code"]) == ("first", "ended", 1)
    shown = json.loads(console("show", "latest", "--json", folder=tmp_path).stdout)
    assert shown["run"]["outcome"] == "cycles_used_up"
    assert [turn["status"] for turn in shown["turns"]] == ["invalid_reply", "completed"]
    assert shown["tests"][0]["failed"] == 1
    assert shown["next"] == "codex-multi-role resume first --cycles 6"


def test_status_is_that_of_the_process_and_one_unreadable_run_hides_no_other(tmp_path: Path) -> None:
    """A killed run has the totals of its turns."""
    live, killed = (
        make_run(tmp_path / "runs", name, status="running", outcome="", exit_code=None, totals={}) for name in "ab"
    )
    make_run(tmp_path / "runs", "c").record_path.write_text("{")
    killed.owner_path.write_text('{"pid": 1, "start_time": 1.5}')
    owner = Owner(live.owner_path)
    owner.acquire()
    rows = {line.split()[0]: line for line in console("runs", folder=tmp_path).stdout.splitlines()[1:]}
    owner.release()
    assert {name: row.split()[1] for name, row in rows.items()} == {"a": "running", "b": "killed", "c": "unreadable"}
    assert "2468" in rows["b"]
    told = "totals     2 turns, 1 repair, 2,400 tokens in, 68 out, 0.0 s"
    assert told in console("show", "b", folder=tmp_path).stdout
    done = console("show", "c", folder=tmp_path)
    assert (done.returncode, "run.json cannot be read" in done.stderr) == (2, True)


def test_run_is_shown_turn_by_turn(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "20260131_101500_0a1b2c3d")
    done = console("show", "2026", folder=tmp_path)
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert "status     ended: All cycles are used up" in lines
    assert "exit       1: ended without reaching the goal" in lines
    assert "totals     2 turns, 1 repair, 2,400 tokens in, 68 out, 12 s" in lines
    assert "cost       unpriced: 2 turns without a price" in lines
    tree = [line[10:] for line in lines[lines.index("") + 1 :]]
    assert tree[:5] == [
        "✓ team: 13 s, $1.26",
        "  ✓ planner: turn 1, 1.5 s, 1,200 in, 34 out, $0.42, what planner did",
        "  ✗ implementer: turn 1, invalid reply, 1.5 s, 1,200 in, 34 out, $0.42, summary: is missing",
        "  ✓ implementer: turn 2, repairs turn 1, 1.5 s, 1,200 in, 34 out, $0.42, what implementer did",
        "    ✗ tests 001: failed: 3 passed, 1 failed: test_a::test_one",
    ]
    assert f"look in {folder.path}" in lines
    assert lines[-1] == "next: codex-multi-role resume 20260131_101500_0a1b2c3d --cycles 6"


def test_svg_picture_is_written_or_missing_folder_is_reported(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first")
    done = console("show", "first", "--svg", "picture.svg", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"wrote {tmp_path}/picture.svg\n")
    ElementTree.parse(tmp_path / "picture.svg")
    done = console("show", "first", "--svg", "no/picture.svg", folder=tmp_path)
    assert done.returncode == 2
    assert "folder 'no' does not exist" in done.stderr


def test_answer_of_a_person_stands_at_its_step(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first")
    asked = [e.StepStarted("ok", 1, 0), e.ReviewAsked("ok.1", "Keep it?")]
    told = in_order(*asked, e.ReviewAnswered("ok.1", True, "good", "ann"), e.StepEnded("ok", 1, "COMPLETED"))
    folder.events_path.write_text("".join(json.dumps(event.as_record()) + "\n" for event in told))
    assert "  ✓ ok: approved by ann: good, 3.0 s\n" in console("show", "first", folder=tmp_path).stdout
