"""Flows whose Codex breaks off in between: the work continues where it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.workspace.manifest import Manifest
from tests.support.codex import disturbed
from tests.support.message_fates import Once
from tests.support.teams import TeamFolder, say, with_flow

pytestmark = pytest.mark.real


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
