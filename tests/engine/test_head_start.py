"""The first turn of a run is taken while its journal is being opened, and nothing is lost if that does not succeed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.errors import StorageError
from codex_multi_role.lifecycle.session import Session
from codex_multi_role.steps import RunResources
from tests.support.preloaded import started
from tests.support.processes import wait_for, wait_until
from tests.support.teams import NEVER, WRITER, Record, TeamFolder, say

KILLED = """
import os, signal, sys
from pathlib import Path
from codex_multi_role.cli.main import main
from codex_multi_role.lifecycle.session import Session
from tests.support.processes import wait_until

log, sign = Path(sys.argv.pop()), sys.argv.pop()

def killed(*_):
    wait_until(lambda: any(sign in path.read_text() for path in log.parent.glob(log.name)), sign)
    os.kill(os.getpid(), signal.SIGKILL)

Session._journal = killed
main()
"""
Open = Callable[[Session, RunResources], AbstractContextManager[Any]]


def team_of(folder: Path, first: Record) -> TeamFolder:
    return TeamFolder(folder, {"one": {}, "two": {}}, {"one": [first] * 2, "two": [say("second")] * 2})


def opened_after(monkeypatch: pytest.MonkeyPatch, name: str, then: Open = Session._journal) -> None:
    """The journal is opened when the file with that name exists in the run folder."""

    def waiting(session: Session, parts: RunResources) -> AbstractContextManager[Any]:
        wait_for(session._folder.path / name)
        return then(session, parts)

    monkeypatch.setattr(Session, "_journal", waiting)


@pytest.mark.parametrize("turn", ["one/turn_001", "two/turn_001", "one/turn_002", "two/turn_002"])
def test_turns_are_taken_while_the_journal_opens(turn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened_after(monkeypatch, f"{turn}/handoff.json")
    team = team_of(tmp_path, say("first"))
    report = team.run(cycles=2)
    assert report.outcome == "cycles_used_up"
    assert team.turns() == [(name, number, "completed") for number in (1, 2) for name in ("one", "two")]
    assert [each["visit"] for each in team.of_type("step_started")] == [1, 2]
    assert "first" in (report.folder / "two/turn_001/prompt.txt").read_text()


def test_files_wait_for_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is changed that a resumed run would change once more."""
    plays = [say("first", files=[{"path": "a.txt", "content": "a"}])]
    team = TeamFolder(tmp_path, {"one": WRITER}, {"one": plays})

    def without_files(session: Session, parts: RunResources) -> AbstractContextManager[Any]:
        wait_until(lambda: "head-start" not in {each.name for each in threading.enumerate()}, "the end of its work")
        assert not (team.workspace / "a.txt").exists()
        return open_journal(session, parts)

    open_journal = Session._journal
    opened_after(monkeypatch, "one/turn_001/handoff.json", without_files)
    assert team.run().outcome == "cycles_used_up"
    assert (team.workspace / "a.txt").read_text() == "a"


def test_failing_journal_ends_the_first_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> AbstractContextManager[Any]:
        raise StorageError("the journal cannot be opened")

    team = team_of(tmp_path, NEVER)
    with monkeypatch.context() as patch:
        opened_after(patch, "one/turn_001/turn.json", failing)
        assert team.run().reason == "the journal cannot be opened"
    assert [turn[2] for turn in team.turns()] == ["interrupted"]
    team.plays["one"] = [say("first")] * 2
    team.write_plays()
    assert team.resume(playbook=str(team.playbook)).outcome == "cycles_used_up"


@pytest.mark.parametrize(
    ("plays", "log", "sign", "asked"),
    [
        ({"one": [NEVER]}, "one/events.jsonl", "turn/start", ["one", "two"]),
        ({"one": [say("first")], "two": [NEVER]}, "two/events.jsonl", "turn/start", ["two"]),
        ({"one": [say("first")], "two": [say("second")]}, "two/turn_001/turn.json", '"recorded"', []),
    ],
)
def test_kill_before_the_journal_is_open_loses_no_turn(
    tmp_path: Path, plays: dict[str, list[Record]], log: str, sign: str, asked: list[str]
) -> None:
    """A finished turn is not paid for again; one that was cut short is repeated, and counts."""
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, plays)
    argv = [sys.executable, "-c", KILLED, *team.command()[3:], sign, str(team.runs / "latest" / log)]
    child = started(argv, cwd=team.folder, stdout=subprocess.PIPE)
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    team.plays = {"one": [say("first")] * 2, "two": [say("second")] * 2}
    team.write_plays()
    report = team.resume(playbook=str(team.playbook))
    assert report.outcome == "cycles_used_up"
    assert report.totals["turns"] == 2 + ([NEVER] in plays.values())
    assert [turn[0] for turn in team.turns()] == asked
    assert "first" in (report.folder / "two/turn_001/prompt.txt").read_text()
