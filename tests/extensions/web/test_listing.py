"""The first page: newest first, searched, a page at a time, what is known kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.extensions.web.forms import in_form_words
from codex_multi_role.extensions.web.listing import ROWS, RunList
from codex_multi_role.presentation.recorded import Records
from codex_multi_role.run_folder import Question, Questions
from tests.support.recorded_runs import make_run, record


def ids(listed: RunList, **wanted: str | int) -> list[str]:
    return [row.run_id for row in listed.page(**wanted).rows]  # type: ignore[arg-type]


def test_newest_come_first_a_page_at_a_time(tmp_path: Path) -> None:
    for number in range(ROWS + 5):
        make_run(tmp_path, f"run{number:03d}", started_at=f"2026-01-31T10:15:00.{number:03d}+00:00")
    listed = RunList(Records(tmp_path).look)
    assert ids(listed)[0] == f"run{ROWS + 4:03d}"
    assert len(ids(listed)) == ROWS
    assert ids(listed, number=2) == ["run004", "run003", "run002", "run001", "run000"]
    assert ids(listed, number=99) == ids(listed, number=2)
    assert ids(listed, number=0) == ids(listed)


def test_search_looks_at_goal_id_flow_status_and_outcome(tmp_path: Path) -> None:
    make_run(tmp_path, "one", goal="Add a flag")
    make_run(tmp_path, "two", flow="testgen", status="succeeded", outcome="success", exit_code=0)
    listed = RunList(Records(tmp_path).look)
    assert ids(listed, search="FLAG add") == ["one"]
    assert ids(listed, search="testgen") == ids(listed, search="succ") == ["two"]
    assert ids(listed, search="flag testgen") == []


def test_runs_are_filtered_by_flow_date_and_failure_and_sorted(tmp_path: Path) -> None:
    good = {"status": "succeeded", "outcome": "done", "exit_code": 0, "totals": {"seconds": 99}}
    make_run(tmp_path, "one", started_at="2026-01-30T10:15:00.000+00:00", **good)
    failed = {"status": "failed", "outcome": "role_failed", "exit_code": 3}
    make_run(tmp_path, "two", flow="testgen", **failed, started_at="2026-01-31T10:15:00.000+00:00")
    listed = RunList(Records(tmp_path).look)
    assert listed.page().flows == ["cycles", "testgen"]
    assert ids(listed, flow="testgen") == ids(listed, since="2026-01-31") == ids(listed, show="failed") == ["two"]
    assert (ids(listed), ids(listed, sort="duration")) == (["two", "one"], ["one", "two"])


def test_run_is_shown_as_it_is_now(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "one", status="running", exit_code=None)
    listed = RunList(Records(tmp_path).look)
    assert listed.page().rows[0].status == "killed"
    folder.write_record(record("one", status="succeeded", outcome="done", exit_code=0))
    assert listed.page().rows[0].status == "succeeded"


def test_run_without_an_end_is_shown_with_what_its_turns_came_to(tmp_path: Path) -> None:
    first = {"turns": 1, "repairs": 0, "input_tokens": 1200, "output_tokens": 34, "seconds": 12.5}
    make_run(tmp_path, "one", status="running", exit_code=None, totals=first)
    row = RunList(Records(tmp_path).look).page().rows[0]
    assert (row.turns, row.seconds) == (2, 12.5)


@pytest.mark.parametrize(
    "state",
    [
        {"status": "parked", "outcome": "waiting_for_review", "exit_code": 4},
        {"status": "running", "exit_code": None},  # and killed
    ],
)
def test_run_waiting_for_person_is_listed_with_question(tmp_path: Path, state: dict[str, object]) -> None:
    folder = make_run(tmp_path, "one", **state)
    make_run(tmp_path, "two")
    Questions(folder.path).ask(Question("ok.1", "Ship it?", "", "2026-01-31T10:15:00.000+00:00", None, None))
    waiting = RunList(Records(tmp_path).look).page(show="waiting")
    assert [(row.run_id, row.status, row.question) for row in waiting.rows] == [("one", "waiting", "Ship it?")]
    assert waiting.counts == {"all": 2, "running": 0, "waiting": 1, "failed": 1}


def test_invalid_or_unreadable_run_hides_no_other_run(tmp_path: Path) -> None:
    make_run(tmp_path, "good")
    make_run(tmp_path, "bad").record_path.write_text("{")
    (tmp_path / "empty").mkdir()
    (tmp_path / "my run").mkdir()
    (tmp_path / "my run/run.json").write_text("{}")
    (tmp_path / ".starting").mkdir()
    assert {row.run_id: row.status for row in RunList(Records(tmp_path).look).page().rows} == {
        "good": "ended",
        "bad": "unreadable",
    }
    assert RunList(Records(tmp_path / "nowhere").look).page().rows == []


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (
            "error: Invalid value for '--cycles': 'x' is no whole number\nhint: See `codex-multi-role run --help`.",
            "Cycles: 'x' is no whole number",
        ),
        (
            'error: missing goal\nhint: Set it with --goal "…" or --goal-file FILE.',
            "missing goal\nFill in “Goal”.",
        ),
        ("error: Invalid value for '--max-turns': 'x' is not a number.", "Max turns: 'x' is not a number."),
        ("hint: Set --input target_coverage=<number>.", "Fill in “target coverage”."),
        ("hint: Set --input 'wanted=[a, b]'.", "Fill in “wanted”."),
        ("Name a folder with --workspace.", "Name a folder with “Workspace”."),
        ("the option --goalkeeper stays, and so does --run-id", "the option --goalkeeper stays, and so does --run-id"),
    ],
)
def test_error_names_the_fields_of_the_form(output: str, words: str) -> None:
    assert in_form_words(output) == words
