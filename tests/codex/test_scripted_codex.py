"""What a run leaves with the scripted Codex is what it leaves with the real binary."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from codex_multi_role import fork
from tests.support.scripted_codex import codex_replaced
from tests.support.teams import WRITER, Record, TeamFolder, fan, read, read_lines, say, solver
from tests.support.tools import calls

OWN_EVENTS = {"step_started", "step_ended", "turn_ended", "run_ended", "tool_called", "files_applied"}
VOLATILE = {"at", "seconds", "run_id", "input_tokens", "worked_seconds", "totals", "cost", "snapshot"}
"""Keys of events and turns whose values no two runs share, or that depend on the length of a model request."""
OF_TURNS = ("status", "reason", "attempt", "repair_of", "continues")
PLAYS: dict[str, Record] = {
    "unauthorized": {"fault": {"status": 401, "code": "no"}},
    "usage limit": {"fault": {"status": 429, "code": "usage_limit_reached"}},
    "empty": {"fault": {"empty": True}},
    "not an object": {"text": "no JSON"},
}


def _one(folder: Path, play: Record, **keys: object) -> TeamFolder:
    return TeamFolder(folder, {"one": keys}, {"one": [play] * 2})


def _two(folder: Path) -> TeamFolder:
    files = {"json": {"files": [{"path": "a.txt", "content": "a"}]}}
    return TeamFolder(folder, {"one": {}, "two": WRITER}, {"one": [say(), say("again")], "two": [files] * 2})


def _run(team: TeamFolder) -> None:
    team.run(repair_attempts=1)


def _run_flow(team: TeamFolder) -> None:
    team.run(flow="own")


def _resume(team: TeamFolder) -> None:
    team.run(cycles=2, max_turns=2)
    team.resume(max_turns=10)


def _fork(team: TeamFolder) -> None:
    team.run(cycles=2)
    team.events.clear()
    fork("latest", runs_dir=team.runs, start="team:2", on_event=team.events.append)


CASES: dict[str, tuple[Callable[[Path], TeamFolder], Callable[[TeamFolder], None]]] = {
    "resumed": (_two, _resume),
    "forked": (_two, _fork),
    "tool": (
        lambda folder: _one(folder, calls("ask_user", {"question": "one"}), tools=["ask_user"]),
        _run,
    ),
    "fan-out": (lambda folder: solver(folder, [fan(["a", "b"])]), _run_flow),
    **{name: (partial(_one, play=play), _run) for name, play in PLAYS.items()},
}


def _left(team: TeamFolder) -> Record:
    """How the run and its turns ended, its own events and the workspace."""
    latest = (team.runs / "latest").resolve()
    run = read(latest / "run.json")
    turns = {
        f"{path.parts[-3]}/{path.parts[-2]}": [str(read(path)[key]) for key in OF_TURNS]
        for path in latest.glob("*/turn_*/turn.json")
    }
    own = (event for event in team.events if event["type"] in OWN_EVENTS)
    events = sorted(str({key: value for key, value in event.items() if key not in VOLATILE}) for event in own)
    files = {path.name: path.read_text() for path in team.workspace.iterdir()}
    left = {
        "ended": [run["status"], run["outcome"], run["exit_code"]],
        "turns": turns,
        "events": events,
        "files": files,
    }
    return {key: _without_places(str(value)) for key, value in left.items()}


def _without_places(text: str) -> str:
    return re.sub(r"\d{8}_\d{6}_[0-9a-f]{8}|127\.0\.0\.1:\d+|[0-9a-f]+-[0-9a-f-]{20,}|real|scripted", "…", text)


@pytest.mark.real
@pytest.mark.parametrize("name", CASES)
def test_run_leaves_the_same(name: str, tmp_path: Path) -> None:
    make, play = CASES[name]
    left: dict[str, Record] = {}
    for kind, place in (("real", nullcontext()), ("scripted", codex_replaced())):
        team = make(tmp_path / kind)
        with place:
            play(team)
        left[kind] = _left(team)
    assert left["scripted"] == left["real"]


def test_resumed_thread_is_the_one_of_the_earlier_process(tmp_path: Path) -> None:
    team = _two(tmp_path)
    with codex_replaced():
        _resume(team)
    sent = [each["message"].get("method") for each in read_lines(team.runs / "latest/one/events.jsonl")]
    assert "thread/resume" in sent
    assert not team.of_type("warning")
