"""The report of real runs: it is made at every end, and has what the run's folder has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from codex_multi_role import RunReport, answer, fork
from codex_multi_role.extensions.pages.report import changes
from codex_multi_role.extensions.pages.report.page import write_report
from codex_multi_role.extensions.pages.report.parts import LONGEST
from codex_multi_role.run_folder import RunFolder
from tests.support.browser import Report
from tests.support.console import console
from tests.support.recorded_runs import make_run
from tests.support.scripted_codex import codex_replaced
from tests.support.serving import client
from tests.support.teams import WRITER, Record, TeamFolder, fan, say, solver, with_flow
from tests.support.workspaces import write_program

pytestmark = pytest.mark.usefixtures("scripted_codex")

GOAL = "reach </script><script>alert(1)</script> & <b>all</b> of it"
HOSTILE = '</script><!--<script>alert("x")</script><img src=http://evil.example/i.png onerror=alert(1)>\u2028]]>'
SECRET = "ghp_0123456789abcdefghij0123456789abcdef"
TEST = f"def test_it():\n    assert 1 == 2, {HOSTILE!r}\n"
TODOS = [{"id": "T1", "content": "Title of a call"}]
DOES_NOT_FIT = {
    "text": "no JSON here",
    "repairs": [say(f"mended {HOSTILE}", files=[{"path": "a.py", "content": SECRET}])],
}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> TeamFolder:
    """One cycle: a plan, an answer that is repaired and writes a file that fails its test, a judgement."""
    files = [{"path": "test_a.py", "content": TEST}, {"path": "../out.txt", "content": "x"}]
    return TeamFolder(
        tmp_path_factory.mktemp("team"),
        {"plan": {"tools": ["write_todos"]}, "build": {"behaviors": {"apply_files": True}}, "judge": {}},
        {
            "plan": [
                {"steps": [{"call": "write_todos", "arguments": {"todos": TODOS}}, say("planned")]},
                say("planned"),
            ],
            "build": [DOES_NOT_FIT, say("done", files=files)],
            "judge": [say("judged")] * 2,
        },
    )


@pytest.fixture(scope="module")
@codex_replaced()
def ended(team: TeamFolder) -> RunReport:
    return team.run(goal=GOAL, run_tests=True, cycles=2)


@pytest.fixture(scope="module")
def report(ended: RunReport) -> Report:
    assert (ended.page, ended.page_problem) == (ended.folder / "report.html", "")
    return Report(ended.folder / "report.html")


@pytest.mark.extensions
@pytest.mark.real
def test_changed_lines_lead_to_their_turn(report: Report) -> None:
    assert "Who wrote which line a.py 1 line" in report.text
    line = '<td><a href="#turn-build-3">build 3</a></td><td class="number">1</td><td><code>def test_it():</code></td>'
    assert line in report.source


@pytest.mark.real
def test_all_changes_are_shown_as_far_as_they_have_room(
    report: Report, ended: RunReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = "2 files changed since the start A a.py +1 \N{MINUS SIGN}0 A test_a.py +2 \N{MINUS SIGN}0 a.py"
    lines = "added by build 2 Lines of a.py: old number, new number, text. 1+[redacted] test_a.py added by build 3"
    assert f"{named} {lines}" in report.text
    monkeypatch.setattr(changes, "IN_REPORT", (1, 0, False))
    text = Report(write_report(RunFolder(ended.folder), tmp_path / "short.html")).text
    assert "build 2 1 line, too much for this page All lines, and 1 more file: codex-multi-role diff" in text


@pytest.mark.real
def test_it_says_first_how_the_run_ended(report: Report, ended: RunReport) -> None:
    assert GOAL in report.text
    assert f"All cycles are used up {ended.reason} exit code 1: ended without reaching the goal" in report.text
    assert f"Next codex-multi-role resume {ended.run_id} --runs-dir" in report.text
    assert f"{ended.totals['turns']:.0f} turns 1 repairs" in report.text
    assert "attempt 1" not in report.text
    assert "failed: 1 failed tests 002" in report.text


@pytest.mark.real
def test_every_turn_has_all_its_parts(report: Report) -> None:
    """These are its prompt, answer, handoff, changes, files and tests."""
    turns = [name for name in report.entries if name.startswith("turn-")]
    assert turns == [
        "turn-plan-1",
        "turn-build-1",
        "turn-build-2",
        "turn-judge-1",
        "turn-plan-2",
        "turn-build-3",
        "turn-judge-2",
    ]
    assert report.titles("turn-plan-2") == ["Prompt", "Answer (handoff)", "Details"]
    assert report.part("turn-plan-1", "Prompt")["text"].startswith("Role: plan\n")
    assert report.part("turn-build-1", "Answer")["text"] == "no JSON here"
    assert "summarydone" in report.part("turn-build-3", "Answer (handoff)")["text"]
    assert "+++ b/test_a.py" in report.part("turn-build-3", "Changes")["text"]
    assert re.findall("[A-Z]{5,}", report.part("turn-build-3", "Files")["text"]) == ["WROTE", "SKIPPED"]
    tests = report.part("turn-build-3", "Tests 002")["text"]
    assert "statusfailed" in tests
    assert "failed1" in tests
    output = report.part("turn-build-3", "Output")
    assert "test_it" in output["text"]
    assert output["file"] == "tests/002/result.json"


@pytest.mark.real
def test_tools_that_a_turn_called_are_shown(report: Report, team: TeamFolder, ended: RunReport) -> None:
    """In the report, and in the panel of the live page."""
    called = report.part("turn-plan-1", "Tool calls")["text"]
    panel = client(team.runs).get(f"/runs/{ended.run_id}/panel?at=turn-plan-1").text
    for words in ("write_todos", "answered", "Title of a call"):
        assert words in called
        assert words in panel


@pytest.mark.real
def test_repair_names_the_turn_it_fixes(report: Report) -> None:
    assert "build turn 2 completed repairs turn 1 1 file" in report.text


@pytest.mark.real
def test_nothing_that_a_model_wrote_becomes_html(report: Report) -> None:
    scripts = [found for tag, found in report.elements if tag == "script"]
    assert len(scripts) == 1
    assert report.handlers == []
    assert not {"img", "iframe", "object", "embed", "link", "base"} & {tag for tag, _ in report.elements}
    assert HOSTILE in report.part("turn-build-2", "Answer (handoff)")["text"]


@pytest.mark.real
def test_it_needs_nothing_from_elsewhere_and_may_have_nothing(report: Report) -> None:
    assert all(link.startswith("#") for link in report.links)
    assert "url(" not in report.source.replace("url(#arrow-", "")
    assert "@import" not in report.source
    policy = next(found["content"] or "" for tag, found in report.elements if "http-equiv" in found)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


@pytest.mark.real
def test_report_masks_secrets_that_run_folder_keeps_exactly(report: Report, ended: RunReport) -> None:
    """Handoffs and patches in the run folder keep the exact text."""
    exact = [path for path in ended.folder.rglob("*") if path.name in ("handoff.json", "changes.patch")]
    assert any(SECRET in path.read_text() for path in exact)
    assert SECRET not in report.source
    assert "+[redacted]" in report.part("turn-build-2", "Changes")["text"]


@pytest.mark.long
def test_fork_shows_the_turns_it_inherited_as_such(team: TeamFolder, ended: RunReport) -> None:
    """No short test writes the page of a fork."""
    made = fork(ended.run_id, runs_dir=team.runs, start="team:2", changes={"run_tests": False})
    assert made.page is not None
    report = Report(made.page)
    assert "plan turn 1 completed inherited planned" in report.text
    assert report.text.count("inherited") == 4
    assert f"fork forked from {ended.run_id} before team:2; the workspace" in report.text
    assert "turn-plan-2" in report.entries
    assert f"{made.totals['turns']:.0f} turns" in report.text
    assert "plancompleted1" in report.text, "the table of roles has its own turn alone"


def test_fan_out_has_its_items_and_their_processes(tmp_path: Path) -> None:
    ended = solver(tmp_path, [fan(["a", "b", "c"], concurrency=2), {"ask": "last"}]).run(flow="own")
    assert ended.page is not None
    report = Report(ended.page)
    assert len([name for name in report.entries if name.startswith("turn-solver")]) == 3
    assert "for each item of 3 items" in report.text


def test_run_killed_within_a_turn(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "killed", status="running", outcome="", reason="", exit_code=None, totals={})
    events = [line for line in folder.events_path.read_text().splitlines() if '"run_ended"' not in line]
    begun = [number for number, line in enumerate(events) if '"turn_started"' in line]
    folder.events_path.write_text("\n".join(events[: begun[2] + 1]) + '\n{"type": "turn_en')
    turn = folder.path / "implementer/turn_002"
    turn.mkdir(parents=True)
    (turn / "turn.json").write_text('{"status": "running"}')
    report = Report(write_report(folder))
    assert "It was killed" in report.text
    assert "Next codex-multi-role resume killed" in report.text
    assert "implementer turn 2 killed" in report.text


def test_run_killed_in_a_second_session_has_the_figures_of_both(tmp_path: Path) -> None:
    first = {"turns": 1, "repairs": 0, "input_tokens": 1200, "output_tokens": 34, "seconds": 12.5}
    folder = make_run(tmp_path / "runs", "twice", status="running", outcome="", exit_code=None, totals=first)
    report = Report(write_report(folder))
    assert "2 turns 1 repairs 2400 tokens in 68 tokens out 12 s worked" in report.text


def test_run_without_turns(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "empty")
    folder.write_record(
        {"run_id": "empty", "status": "failed", "outcome": "not_logged_in", "exit_code": 2, "goal": "x"}
    )
    report = Report(write_report(folder))
    assert "No turn was started." in report.text
    assert report.entries == {}


def test_run_whose_events_are_gone_still_shows_its_turns(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "silent")
    folder.events_path.unlink()
    report = Report(write_report(folder))
    assert list(report.entries) == ["turn-planner-1", "turn-planner-2"]
    assert report.part("turn-planner-2", "Handoff")["text"] == "summaryplanned\nit"


def test_what_rows_leave_out_is_in_their_parts(tmp_path: Path) -> None:
    """An answer that was only streamed, a reason that is cut, the files that a role changed itself, skipped tests."""
    folder = make_run(tmp_path / "runs", "wordy")
    tokens = {"input": 1200, "output": 34}
    reason = "it does not fit: " + "word " * 100
    result = {"status": "invalid_reply", "reason": reason, "tokens": tokens, "seconds": 1.5}
    changed = [SECRET, *(f"{number}.py" for number in range(50))]
    (folder.path / "planner/turn_001/delta_text.txt").write_text("half an ans")
    (folder.path / "planner/turn_001/turn.json").write_text(json.dumps(result))
    (folder.path / "planner/turn_002/turn.json").write_text(json.dumps({"changed_paths": changed}))
    folder.events_path.write_text(folder.events_path.read_text().replace('"skipped": 0, "sec', '"skipped": 2, "sec'))
    report = Report(write_report(folder))
    part = report.part("turn-planner-1", "Answer")
    assert (part["text"], part["file"]) == ("half an ans", "planner/turn_001/delta_text.txt")
    assert f"reason{reason}tokensinput1200output34" in report.part("turn-planner-1", "Details")["text"]
    assert "51 files changed" in report.text
    assert "[redacted]0.py1.py" in report.part("turn-planner-2", "Details")["text"]
    assert report.text.count("passed: 4 passed, 2 skipped") == 4, "in the totals, timeline and tree, and at the turn"


def test_answer_that_is_the_handoff_is_shown_once(tmp_path: Path) -> None:
    """The handoff also has the fields that the answer left out, as null."""
    turn = make_run(tmp_path / "runs", "once").path / "planner/turn_002"
    (turn / "assistant_text.txt").write_text('{"summary": "planned"}')
    (turn / "handoff.json").write_text('{"summary": "planned", "error": null, "analysis_md": "long"}')
    report = Report(write_report(RunFolder(turn.parents[1])))
    assert report.titles("turn-planner-2") == ["Prompt", "Answer (handoff)", "Details"]


@pytest.mark.real
def test_check_is_found_whatever_its_step_is_called(tmp_path: Path) -> None:
    check: Record = {"check": "command", "with": {"argv": ["true"], "json": False}}
    steps: list[Record] = [{**check, "id": "look.1"}, {**check, "id": "look", "for_each": ["a"]}, {"ask": "last"}]
    ended = solver(tmp_path, steps).run(flow="own")
    assert list(Report(ended.page or Path()).entries) == ["check-look.1.1", "check-look.1.0", "turn-last-1"]


def test_long_content_is_summarized_in_row_and_shown_in_part(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "long")
    check, turn = folder.path / "checks/team.1", folder.path / "planner/turn_002"
    check.mkdir(parents=True)
    result = {"status": "failed", "coverage": 61.5, "reason": "two lines are missing", "found": ["x" * 70] * 4000}
    (check / "result.json").write_text(json.dumps(result))
    (turn / "applied_files.json").write_text(json.dumps([{"path": "a.py", "status": "WROTE"}] * 8000))
    report = Report(write_report(folder))
    assert "check team.1 failed coverage 61.5 % two lines are missing" in report.text
    for part in (report.part("check-team.1", "Result"), report.part("turn-planner-2", "Files")):
        assert len(part["text"]) == LONGEST
        assert f"({(folder.path / part['file']).stat().st_size:,} bytes)" in part["cut"]


def test_unreadable_record_is_reported_and_events_are_shown(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "damaged")
    folder.record_path.write_text("{")
    report = Report(write_report(folder))
    assert "run.json cannot be read" in report.text
    assert "Convert roman numerals" in report.text
    assert "planner turn 1" in report.text


def test_unreadable_flow_is_reported(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "odd", flow="gone")
    assert 'The flow cannot be drawn: unknown flow "gone"' in Report(write_report(folder)).text


@pytest.mark.extensions  # in the flow cycles, nothing refers to a step
def test_step_named_like_a_secret_hides_only_the_flow_diagram(tmp_path: Path) -> None:
    """The step's name is the value of a secret variable; the rest of the report is shown."""
    path = make_run(tmp_path / "runs", "secret", flow="research").path
    report = Report(write_report(RunFolder(path, {"API_KEY": "questions"})))
    assert (
        "The flow cannot be drawn: a name in research is the value of a secret variable and was masked" in report.text
    )
    assert "planner turn 1" in report.text


