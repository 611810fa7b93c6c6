"""A red run is a red report, whatever a model and its tests have written."""

from __future__ import annotations

import re
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml
from junitparser import TestCase as Case

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.ci.ended_run import LONGEST_TEXT, MOST_PARTS, MOST_PLACES, EndedRun
from codex_multi_role.extensions.ci.junit import junit_report
from codex_multi_role.run_folder import Question, Questions
from tests.support.continuous_integration import PYTEST_REPORT, leave_tests, make_ended
from tests.support.workflow_log import HOSTILE

ILLEGAL_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def cases(report: bytes) -> dict[str, Case]:
    return {f"{suite.name}/{case.name}": case for suite in JUnitXml.fromstring(report) for case in suite}


def report_of(run: EndedRun) -> dict[str, Case]:
    return cases(junit_report(run))


@pytest.mark.parametrize(("exit_code", "kind"), [(1, Failure), (3, Error), (4, Error), (5, Error), (130, Error)])
def test_run_is_red_where_its_exit_code_is_not_0(tmp_path: Path, exit_code: int, kind: type) -> None:
    [result] = report_of(make_ended(tmp_path, exit_code))["codex-multi-role/flow cycles"].result
    assert type(result) is kind
    assert "all 3 cycles are used up" in result.message
    assert f"exit code {exit_code}: " in result.text
    assert "next: codex-multi-role resume 20260131_101500_0a1b2c3d" in result.text


def test_run_that_reached_its_goal_is_green_and_tells_its_turns(tmp_path: Path) -> None:
    case = report_of(make_ended(tmp_path, 0, "implementer said DONE"))["codex-multi-role/flow cycles"]
    assert case.result == []
    assert case.time == 12.5
    assert "planner turn 2: completed in 1.5 s: planned it" in case.system_out
    assert "warning: the disk is nearly full" in case.system_out


def test_parked_run_says_how_to_answer(tmp_path: Path) -> None:
    run = make_ended(tmp_path, 4)
    assert run.folder is not None
    question = Question("approve.1", "Keep it?", "", "2026-01-31T10:15:00.000+00:00", None, None)
    Questions(run.folder.path).ask(question)
    [result] = report_of(make_parked_again(run))["codex-multi-role/flow cycles"].result
    assert "codex-multi-role approve 20260131_101500_0a1b2c3d" in result.text


def make_parked_again(run: EndedRun) -> EndedRun:
    from codex_multi_role.run_options import RunReport

    assert run.folder is not None
    folder = run.folder.path
    return EndedRun.of(
        RunReport(folder.name, folder, "parked", "waiting_for_review", "", 4, "", run.totals),
        run.course,
    )


def test_what_is_wrong_before_a_run_is_red(tmp_path: Path) -> None:
    report = junit_report(EndedRun.without_run(UsageError("no flow called x", "There are a, b.")))
    [result] = cases(report)["codex-multi-role/run"].result
    assert result.message == "No run: no flow called x"
    assert "There are a, b." in result.text


def test_latest_tests_keep_their_names_and_outcomes(tmp_path: Path) -> None:
    run = make_ended(tmp_path)
    leave_tests(run.folder, PYTEST_REPORT)
    found = report_of(run)
    assert {name: [type(each).__name__ for each in case.result] for name, case in found.items()} == {
        "codex-multi-role/flow cycles": ["Failure"],
        "tests/test_good": [],
        "tests/test_bad": ["Failure"],
        "tests/test_later": ["Skipped"],
        "tests/tests.test_b": ["Error"],
    }
    assert found["tests/test_bad"].classname == "tests.test_a"
    assert "tests/test_a.py:7: AssertionError" in found["tests/test_bad"].result[0].text


@pytest.mark.parametrize("report", ["", "<testsuites", PYTEST_REPORT[:60] + "</testsuite></testsuites>"])
def test_tests_that_are_red_as_a_whole_are_a_red_case(tmp_path: Path, report: str) -> None:
    run = make_ended(tmp_path)
    leave_tests(run.folder, report, status="timed out", reason="no result after 300 s", output_tail="collecting")
    [result] = report_of(run)["tests/tests 002"].result
    assert isinstance(result, Error)
    assert result.message == "timed out: no result after 300 s"
    assert result.text == "collecting"


def test_run_without_tests_has_no_test_suite(tmp_path: Path) -> None:
    run = make_ended(tmp_path)
    leave_tests(run.folder, "", status="no tests")
    assert list(report_of(run)) == ["codex-multi-role/flow cycles"]


def test_failure_is_at_its_place_in_the_workspace(tmp_path: Path) -> None:
    run = make_ended(tmp_path)
    (tmp_path / "workspace/tests").mkdir()
    (tmp_path / "workspace/tests/test_a.py").write_text("")
    long_name = "/".join(["x" * 300] * 2)
    outside = (
        f"/etc/passwd:1: in x\n../runs/x:2: in y\n{long_name}:3: in z\ntests/test_a.py:7: AssertionError\nlib.py:9: E"
    )
    leave_tests(run.folder, PYTEST_REPORT.replace("tests/test_a.py:7: AssertionError", outside))
    tests = run.tests
    assert tests is not None
    assert [(case.full_name, case.file, case.line) for case in tests.red] == [
        ("tests.test_a::test_bad", "tests/test_a.py", 7),
        ("tests.test_b", "", 0),
    ]


def test_report_of_nothing_but_places_is_not_looked_at_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_ended(tmp_path)
    looked_at: list[str] = []
    monkeypatch.setattr("codex_multi_role.extensions.ci.ended_run._is_inside", lambda file, _: looked_at.append(file))
    places = "".join(f"{number}.py:1: \n" for number in range(1500))
    leave_tests(run.folder, PYTEST_REPORT.replace("tests/test_a.py:7: AssertionError", places))
    assert run.folder is not None
    assert run.tests is not None
    assert len(looked_at) < 2 * (MOST_PLACES + MOST_PARTS)


def test_secret_that_is_cut_through_is_masked_none_the_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2-" * 10)
    run = make_ended(tmp_path)
    long = f"{'hunter2-' * 10}{'x' * (LONGEST_TEXT - 50)}"
    leave_tests(run.folder, PYTEST_REPORT.replace("tests/test_a.py:7: AssertionError", long))
    assert "hunter2" not in report_of(run)["tests/test_bad"].result[0].text


@given(st.text() | st.sampled_from(HOSTILE))
def test_nothing_anybody_wrote_breaks_the_report(text: str) -> None:
    run = EndedRun.without_run(UsageError(text, text))
    report = junit_report(run).decode()
    assert not ILLEGAL_IN_XML.search(report)
    assert list(cases(report.encode())) == ["codex-multi-role/run"]


def test_what_tests_wrote_stays_text(tmp_path: Path) -> None:
    run = make_ended(tmp_path)
    name = "]]></failure><testcase name='x'/>&amp;"
    leave_tests(run.folder, PYTEST_REPORT.replace('name="test_bad"', f"name={quoteattr(name)}"))
    assert f"tests/{name}" in report_of(run)
