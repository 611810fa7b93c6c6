"""A check that was killed half-way runs on the workspace as it was before it, or only if a person agrees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import answer
from codex_multi_role.errors import CheckFailed, DefinitionError, RunInterrupted
from tests.support.teams import Record, TeamFolder, say, warnings, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

APPENDS = 'import pathlib; log = pathlib.Path("log.txt").open("a"); log.write("once\\n"); log.close()'


def appending(folder: Path, program: str = APPENDS, **keys: object) -> TeamFolder:
    argv = ["python3", "-c", program]
    step = {"id": "log", "check": "command", "with": {"argv": argv, "sandbox": False, "json": False}, **keys}
    return with_flow(TeamFolder(folder, {"one": {}}, {"one": [say()] * 5}), {"steps": [{"ask": "one"}, step]})


def log(team: TeamFolder) -> list[str]:
    return (team.workspace / "log.txt").read_text().split()


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run the team; each command does half of its work, and does not finish."""

    def run(team: TeamFolder, error: type[Exception] = RunInterrupted) -> None:
        def half(*_: object) -> Any:
            with (team.workspace / "log.txt").open("a") as file:
                file.write("half\n")
            raise error("stopped") if error is CheckFailed else error

        with monkeypatch.context() as patch:
            patch.setattr("codex_multi_role.steps.check.checked", half)
            team.run(flow="own")
        assert log(team)[0] == "half"

    return run


def test_interrupted_command_starts_from_the_state_before_it(tmp_path: Path, interrupted: Callable[..., None]) -> None:
    team = appending(tmp_path)
    interrupted(team)
    assert team.resume().exit_code == 0
    assert log(team) == ["once"]
    assert "+half" in (team.runs / "latest/checks/log.1/undone.patch").read_text()


def test_failed_command_leaves_the_workspace_to_the_person(tmp_path: Path, interrupted: Callable[..., None]) -> None:
    """Who resumes has perhaps repaired what it needs."""
    team = appending(tmp_path)
    interrupted(team, CheckFailed)
    assert team.resume().exit_code == 0
    assert (log(team), warnings(team.events)) == (["half", "once"], [])


def test_retried_command_keeps_what_it_did(tmp_path: Path) -> None:
    """Only what was interrupted is undone: a bad result is one."""
    fails_once = f"{APPENDS}\nimport sys; sys.exit(len(open('log.txt').readlines()) < 2)"
    team = appending(tmp_path, fails_once, retry={"attempts": 2, "backoff_seconds": 0})
    assert team.run(flow="own").exit_code == 0
    assert log(team) == ["once", "once"]


def test_items_at_once_keep_what_an_interrupted_one_left(tmp_path: Path, interrupted: Callable[..., None]) -> None:
    """Nobody can tell whose changes they are."""
    team = appending(tmp_path, for_each=["a", "b"], concurrency=2)
    interrupted(team)
    assert team.resume().exit_code == 0
    assert log(team)[-2:] == ["once", "once"]
    assert "half" in log(team)
    assert any("remain: others may also have changed it" in each for each in warnings(team.events))


@pytest.mark.parametrize("approved", [True, False])
def test_step_that_is_not_repeatable_waits_for_a_person(
    tmp_path: Path, interrupted: Callable[..., None], approved: bool
) -> None:
    team = appending(tmp_path, once=True)
    interrupted(team)
    assert team.resume(yes=True).exit_code == 4
    [asked] = team.of_type("review_asked")
    assert asked["question"].startswith("The check command of step log was interrupted after it started at ")
    answer("latest", runs_dir=team.runs, approved=approved)
    report = team.resume()
    assert report.exit_code == (0 if approved else 3)
    assert log(team) == (["once"] if approved else ["half"])
    if not approved:
        assert "did not let it run again" in report.reason
        assert "--from log:1" in report.hint


def test_every_interruption_is_asked_about(tmp_path: Path, interrupted: Callable[..., None]) -> None:
    team = appending(tmp_path, once=True)
    interrupted(team)
    assert team.resume().exit_code == 4
    answer("latest", runs_dir=team.runs, approved=True)
    note = team.runs / "latest/checks/log.1/began.json"
    before = note.read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codex_multi_role.steps.check.checked", _interrupt)
        assert team.resume().exit_code == 130
    assert note.read_text() != before
    assert team.resume().exit_code == 4


def _interrupt(*_: object) -> Any:
    raise RunInterrupted


def test_only_checks_are_repeatable_or_not(tmp_path: Path) -> None:
    steps: list[Record] = [{"ask": "one", "once": True}]
    team = with_flow(TeamFolder(tmp_path, {"one": {}}, {"one": []}), {"steps": steps})
    with pytest.raises(DefinitionError, match="once belongs to check"):
        team.run(flow="own")
