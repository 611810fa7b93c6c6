"""Annotations of a run: its failure, its failing tests and its warnings, as GitHub's runner reads a log."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.extensions.ci.reports import MOST_OF_A_KIND, run_annotations
from codex_multi_role.presentation.pieces import Note
from tests.support.continuous_integration import PYTEST_REPORT, leave_tests, make_ended
from tests.support.workflow_log import read_log


def test_failure_its_tests_and_the_warnings_are_annotated(tmp_path: Path) -> None:
    run = make_ended(tmp_path)
    (tmp_path / "workspace/tests").mkdir()
    (tmp_path / "workspace/tests/test_a.py").write_text("")
    leave_tests(run.folder, PYTEST_REPORT)
    log = "\n".join(run_annotations(run, tmp_path))
    failure, bad, broken, warning = read_log(log)
    assert failure[0] == "error"
    assert failure[2].startswith("All cycles are used up: all 3 cycles are used up (exit code 1: ")
    assert "\nnext: codex-multi-role resume " in failure[2]
    place = {"file": "workspace/tests/test_a.py", "line": "7", "title": "test tests.test_a::test_bad"}
    assert bad == ("error", place, "assert 1 == 2")
    assert broken == ("error", {"title": "test tests.test_b"}, "collection failure")
    assert warning == ("warning", {"title": "codex-multi-role"}, "the disk is nearly full")


def test_place_outside_the_checkout_is_not_named(tmp_path: Path) -> None:
    run = make_ended(tmp_path)
    (tmp_path / "workspace/tests").mkdir()
    (tmp_path / "workspace/tests/test_a.py").write_text("")
    leave_tests(run.folder, PYTEST_REPORT)
    for top in (None, tmp_path / "elsewhere"):
        assert not [each for each in read_log("\n".join(run_annotations(run, top))) if "file" in each[1]]


def test_no_more_than_github_shows(tmp_path: Path) -> None:
    run = make_ended(tmp_path)
    case = '<testcase classname="t" name="x"><failure message="m" /></testcase>'
    leave_tests(run.folder, f"<testsuite>{case * 30}</testsuite>")
    run.course.notes[:] = [Note("", f"warning {number}", is_warning=True) for number in range(30)]
    kinds = [name for name, _, _ in read_log("\n".join(run_annotations(run, None)))]
    assert (kinds.count("error"), kinds.count("warning")) == (MOST_OF_A_KIND, MOST_OF_A_KIND)


def test_good_run_has_no_errors(tmp_path: Path) -> None:
    run = make_ended(tmp_path, 0)
    assert {name for name, _, _ in read_log("\n".join(run_annotations(run, None)))} == {"warning"}
