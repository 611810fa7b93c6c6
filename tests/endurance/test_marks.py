"""Every mark fits the package as it is, a week has each fault, and each finding comes up."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codex_multi_role.run_folder import RunFolder
from tests.endurance import marks
from tests.endurance.faults import FAULTS
from tests.endurance.findings import TURN_ENDS, disordered, findings, wrong_output
from tests.endurance.marks import MARKS
from tests.everything import WEEKLY_POINTS
from tests.support.teams import TeamFolder, say


def test_every_mark_finds_what_it_surrounds(monkeypatch: pytest.MonkeyPatch) -> None:
    from codex_multi_role.extensions.machines.workers import queued_runs
    from codex_multi_role.extensions.machines.workers.database import Database

    monkeypatch.setattr(Database, "transaction", Database.transaction)  # restored in the end
    monkeypatch.setattr(queued_runs, "ROWS_AT_ONCE", queued_runs.ROWS_AT_ONCE)
    found: list[object] = []
    monkeypatch.setattr(marks, "surround", lambda owner, name, *_, **__: found.append(getattr(owner, name)))
    for mark in MARKS.values():
        mark(lambda *_: False)
    assert len(found) == 11


def test_week_strikes_with_each_fault() -> None:
    assert [*WEEKLY_POINTS] == [*FAULTS]


DAMAGES = {
    "exit code 0, but run.json says 1": ("run.json", '"exit_code": 0', '"exit_code": 1'),
    "run.json counts {'turns': 2": ("run.json", '"turns": 1', '"turns": 2'),
    "one/turn_001 ended as running": ("one/turn_001/turn.json", '"status": "completed"', '"status": "running"'),
    "not in controller_state.json: one, turn 1": ("controller_state.json", '"turn": 1', '"turn": 2'),
    "events.jsonl ends with": ("events.jsonl", '"type": "run_ended"', '"type": "other"'),
}
"""By finding: the file, and what is replaced in it."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that succeeded in one turn."""
    play = say(status="DONE")
    team = TeamFolder(tmp_path_factory.mktemp("team"), {"one": {"behaviors": {"can_finish": True}}}, {"one": [play]})
    report = team.run()
    assert found(report.folder) == []
    return report.folder


def found(folder: Path) -> list[str]:
    run = RunFolder(folder)
    return [*findings(run, 0, (), TURN_ENDS, range(1)), *disordered(run)]


@pytest.mark.real
@pytest.mark.parametrize("finding", DAMAGES)
def test_damaged_run_folder_is_found(tmp_path: Path, whole: Path, finding: str) -> None:
    name, old, new = DAMAGES[finding]
    file = shutil.copytree(whole, tmp_path / "run", symlinks=True) / name
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    assert [each for each in found(tmp_path / "run") if each.startswith(finding)]


@pytest.mark.parametrize(("text", "exit_code"), [("Traceback (most recent call last):\n", 0), ("\n", 3)])
def test_traceback_or_failure_without_a_word_is_found(tmp_path: Path, text: str, exit_code: int) -> None:
    (tmp_path / "output.txt").write_text(text)
    assert list(wrong_output(tmp_path / "output.txt", exit_code))
