"""What a form of a run's page does, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from codex_multi_role.extensions.web.access import Access
from codex_multi_role.extensions.web.application import create_application
from codex_multi_role.run_folder import Question, Questions, RunFolder
from tests.support.recorded_runs import make_run
from tests.support.serving import HOST, client, project


@pytest.fixture
def asking(tmp_path: Path) -> RunFolder:
    """A run that is parked with a question."""
    folder = make_run(tmp_path / "runs", "first", status="parked", outcome="waiting_for_review", exit_code=4)
    Questions(folder.path).ask(Question("ok.1", "Ship it?", "", "2026-01-31T10:15:00.000+00:00", None, None))
    return folder


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
    assert "<option selected>false</option>" in shown
    sent = form(question="to.1", comment="so <b>") | {"value.option": "b", "value.copies": "x", "value.draft": "true"}
    boxed = visitor(asking).post("/runs/first/answer", data={**sent, "add": "after:3:a <b>.py"}).text
    assert '<textarea id="on.after:3:a &lt;b&gt;.py"' in boxed
    assert "so &lt;b&gt;</textarea>" in boxed
    refused = visitor(asking).post("/runs/first/answer", data=sent)
    assert (refused.status_code, "copies: &#39;x&#39; is not of type" in refused.text) == (409, True)
    assert "so &lt;b&gt;</textarea>" in refused.text
    on_line = {"on.after:3:a <b>.py": "why?", "on.after:4:b.py": " "}
    visitor(asking).post("/runs/first/answer", data={**sent, "value.copies": "2", **on_line})
    answer = Questions(asking.path).asked()[-1].answer
    assert answer is not None
    assert (answer.option, answer.values) == ("b", {"copies": 2, "draft": True})
    assert answer.comments == [{"path": "a <b>.py", "line": 3, "side": "after", "text": "why?"}]
    assert visitor(asking).get("/runs/first/decide?question=to.1").headers["location"] == "/runs/first"


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
        assert f'name="input.size" value="{size}"' in answer.text
    assert [*team.runs.glob("*/run.json"), *team.runs.glob(".starting/*")] == []


def test_run_that_its_provider_parked_says_until_when(tmp_path: Path) -> None:
    parked = {"status": "parked", "outcome": "quota", "exit_code": 5}
    shown = visitor(make_run(tmp_path / "runs", "first", **parked, resets_at="2026-01-31T12:00:00Z")).get("/runs/first")
    assert "when the provider accepts turns again, the run parks again" in shown.text
    assert 'name="cycles"' not in shown.text