@pytest.mark.real
def test_role_whose_files_are_gone_or_no_files_is_passed_over(
    team: TeamFolder, ended: RunReport, tmp_path: Path
) -> None:
    copy = tmp_path / "runs" / ended.run_id
    shutil.copytree(ended.folder, copy, symlinks=True)
    shutil.rmtree(copy / "plan/turn_001")
    (copy / "judge/turn_001/prompt.txt").unlink()
    (copy / "judge/turn_001/prompt.txt").mkdir()
    (copy / "judge/turn_001/handoff.json").write_bytes(b"\xff{")
    report = Report(write_report(RunFolder(copy)))
    assert report.titles("turn-plan-1") == ["Details"]
    assert report.titles("turn-judge-1") == ["Answer", "Handoff", "Details"]


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RuntimeError("a mistake"), KeyboardInterrupt()]
)
def test_failed_report_is_reported_and_keeps_run_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fails(*_: object) -> Path:
        raise error

    monkeypatch.setattr("codex_multi_role.extensions.pages.report.page.write_report", fails)
    team = TeamFolder(tmp_path, {"one": {"behaviors": {"can_finish": True}}}, {"one": [say(status="DONE")]})
    report = team.run()
    assert (report.exit_code, report.status, report.page) == (0, "succeeded", None)
    assert report.page_problem == (str(error) or "KeyboardInterrupt")


