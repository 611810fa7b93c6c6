"""The checks of ``finally``: once at the end of a run, also after a failure or Ctrl-C, but not if it is parked."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError
from tests.support.processes import wait_for
from tests.support.teams import NEVER, Record, TeamFolder, read, say, with_flow

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

CLEAN: Record = {
    "id": "clean",
    "check": "command",
    "with": {"argv": ["sh", "-c", "echo {{ outcome }} {{ exit_code }} >> ended"]},
}


def ending(
    folder: Path, *steps: Record, play: Record | None = None, final: Record = CLEAN, **more: object
) -> TeamFolder:
    team = TeamFolder(folder, {"one": {}}, {"one": [play or say()] * 3})
    return with_flow(team, {"steps": [*(steps or ({"ask": "one"},))], "finally": [final], **more})


def ended(team: TeamFolder) -> str:
    file = team.workspace / "ended"
    return file.read_text() if file.exists() else ""


def test_it_runs_once_after_a_success(tmp_path: Path) -> None:
    team = ending(tmp_path)
    assert team.run(flow="own").exit_code == 0
    assert ended(team) == "success 0\n"
    assert [(each["id"], each["problem"]) for each in team.of_type("final_check_ended")] == [("clean", "")]


def test_it_runs_after_a_failure_and_again_after_a_resume(tmp_path: Path) -> None:
    team = ending(tmp_path, play={"fault": {"status": 400}})
    assert team.run(flow="own").exit_code == 3
    assert ended(team).count("3\n") == 1
    assert team.resume().exit_code == 3
    assert ended(team).count("3\n") == 2


def test_it_does_not_run_while_the_run_is_parked(tmp_path: Path) -> None:
    team = ending(tmp_path, {"ask": "one"}, {"id": "ok", "review": "Good?"})
    assert team.run(flow="own").exit_code == 4
    assert ended(team) == ""
    assert team.resume(yes=True).exit_code == 0
    assert ended(team) == "success 0\n"


def test_bad_result_turns_a_success_into_a_failure_and_changes_no_other_end(tmp_path: Path) -> None:
    final = {**CLEAN, "with": {"argv": ["false"]}}
    report = ending(tmp_path / "good", final=final).run(flow="own")
    assert (report.exit_code, report.outcome) == (1, "finally_failed")
    assert "but at its end clean: check command: failed" in report.reason
    last = {"ask": "one", "next": [{"end": "short", "exit": 1}]}
    assert ending(tmp_path / "bad", last, final=final).run(flow="own").outcome == "short"


def test_its_own_limit_ends_it(tmp_path: Path) -> None:
    final = {**CLEAN, "with": {"argv": ["sleep", "60"]}, "limits": {"seconds": 0.3}}
    report = ending(tmp_path, final=final).run(flow="own")
    assert "took longer than its limit of 0.3 s" in report.reason


def test_limit_of_a_step_fails_the_step(tmp_path: Path) -> None:
    slow = {"id": "slow", "check": "command", "with": {"argv": ["sleep", "60"]}, "limits": {"seconds": 0.3}}
    report = ending(tmp_path, slow).run(flow="own")
    assert (report.exit_code, "step slow took longer than its limit of 0.3 s" in report.reason) == (3, True)


@pytest.mark.usefixtures("real_codex")
def test_ctrl_c_waits_for_it(tmp_path: Path) -> None:
    team = ending(tmp_path, play=NEVER)
    process = team.start("--flow", "own")
    wait_for(team.runs / "latest/one/turn_001/prompt.txt")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert ended(team) == "cancelled 130\n"
    assert read(team.runs / "latest/run.json")["exit_code"] == 130


@pytest.mark.parametrize(
    ("final", "problem"),
    [
        ({"ask": "one"}, "takes checks only"),
        ({"check": "command", "with": {"argv": ["true"]}, "max_visits": 2}, "max_visits does not belong there"),
        ({"id": "one", "check": "command", "with": {"argv": ["true"]}}, "the id one is given twice"),
        ({"check": "command", "with": {"argv": ["{{ steps.two.x }}"]}}, "two"),
        ({"check": "comand"}, "comand"),
        ({"check": "command", "with": {"arg": []}}, "arg"),
    ],
)
def test_mistakes_are_found_before_a_run(tmp_path: Path, final: Record, problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem):
        ending(tmp_path, final=final).run(flow="own")


def test_called_flow_must_not_have_it(tmp_path: Path) -> None:
    team = with_flow(ending(tmp_path), {"steps": [{"call": "own"}]}, "outer")
    with pytest.raises(DefinitionError, match="finally, which belongs to the end of a run"):
        team.run(flow="outer")
