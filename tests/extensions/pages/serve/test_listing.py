"""The first page, newest first, searched, a page at a time, and the pages of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from codex_multi_role.extensions.pages.report.changes import ON_PAGE, diff_files
from codex_multi_role.extensions.pages.serve.access import Access
from codex_multi_role.extensions.pages.serve.application import create_application
from codex_multi_role.extensions.pages.serve.comparison import Comparison
from codex_multi_role.extensions.pages.serve.forms import in_form_words
from codex_multi_role.extensions.pages.serve.listing import ROWS, RunList
from codex_multi_role.presentation.recorded import Records
from codex_multi_role.run_folder import Question, Questions, RunFolder
from codex_multi_role.workspace.differences import Changes
from codex_multi_role.workspace.git import UserGit
from tests.support.recorded_runs import make_asking, make_run, record
from tests.support.serving import HOST, client, project
from tests.support.teams import Record
from tests.support.workspaces import Link, commit_all, write_files


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


@pytest.fixture
def asking(tmp_path: Path) -> RunFolder:
    """A run that is parked with a question."""
    return make_asking(tmp_path / "runs", "first")


ACCESS = Access("127.0.0.1")


def visitor(folder: RunFolder) -> TestClient:
    return client(folder.path.parent, ACCESS)


def form(**fields: str) -> dict[str, str]:
    return {"form_secret": ACCESS.form_secret, **fields}


@pytest.mark.parametrize("fields", [{}, {"verdict": ""}, {"verdict": "approved"}])
def test_answer_without_a_verdict_decides_nothing(asking: RunFolder, fields: dict[str, str]) -> None:
    answer = visitor(asking).post("/runs/first/answer", data=form(question="ok.1", comment="why", **fields))
    assert (answer.status_code, "No answer was chosen" in answer.text) == (409, True)
    assert [question.key for question in Questions(asking.path).pending()] == ["ok.1"]


@pytest.mark.real
def test_answer_is_recorded_though_the_run_cannot_resume(asking: RunFolder) -> None:
    sent = form(question="ok.1", verdict="approve", go_on="yes")
    answer = visitor(asking).post("/runs/first/answer", data=sent)
    assert (answer.status_code, "Your answer is recorded, but" in answer.text) == (409, True)
    assert Questions(asking.path).pending() == []


@pytest.mark.real
def test_options_and_fields_have_inputs_and_wrong_values_are_refused(asking: RunFolder) -> None:
    whole: dict[str, object] = {"type": "integer", "description": "How many"}
    fields = {"copies": whole, "draft": {"type": "boolean", "default": False}}
    asked_at = "2026-01-31T10:15:00.000+00:00"
    Questions(asking.path).ask(Question("to.1", "Which?", "", asked_at, None, None, options=["a", "b"], fields=fields))
    shown = visitor(asking).get("/runs/first/decide?question=to.1").text
    assert '<button name="value.option" value="a">a</button>' in shown
    assert "How many · integer" in shown
    assert '<option value="false" selected>false</option>' in shown
    sent = form(question="to.1", comment="so <b>") | {"value.option": "b", "value.copies": "x", "value.draft": "true"}
    boxed = visitor(asking).post("/runs/first/answer", data={**sent, "add": "after:3:a <b>.py"}).text
    assert '<textarea id="on.after:3:a &lt;b&gt;.py"' in boxed
    assert "so &lt;b&gt;</textarea>" in boxed
    refused = visitor(asking).post("/runs/first/answer", data=sent)
    assert (refused.status_code, "copies: &#39;x&#39; is not of type" in refused.text) == (409, True)
    assert "so &lt;b&gt;</textarea>" in refused.text
    assert 'name="value.copies" aria-describedby="value.copies-help" aria-invalid="true"' in refused.text
    on_line = {"on.after:3:a <b>.py": "why?", "on.after:4:b.py": " "}
    visitor(asking).post("/runs/first/answer", data={**sent, "value.copies": "2", **on_line})
    answer = Questions(asking.path).asked()[-1].answer
    assert answer is not None
    assert (answer.option, answer.values) == ("b", {"copies": 2, "draft": True})
    assert answer.comments == [{"path": "a <b>.py", "line": 3, "side": "after", "text": "why?"}]
    assert visitor(asking).get("/runs/first/decide?question=to.1").headers["location"] == "/runs/first"


@pytest.mark.real
def test_list_from_a_role_is_edited_as_text_and_can_be_emptied(asking: RunFolder) -> None:
    texts = {"type": "array", "items": {"type": "string"}}
    fields: dict[str, Record] = {
        "tasks": {**texts, "default": ["<b>sort", "count"]},
        "more": {**texts, "default": ["two\nlines"]},
        "note": {"type": "string", "default": "\nfirst\nsecond"},
    }
    asked_at = "2026-01-31T10:15:00.000+00:00"
    Questions(asking.path).ask(Question("to.1", "These?", "", asked_at, None, None, fields=fields))
    shown = visitor(asking).get("/runs/first/decide?question=to.1").text
    for text in ("&lt;b&gt;sort\ncount", "[\n  &#34;two\\nlines&#34;\n]", "\nfirst\nsecond"):
        assert f">\n{text}</textarea>" in shown
    sent = {"tasks": "\r\n", "more": '[\r\n  "two\\nlines"\r\n]', "note": "\r\nfirst\r\nsecond"}
    values = {f"value.{name}": text for name, text in sent.items()}
    visitor(asking).post("/runs/first/answer", data=form(question="to.1", verdict="approve") | values)
    answer = Questions(asking.path).asked()[-1].answer
    assert answer is not None
    assert answer.values == {"tasks": [], "more": ["two\nlines"], "note": "\nfirst\nsecond"}


def test_missing_report_page_shows_command_to_create_it(asking: RunFolder) -> None:
    shown = visitor(asking).get("/runs/first/report").text
    assert f"`codex-multi-role report first --runs-dir {asking.path.parent}` writes one" in shown


def test_folder_that_is_named_as_no_run_leads_nowhere(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first")
    folder.path.rename(folder.path.with_name("my run"))
    assert visitor(folder).get("/runs/my run").status_code == 404


def test_playbook_that_is_gone_is_not_taken_for_the_model(tmp_path: Path) -> None:
    sent = form(flow="cycles", goal="go", workspace=str(tmp_path), cycles="1", playbook="gone")
    answer = client(tmp_path / "runs", ACCESS).post("/start", data=sent)
    assert (answer.status_code, "unknown playbook gone" in answer.text) == (422, True)
    assert not (tmp_path / "runs").exists()


@pytest.mark.real
def test_run_out_of_cycles_can_resume_with_more_cycles(tmp_path: Path) -> None:
    """The form suggests a number of cycles. An invalid number is refused, and the output of the run stays."""
    folder = make_run(tmp_path / "runs", "first")
    (folder.path / "output.log").write_text("of an earlier process")
    assert 'name="cycles" value="6"' in visitor(folder).get("/runs/first").text
    answer = visitor(folder).post("/runs/first/resume", data=form(cycles="many"))
    assert answer.status_code == 409
    assert "Cycles: &#39;many&#39; is no whole number" in answer.text
    assert "--" not in answer.text.partition('class="notice wrong"')[2].partition("</div>")[0]
    assert (folder.path / "output.log").read_text() == "of an earlier process"
    assert list((tmp_path / "runs/.starting").iterdir()) == []


@pytest.mark.real
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"flow": "ship", "input.place": "x", "input.size": "4"}, "missing goal\nFill in “Goal”."),
        ({"flow": "stall", "goal": "go", "cycles": "1\0"}, "cannot be passed to a process"),
    ],
)
def test_start_error_is_shown_on_form_with_submitted_values(tmp_path: Path, fields: dict[str, str], words: str) -> None:
    team = project(tmp_path)
    visitor = TestClient(create_application(team.runs, tmp_path / "roles", ACCESS), f"http://{HOST}")
    answer = visitor.post("/start", data=form(**fields))
    assert answer.status_code == 422
    assert words in answer.text
    notice = answer.text.partition('class="notice wrong"')[2].partition("</div>")[0]
    assert not any(option in notice for option in ("--", "Exit code", "error:"))
    if size := fields.get("input.size"):
        assert f'value="{size}" id="input.size"' in answer.text
    assert [*team.runs.glob("*/run.json"), *team.runs.glob(".starting/*")] == []


def test_run_that_its_provider_parked_says_until_when(tmp_path: Path) -> None:
    parked = {"status": "parked", "outcome": "quota", "exit_code": 5}
    shown = visitor(make_run(tmp_path / "runs", "first", **parked, resets_at="2026-01-31T12:00:00Z")).get("/runs/first")
    assert "when the provider accepts turns again, the run parks again" in shown.text
    assert 'name="cycles"' not in shown.text


def test_file_that_became_a_link_or_has_a_key_shifts_no_changes(tmp_path: Path) -> None:
    """Git prints two patches of the link; a masked key has fewer lines."""
    write_files(tmp_path, {"b": "b\n", "c": "c\n"})
    commit_all(tmp_path)
    key = f"-----BEGIN PRIVATE KEY-----\n{'MIIE' * 16}\n-----END PRIVATE KEY-----\n<b>\n"
    write_files(tmp_path, {"b": Link("a"), "c": "changed\n", 'a "key"': key})
    commit_all(tmp_path)
    changes = Changes(UserGit(tmp_path / ".git", tmp_path), "HEAD~", "HEAD")
    files = diff_files(changes, RunFolder(tmp_path).redact, {}, ON_PAGE)
    shown = {each.change.path: [line.html for _, lines in each.hunks for line in lines] for each in files}
    masked = ["[redacted]-----END PRIVATE KEY-----", "&lt;b&gt;"]
    assert shown == {'a "key"': masked, "b": ["b", "a"], "c": ["c", "changed"]}


def test_two_runs_are_compared_turn_by_turn_of_the_same_visits(tmp_path: Path) -> None:
    one, other = (make_run(tmp_path, name) for name in ("one", "other"))
    (other.path / "planner/turn_001/prompt.txt").write_text("Another prompt")
    shorter = other.events_path.read_text().splitlines(keepends=True)
    other.events_path.write_text("".join(line for line in shorter if '"implementer", "turn": 3' not in line))
    compared = Comparison.of(one, other)
    pairs = [(pair.step, pair.one.turn.role if pair.one else "", pair.differs) for pair in compared.pairs]
    assert pairs == [
        *(("team.1", "planner", ["prompt"]), ("team.1", "implementer", []), ("team.1", "implementer", [])),
        *(("team.2", "planner", []), ("team.2", "implementer", ["only in one"])),
    ]
    assert [run.course.used.turns for run in (compared.one, compared.other)] == [5, 4]
    page = client(tmp_path).get("/compare?run=one&run=other").text
    assert all(words in page for words in ("Compare two runs of cycles", "team.2", "$1.68"))
    assert compared.one.files is None, "no file is called unchanged"
