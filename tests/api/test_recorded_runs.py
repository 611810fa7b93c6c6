"""A recorded run as an object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role import Run, RunEvent, RunNotFound, Turn, load_run, runs
from tests.support.recorded_runs import make_run
from tests.support.teams import TeamFolder, read, say

pytestmark = pytest.mark.usefixtures("scripted_codex")


def finished(folder: Path) -> Run:
    plays = {"one": [{"json": {"summary": "made it", "files": [{"path": "a.txt", "content": "x"}]}}, say("second")]}
    team = TeamFolder(folder, {"one": {"behaviors": {"apply_files": True}}}, plays)
    return load_run(team.run().run_id, runs_dir=team.runs)


def test_loaded_run_tells_what_was_recorded(tmp_path: Path) -> None:
    past = finished(tmp_path)
    record = read(past.folder / "run.json")
    assert (past.run_id, past.goal, past.flow) == (record["run_id"], "reach it", "cycles")
    assert (past.status, past.outcome, past.exit_code) == ("ended", "cycles_used_up", 1)
    assert past.totals == record["totals"]
    assert past.reason == record["reason"]
    assert past.handoffs["one"]["summary"] == "made it"
    assert past.files == ["a.txt"]
    assert past.questions == []
    (turn,) = past.turns
    assert (turn.role, turn.number, turn.status) == ("one", 1, "completed")
    assert turn.prompt.startswith("Role: one\n")
    assert json.loads(turn.answer) == turn.handoff
    used = [past.totals[name] for name in ("input_tokens", "output_tokens", "cost")]
    assert [turn.input_tokens, turn.output_tokens, turn.cost] == used
    assert turn.seconds == turn.details["seconds"] > 0
    assert (past.step, turn.step) == ("team", "team")
    assert turn.started is not None
    assert past.started <= turn.started
    assert (past.totals.turns, past.seconds, past.cost) == (1, past.totals["seconds"], record["totals"]["cost"])


def test_result_is_the_recorded_one(tmp_path: Path) -> None:
    past = finished(tmp_path)
    result = {"title": "Answer", "text": "42", "format": "text", "figures": {}}
    (past.folder / "run.json").write_text(json.dumps({**past.record, "result": result}))
    assert past.result is not None
    assert dict(past.result) == result
    assert (past.result.title, past.result.text, past.result.file, past.result.figures) == ("Answer", "42", "", {})
    assert past.result_text == "42"


def test_command_in_the_hint_is_complete(tmp_path: Path) -> None:
    past = Run(make_run(tmp_path, "first", hint="`codex-multi-role resume RUN` resumes it.").path)
    assert past.hint == f"`codex-multi-role resume first --runs-dir {tmp_path}` resumes it."


def test_turn_without_figures_has_no_cost(tmp_path: Path) -> None:
    """A kill or an earlier version may have recorded none."""
    turn = Turn("one", 1, tmp_path, {})
    assert (turn.input_tokens, turn.output_tokens, turn.seconds, turn.cost) == (0, 0, 0.0, None)
    assert (turn.step, turn.started) == ("", None)


def test_test_runs_are_listed(tmp_path: Path) -> None:
    past = Run(make_run(tmp_path, "first").path)
    (tests,) = past.tests
    assert (tests["number"], tests["status"], tests["failed"]) == (1, "failed", 1)
    assert (tests.number, tests.status, tests.failed, tests.verdict) == (1, "failed", 1, "")
    assert [turn.step for turn in past.turns] == ["team", "team"]


def test_loaded_run_is_resumed_and_forked(tmp_path: Path) -> None:
    past, seen = finished(tmp_path), list[RunEvent]()
    assert past.resume(cycles=2, on_event=seen.append).turns[1].handoff == {"summary": "second"}
    assert seen[-1].type == "run_ended"
    forked = past.fork("team:2", workspace=str(tmp_path / "other"))
    assert forked.record["forked_from"]["run_id"] == past.run_id
    assert [each.run_id for each in runs(tmp_path / "runs")] == [forked.run_id, past.run_id]


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_killed_run_is_reported_as_killed(tmp_path: Path) -> None:
    past = finished(tmp_path)
    (past.folder / "run.json").write_text(json.dumps({**past.record, "status": "running", "exit_code": None}))
    assert (past.status, past.exit_code) == ("killed", None)


def test_runs_of_a_missing_folder_are_none(tmp_path: Path) -> None:
    assert runs(tmp_path / "nowhere") == []
    with pytest.raises(RunNotFound):
        load_run(runs_dir=tmp_path / "nowhere")