@pytest.mark.long
def test_it_is_made_where_the_run_is_parked_too(tmp_path: Path) -> None:
    """No short test writes the page of a parked run, and again when it is resumed."""
    plays = [say(files=[{"path": name, "content": "new\n"}]) for name in ("before", "after")]
    review = {"id": "go_on", "review": {"question": "Go on <now>?", "show": "what"}}
    steps = [{"ask": "maker"}, review, {"id": "again", "ask": "maker"}]
    team = with_flow(TeamFolder(tmp_path, {"maker": WRITER}, {"maker": plays}), {"steps": steps})
    parked = team.run(flow="own")
    assert (parked.exit_code, parked.page is not None) == (4, True)
    report = Report(parked.page or Path())
    assert "question go_on.1 open Go on <now>?" in report.text
    assert f"Next codex-multi-role approve {parked.run_id}" in report.text
    answer(parked.run_id, runs_dir=team.runs, approved=True, comment="good enough")
    resumed = team.resume()
    report = Report(resumed.page or Path())
    assert "question go_on.1 approved by" in report.text
    assert "Go on <now>? good enough" in report.text
    assert report.part("question-go_on.1", "Subject")["text"] == "what"
    assert "2 files changed since the start A after +1" in report.text
    assert "1 file changed since the decision go_on.1 A after +1" in report.text
    assert len(ids := [found["id"] for _, found in report.elements if "id" in found]) == len({*ids})


