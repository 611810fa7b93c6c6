from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codex_multi_role.catalog.flow_spec import CHANGED_FILES as OF_FLOWS
from codex_multi_role.cli.foreground import open_view, summary
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import next_command
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder import events as e
from codex_multi_role.run_options import RunReport
from tests.support.recorded_runs import in_order, make_run, started, whole_run

RUN = "20260131_101500_0a1b2c3d"
TOTALS = {"turns": 5, "repairs": 1, "input_tokens": 6000, "output_tokens": 170, "cost": 2.1, "seconds": 12.5}


def report(exit_code: int, status: str, outcome: str, reason: str = "", hint: str = "") -> RunReport:
    return RunReport(RUN, Path("/project/runs") / RUN, status, outcome, reason, exit_code, hint, TOTALS)


def test_end_has_the_files_with_their_lines_and_the_tests_before(tmp_path: Path) -> None:
    """In twelve lines."""
    files = [{"path": f"part{n}.py", "added": n, "removed": 1} for n in range(7)]
    folder = make_run(tmp_path / "runs", RUN, files=[*files, {"path": "a.png", "added": None, "removed": None}])
    ended = replace(report(0, "succeeded", "done", "implementer said DONE"), folder=folder.path)
    before = e.BaselineMeasured("failed", 3, 2, 0, 0, 1.0)
    lines = list(summary(ended, Course.of([*in_order(before), *whole_run()])))
    assert lines[2].startswith("  files    part0.py +0 -1, part1.py +1 -1, ")
    assert lines[2].endswith("part5.py +5 -1 and 2 more; 1 skipped")
    assert lines[3:5] == ["  tests    passed: 4 passed", "  before   failed: 3 passed, 2 failed"]
    assert len(lines) <= 12
    make_run(tmp_path / "again", RUN, files=[])  # what was written is as it was before
    same = list(summary(replace(ended, folder=tmp_path / "again" / RUN), Course.of(whole_run())))
    assert [line for line in same if line.startswith("  files")] == ["  files    1 skipped"]
    make_run(tmp_path / "listed", RUN, files=files, result={"title": OF_FLOWS.title, "text": "part0.py"})
    listed = list(summary(replace(ended, folder=tmp_path / "listed" / RUN), Course.of(whole_run())))
    assert listed[2:7] == ["", "Changed files", "  part0.py", "", "  files    1 skipped"]


def following(exit_code: int, runs_dir: str = "runs") -> str:
    ended = replace(report(exit_code, "ended", "x"), folder=Path(runs_dir) / RUN)
    return list(summary(ended, Course.of(in_order(started()))))[-1].removeprefix("  next     ")


@pytest.mark.parametrize(
    ("recorded", "command"),
    [
        ({"suggestion": "resume RUN --cycles 6"}, "resume first --cycles 6"),
        ({"suggestion": "fork RUN --from plan"}, "fork first --from plan"),
        ({"suggestion": "fork RUN --from s --input x=RUN"}, "fork first --from s --input x=RUN"),
        ({}, "resume first --cycles 6"),  # an earlier version's
        ({"outcome": "not_verified"}, "show first"),
    ],
)
def test_next_command_after_missed_goal_follows_suggestion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: dict[str, str], command: str
) -> None:
    """If a run ended without reaching its goal, the next command is what that end suggests."""
    monkeypatch.chdir(tmp_path)
    folder = make_run(Path("runs"), "first", **recorded)
    assert next_command(folder, 1) == f"codex-multi-role {command}"
    Path("runs").rename("elsewhere")
    elsewhere = command.replace("first", "first --runs-dir elsewhere")
    assert next_command(RunFolder(Path("elsewhere/first")), 1) == f"codex-multi-role {elsewhere}"


def test_next_command_is_one_that_helps() -> None:
    assert following(3) == f"codex-multi-role resume {RUN}"
    assert following(130) == f"codex-multi-role resume {RUN}"
    assert following(0, "my runs") == f"codex-multi-role show {RUN} --runs-dir 'my runs'"


def test_failure_shows_its_hint_and_a_flow_its_own_end() -> None:
    course = Course.of(in_order(started(), e.FilesApplied("implementer", 1, 1, 0, ["a.py"])))
    lines = list(summary(report(3, "failed", "no_plan_left", "x", "look there"), course))
    assert (lines[0], lines[2]) == ("No plan left: x", "  files    a.py")
    assert "  hint     look there" in lines


@pytest.mark.extensions
def test_summary_shows_report_path_or_why_it_is_missing() -> None:
    ended = replace(report(0, "succeeded", "done"), folder=Path("runs") / RUN)
    page = ended.folder / "report.html"
    assert f"  report   {page}" in summary(replace(ended, page=page), Course())
    lines = summary(replace(ended, page_problem="cannot write it"), Course())
    assert f"  report   not written: cannot write it; `codex-multi-role report {RUN}` tries again" in lines
    lines = summary(replace(ended, folder=Path("my runs") / RUN, page_problem="full"), Course())
    again = f"codex-multi-role report {RUN} --runs-dir 'my runs'"
    assert f"  report   not written: full; `{again}` tries again" in lines


@pytest.mark.parametrize("asks", [True, False])
def test_plain_lines_leave_questions_to_who_asks_them(capsys: pytest.CaptureFixture[str], asks: bool) -> None:
    with open_view(Course(), as_json=False, quiet=False, plain=True, asks=asks) as view:
        for event in in_order(started(), e.ReviewAsked("ok.1", "Ship it?"), e.ReviewAnswered("ok.1", True, "", "ann")):
            view(event.as_record())
    said = capsys.readouterr().err
    assert said.count("Ship it?") == (0 if asks else 1)
    assert "review ok.1: approved by ann" in said
