"""What the platforms read: annotations in a log, a report of links, and blocks that keep text of others as code."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.ci.ended_run import EndedRun
from codex_multi_role.extensions.ci.reports import MOST_OF_A_KIND, link_annotations, run_annotations
from codex_multi_role.extensions.ci.run_blocks import code, code_block
from codex_multi_role.presentation.pieces import Note
from tests.support.continuous_integration import PYTEST_REPORT, RUN_ID, leave_tests, make_ended
from tests.support.workflow_log import read_log
from tests.support.workspaces import write_files


def test_failure_its_tests_and_the_warnings_are_annotated(tmp_path: Path) -> None:
    run = make_ended(tmp_path)
    write_files(tmp_path, {"workspace/tests/test_a.py": ""})
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
    write_files(tmp_path, {"workspace/tests/test_a.py": ""})
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


JOB = "https://gitlab.example.com/team/shop/-/jobs/17"


def test_links_lead_to_the_runs_folder_among_the_artifacts(tmp_path: Path) -> None:
    run = make_ended(tmp_path)
    report = link_annotations(run, {"CI_JOB_URL": JOB, "CI_PROJECT_DIR": str(tmp_path)})
    assert report == {
        "codex-multi-role": [
            {
                "external_link": {
                    "label": f"run {RUN_ID}: All cycles are used up",
                    "url": f"{JOB}/artifacts/browse/runs/{RUN_ID}/",
                }
            },
            {"external_link": {"label": "run.json", "url": f"{JOB}/artifacts/file/runs/{RUN_ID}/run.json"}},
        ]
    }


def test_only_artifacts_are_linked(tmp_path: Path) -> None:
    """Nothing is linked outside a CI job, for a run folder outside the project, or without a run."""
    run = make_ended(tmp_path)
    elsewhere = {"CI_JOB_URL": JOB, "CI_PROJECT_DIR": str(tmp_path / "project")}
    for environment in ({}, elsewhere):
        assert link_annotations(run, environment) == {}
    none = EndedRun.without_run(UsageError("x"))
    assert link_annotations(none, elsewhere) == {}


@pytest.mark.parametrize(
    ("line", "span"),
    [("``\u200b`", "```` ``` ````"), ("\u202e", ""), ("a\x1b[2Jb", "`a[2Jb`"), ("\u200b/merge", "`/merge`")],
)
def test_code_in_markdown_is_fenced_after_cleaning(line: str, span: str) -> None:
    """Otherwise what is removed from a text could make it end its own fence."""
    assert code(line) == span
    assert code_block([f"{line}`"])[0].startswith("````" if "``" in line else "```")
    assert not code_block([line])[1].startswith("/")