@pytest.mark.real
def test_node_takes_the_script_if_there_is_one(report: Report) -> None:
    """A syntax error would be found in a browser only, which may not be here."""
    script = next(text for text in re.findall(r"<script>(.*?)</script>", report.source, re.DOTALL))
    if shutil.which("node") is None:
        pytest.skip("there is no node to read the script")
    assert subprocess.run(["node", "--check", "-"], input=script, text=True, timeout=30, check=False).returncode == 0


BROWSER = '#!/bin/sh\necho "$1" > opened.txt\n'


def test_report_is_written_into_the_folder_of_the_run(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first")
    done = console("report", "latest", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"wrote {folder.path}/report.html\n"
    assert "<h1>Convert roman numerals</h1>" in (folder.path / "report.html").read_text()
    assert "report.html" in console("show", "latest", folder=tmp_path).stdout


@pytest.mark.real
@pytest.mark.sample("report")
def test_it_is_written_elsewhere_and_opened(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first")
    browser = write_program(tmp_path / "browser", '#!/bin/sh\nprintf %s "$1" > opened.txt\n')
    variables = {"BROWSER": f"{browser} %s"}
    done = console("report", "first", "-o", "page.html", "--open", folder=tmp_path, variables=variables)
    assert done.returncode == 0, done.stderr
    assert not (folder.path / "report.html").exists()
    assert (tmp_path / "opened.txt").read_text() == (tmp_path / "page.html").as_uri()


def test_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first")
    done = console("report", "first", "-o", "no/page.html", folder=tmp_path)
    assert done.returncode == 2
    assert "folder 'no' does not exist" in done.stderr
