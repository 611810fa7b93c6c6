"""How a run ends, or continues where it belongs, when its model provider, or a Codex process, fails."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from codex_multi_role.workspace.manifest import Manifest
from tests.support.codex import codex_after, disturbed
from tests.support.console import console
from tests.support.message_fates import Once
from tests.support.teams import Record, TeamFolder, read, say, with_flow

pytestmark = pytest.mark.real

FULL: Record = {"fault": {"code": "context_length_exceeded"}}


def limit(seconds: float) -> Record:
    """A usage limit as the provider reports it, that resets so many seconds from now."""
    headers = {
        "x-codex-primary-used-percent": "100",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(int(time.time() + seconds)),
    }
    body: Record = {"error": {"type": "usage_limit_reached", "message": "the usage limit has been reached"}}
    return {"fault": {"status": 429, "headers": headers, "body": body}}


def pair(folder: Path, second: Record) -> TeamFolder:
    return TeamFolder(folder, {"one": {}, "two": {}}, {"one": [say("first")], "two": [second]})


def test_usage_limit_parks_the_run_until_it_resets(tmp_path: Path) -> None:
    team = pair(tmp_path, limit(3600))
    report = team.run()
    assert (report.status, report.outcome, report.exit_code) == ("parked", "quota", 5)
    record = read(report.folder / "run.json")
    left = (datetime.fromisoformat(record["resets_at"]) - datetime.now(UTC)).total_seconds()
    assert 0 < left <= 3600
    assert f"It accepts turns again at {record['resets_at']}" in report.hint
    assert [turn[:2] for turn in team.turns()] == [("one", 1), ("two", 1)]  # no retry was spent
    assert read(report.folder / "two/turn_001/turn.json")["outcome"] == "quota"
    team.write_plays(two=[say("second")])
    assert team.resume(playbook=str(team.playbook)).outcome == "cycles_used_up"
    assert team.turns() == [("two", 2, "completed")]
    assert read(report.folder / "run.json")["resets_at"] is None


NO_MORE: Record = {"fault": {"status": 429, "body": {"error": {"type": "usage_limit_reached", "message": "no more"}}}}


@pytest.mark.usefixtures("scripted_codex")
def test_resume_can_wait_for_that(tmp_path: Path) -> None:
    """If anybody knows when; the provider of this run has not said it at first."""
    team = pair(tmp_path, NO_MORE)
    assert team.run().outcome == "quota"
    refused = console("resume", "--wait", folder=tmp_path)
    assert (refused.returncode, "is unknown" in refused.stderr) == (2, True)
    team.write_plays(two=[say("second")])
    path, resets_at = (team.runs / "latest").resolve() / "run.json", datetime.now(UTC) + timedelta(seconds=1)
    path.write_text(json.dumps({**read(path), "resets_at": resets_at.isoformat()}))
    resumed = console("resume", "--wait", "--playbook", str(team.playbook), folder=tmp_path)
    assert resumed.returncode == 1  # the cycles are used up
    assert datetime.now(UTC) >= resets_at
    assert "two: turn 2 completed" in resumed.stderr


def test_full_conversation_continues_in_new_thread(tmp_path: Path) -> None:
    """The first prompt of the new conversation contains the role's earlier handoff."""
    plays = {"one": [say("first"), {"attempts": [FULL, say("second")]}]}
    team = TeamFolder(tmp_path, {"one": {}}, plays)
    report = team.run(cycles=2)
    assert report.outcome == "cycles_used_up"
    assert team.turns() == [("one", 1, "completed"), ("one", 2, "failed"), ("one", 3, "completed")]
    threads = [read(report.folder / f"one/turn_00{number}/turn.json")["thread_id"] for number in (1, 2, 3)]
    assert threads[0] == threads[1] != threads[2]
    assert '"summary": "first"' in (report.folder / "one/turn_003/prompt.txt").read_text()
    assert any("conversation is full" in event["message"] for event in team.of_type("warning"))


def test_too_large_prompt_fails_at_once_with_hint(tmp_path: Path) -> None:
    """If the prompt alone fills the context, it is not sent again, and the hint says so."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [FULL]})
    report = team.run()
    assert (report.outcome, report.exit_code, len(team.turns())) == ("context_full", 3, 1)
    assert "The prompt alone" in report.hint


def test_process_that_does_not_start_is_started_again(tmp_path: Path) -> None:
    mark, team = tmp_path / "once", TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    report = team.run(codex_bin=codex_after(tmp_path, f"[ -e {mark} ] || {{ touch {mark}; exit 7; }}"))
    assert report.outcome == "cycles_used_up", report


def test_one_that_says_why_it_does_not_start_is_not(tmp_path: Path) -> None:
    report = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]}).run(
        config=("model_reasoning_effort=[]",), playbook=None
    )
    assert report.exit_code == 3
    assert "Error" in report.reason


def test_process_that_breaks_as_it_opens_a_thread_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codex_multi_role.codex.child.LAST_WORDS_SECONDS", 0.5)
    step = {"id": "it", "ask": "one", "for_each": ["a", "b", "c"]}
    team = with_flow(TeamFolder(tmp_path, {"one": {}}, {"one": [say(word) for word in "abc"]}), {"steps": [step]})
    codex = disturbed(tmp_path, Once("in", "answer to thread/start", "die", 2))
    report = team.run(flow="own", codex_bin=codex)
    assert report.exit_code == 0, report
    assert [event["summary"] for event in team.of_type("turn_ended")] == ["a", "b", "c"]
    assert len(team.of_type("role_restarted")) == 1


def test_retried_start_is_reported(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    report = team.run(codex_bin=disturbed(tmp_path, Once("in", "answer to initialize", "die")))
    assert report.outcome == "cycles_used_up", report
    assert [event["reason"].split(":")[0] for event in team.of_type("role_restarted")] == ["Codex did not start"]


@pytest.mark.long
def test_writer_with_a_broken_process_continues_in_its_copy(tmp_path: Path) -> None:
    """No short test breaks a process whose turn works in a copy."""
    patch = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch"
    role = {"prompt_flags": {"allow_write": True}}
    team = TeamFolder(tmp_path, {"one": role}, {"one": [{"steps": [{"patch": patch}, say()]}]})
    with_flow(team, {"steps": [{"ask": "one", "isolate": {"merge": "none"}}]})
    report = team.run(flow="own", codex_bin=disturbed(tmp_path, Once("in", "turn/started", "die")))
    assert report.exit_code == 0, report
    assert [turn[2] for turn in team.turns()] == ["crashed", "completed"]
    assert list(Manifest(report.folder / "worktrees").place.rglob("new.txt"))
    assert not (team.workspace / "new.txt").exists()
