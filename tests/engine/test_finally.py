"""The checks of ``finally``: once at the end of a run, also after a failure or Ctrl-C, but not if it is parked.

Costs: each case is a run with checks at its end, many of them real tests.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import answer
from codex_multi_role.errors import DefinitionError
from codex_multi_role.steps import check, protection
from tests.support.processes import interrupted
from tests.support.recorded_steps import recorded_steps
from tests.support.teams import NEVER, WRITER, Record, TeamFolder, read, say, warnings, with_flow
from tests.support.tests_here import tests_here

__all__ = ["tests_here"]

pytestmark = [pytest.mark.usefixtures("scripted_codex", "tests_here"), pytest.mark.real]

CLEAN: Record = {
    "id": "clean",
    "check": "command",
    "with": {"argv": ["sh", "-c", "echo {{ outcome }} {{ exit_code }} >> ended"]},
}


def ending(
    folder: Path, *steps: Record, play: Record | None = None, final: Record = CLEAN, then: list[Record] | None = None
) -> TeamFolder:
    team = TeamFolder(folder, {"one": WRITER}, {"one": [play or say()] * 3})
    return with_flow(team, {"steps": [*(steps or ({"ask": "one"},))], "finally": [final, *(then or [])]})


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


NO_FOLDER: Record = {"id": "gone", "check": "command", "with": {"argv": ["true"], "cwd": "nowhere"}}
UNSURE: Record = {"id": "unsure", "check": "command", "with": {"argv": ["echo", "{{ steps.one.x if goal }}"]}}


def test_every_problem_is_in_the_end_line_of_any_end(tmp_path: Path) -> None:
    """The others run all the same, and what was recorded of a success is not done again."""
    told = "gone: the check command could not run: .*; unsure: .*x.*; bad: check command: failed"
    then: list[Record] = [UNSURE, {"id": "bad", "check": "command", "with": {"argv": ["false"]}}, CLEAN]
    good = ending(tmp_path / "good", final=NO_FOLDER, then=then)
    report = good.run(flow="own")
    assert (report.outcome, report.exit_code) == ("finally_failed", 1)
    assert re.search(f"but at its end {told}", report.reason)
    assert list(recorded_steps(report.folder / "journal.sqlite").values())[-2:] == ["finally bad", "finally clean"]
    assert good.resume().reason == report.reason
    assert ended(good) == "success 0\n"
    failed = ending(tmp_path / "failed", play={"fault": {"status": 400}}, final=NO_FOLDER, then=then)
    report = failed.run(flow="own")
    assert (report.outcome, report.exit_code) == ("bad_request", 3)
    assert re.search(f"; at its end {told}", report.reason)


class Killed(BaseException):
    """Nothing catches it: started work stays started."""


def kill_in(final: str, patch: pytest.MonkeyPatch) -> None:
    """Half of the work of the final check of this name is done when the process ends."""
    work = protection.checked

    def half(run: Any, folder: Path, *rest: Any) -> Any:
        if folder.name != f"finally.{final}":
            return work(run, folder, *rest)
        with (run.workspace.root / "ended").open("a") as file:
            file.write("half\n")
        raise Killed

    patch.setattr(check, "checked", half)


LAST: Record = {"id": "last", "check": "command", "with": {"argv": ["sh", "-c", "echo last >> ended"]}}


def test_kill_between_two_checks_repeats_neither_the_first_nor_the_tests(tmp_path: Path) -> None:
    """What the first check changed is no reason to test again."""
    team = ending(tmp_path, then=[LAST], play=say(files=[{"path": "new.txt", "content": "new"}]))
    with pytest.MonkeyPatch.context() as patch:
        kill_in("last", patch)
        assert team.run(flow="own", run_tests=True).exit_code == 3
    assert ended(team) == "success 0\nhalf\n"
    assert team.resume().exit_code == 0
    assert ended(team) == "success 0\nlast\n"
    assert any("interrupted check command left in the workspace were undone" in each for each in warnings(team.events))


@pytest.mark.parametrize(("play", "code"), [(say(), 0), ({"fault": {"status": 400}}, 3)])
@pytest.mark.parametrize("approved", [True, False])
def test_check_that_is_not_repeatable_waits_for_a_person_after_a_kill(
    tmp_path: Path, play: Record, code: int, approved: bool
) -> None:
    team = ending(tmp_path, then=[{**LAST, "once": True}], play=play)
    with pytest.MonkeyPatch.context() as patch:
        kill_in("last", patch)
        with contextlib.suppress(Killed):
            team.run(flow="own")
    assert team.resume(yes=True).exit_code == 4
    answer("latest", runs_dir=team.runs, approved=approved)
    report = team.resume()
    assert report.exit_code == (code or (0 if approved else 1))
    assert ended(team).count("last") == approved
    assert ("last: the check command was interrupted, and" in report.reason) != approved
    assert ended(team).count("success") == (code == 0)


def test_its_own_limit_ends_it(tmp_path: Path) -> None:
    final = {**CLEAN, "with": {"argv": ["sleep", "60"]}, "limits": {"seconds": 0.3}}
    report = ending(tmp_path, final=final).run(flow="own")
    assert "took longer than its limit of 0.3 s" in report.reason


def test_ctrl_c_waits_for_it(tmp_path: Path) -> None:
    team = ending(tmp_path, play=NEVER)
    assert interrupted(team, ("turn_started", "one"), flow="own").exit_code == 130
    assert ended(team) == "cancelled 130\n"
    assert read(team.runs / "latest/run.json")["exit_code"] == 130


@pytest.mark.parametrize(
    ("final", "problem"),
    [
        ({"check": "command", "with": {"argv": ["{{ steps.two.x }}"]}}, "two"),
        ({"check": "comand"}, "comand"),
        ({"check": "command", "with": {"arg": []}}, "arg"),
    ],
)
def test_mistakes_are_found_before_a_run(tmp_path: Path, final: Record, problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem):
        ending(tmp_path, final=final).run(flow="own")


def reading(folder: Path, template: str) -> TeamFolder:
    return ending(folder, final={**CLEAN, "with": {"argv": ["true", template]}})


@pytest.mark.parametrize(
    "text", ["{{ steps.one.x }}", "{{ roles.one.x | default(0) }}", "{{ goal }} {{ steps.one.x.y | upper }}"]
)
def test_result_of_a_step_that_may_not_have_run_needs_a_default(tmp_path: Path, text: str) -> None:
    with pytest.raises(DefinitionError, match=r"finally.*with.argv.1.: .* has no value .*one.*: finally also runs if"):
        reading(tmp_path, text).run(flow="own")


@pytest.mark.parametrize(
    "text",
    [
        "{{ steps.one.visits }} {{ steps.one.status }} {{ steps.one.error }} {{ outcome }}",
        "{{ steps.one.x | default('') }}{{ (roles.one | default({})).x | default('') }}",
        "{% if steps.one.x is defined %}{{ steps.one.x }}{% endif %}",
        "{{ steps.one.x if steps.one.visits }}",
    ],
)
def test_guarded_result_may_be_read(tmp_path: Path, text: str) -> None:
    """Where it stays undefined after all, the check could not run, which the end line says."""
    report = reading(tmp_path, text).run(flow="own")
    assert report.exit_code == ("if steps.one.visits" in text)


def test_called_flow_must_not_have_it(tmp_path: Path) -> None:
    team = with_flow(ending(tmp_path), {"steps": [{"call": "own"}]}, "outer")
    with pytest.raises(DefinitionError, match="finally, which belongs to the end of a run"):
        team.run(flow="outer")
