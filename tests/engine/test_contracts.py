"""What later steps read, a role must answer: otherwise it is asked again, and told which field and who reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.models import model_requests
from tests.support.teams import Record, TeamFolder, read, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

TASKS = """\
steps:
  - {id: plan, ask: planner}
  - id: build
    ask: worker
    for_each: "{{ steps.plan.tasks }}"
    as: task
    max_items: 2
    prompt: "Build {{ task.title }}."
"""
GATE = """\
steps:
  - id: judge
    ask: planner
    next:
      - {when: "steps.judge.score >= 7", end: good}
      - {end: bad, exit: 1}
"""
ONE = {"title": "a wall"}


def _team(tmp_path: Path, flow: str, *answers: Record, **role: object) -> TeamFolder:
    first, *repairs = ({"json": each} for each in answers)
    plays: dict[str, list[Record]] = {
        "planner": [{**first, "repairs": repairs}],
        "worker": [{"json": {"done": True}}] * 2,
    }
    team = TeamFolder(tmp_path, {"planner": role, "worker": {}}, plays)
    return with_flow(team, yaml.safe_load(flow))


def test_every_prompt_says_what_later_steps_read(tmp_path: Path) -> None:
    """And that of a repair turn what is wrong; `verdicts/wrong_values.yaml` has what is asked again."""
    report = _team(tmp_path, TASKS, {"tasks": "none"}, {"tasks": [ONE]}).run(flow="own")
    assert (report.exit_code, report.totals["repairs"]) == (0, 1)
    problem = "\"tasks\" must be a list, not a text, 'none': step build"
    assert problem in (report.folder / "planner/turn_002/prompt.txt").read_text()
    for turn in ("planner/turn_001", "planner/turn_002"):
        prompt = (report.folder / turn / "prompt.txt").read_text()
        assert "\nLater steps read these fields of it:\n- tasks: a list of at most 2 elements, req" in prompt
    assert "Later steps" not in (report.folder / "worker/turn_001/prompt.txt").read_text()


def test_answer_that_stays_wrong_fails_its_step(tmp_path: Path) -> None:
    report = _team(tmp_path, GATE, *[{"score": "high"}] * 3).run(flow="own", repair_attempts=2)
    assert report.exit_code == 3
    assert '"score" must be a number' in report.reason


def test_null_for_a_field_that_may_be_missing_is_dropped(tmp_path: Path) -> None:
    text = "{% if steps.judge.score is defined %}{{ steps.judge.score + 1 }}{% endif %}none"
    steps = [{"id": "judge", "ask": "planner"}, {"id": "use", "ask": "worker", "with": {"text": text}}]
    team = _team(tmp_path, yaml.safe_dump({"steps": steps}), {"score": None, "why": None})
    report = team.run(flow="own")
    assert (report.exit_code, report.totals["repairs"]) == (0, 0)
    folder = report.folder / "planner/turn_001"
    assert read(folder / "handoff.json") == {"why": None}
    assert "null" in (folder / "assistant_text.txt").read_text()
    assert [event["message"] for event in team.of_type("warning")] == [
        "planner: its answer was corrected: $.score dropped"
    ]


def test_refusal_and_done_are_not_judged(tmp_path: Path) -> None:
    declined = _team(tmp_path / "a", GATE, {"error": "there is nothing to judge"}).run(flow="own")
    assert (declined.exit_code, declined.outcome) == (3, "declined")
    done = _team(tmp_path / "b", GATE, {"status": "DONE"}, behaviors={"can_finish": True}).run(flow="own")
    assert (done.exit_code, done.outcome) == (0, "done")


def test_schema_of_the_author_stays_as_it_is(tmp_path: Path) -> None:
    """It says what a field may be; templates only add which fields there must be."""
    schema = {"type": "object", "properties": {"score": {"type": ["number", "null"]}, "why": {}}}
    flow = GATE.replace("steps.judge.score >= 7", "(steps.judge.score or 8) >= 7 and steps.judge.why")
    report = _team(tmp_path, flow, {}, {"score": None, "why": "yes"}, output_schema=schema).run(flow="own")
    assert (report.exit_code, report.totals["repairs"]) == (0, 1)
    assert read(report.folder / "planner/turn_002/handoff.json") == {"score": None, "why": "yes"}


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_codex_asks_the_model_for_a_closed_schema_with_what_later_steps_need(tmp_path: Path) -> None:
    schema: Record = {"type": "object", "required": [], "properties": {"score": {"type": "number"}}}
    schema |= {"additionalProperties": False}
    with model_requests() as bodies:
        report = _team(tmp_path, GATE, {"score": "9"}, {"score": 9}, output_schema=schema).run(flow="own")
    assert (report.exit_code, report.totals["repairs"]) == (0, 1)
    formats = [body["text"]["format"] for body in bodies]
    assert [each["schema"] for each in formats] == [schema | {"required": ["score"]}] * 2
    assert {(each["type"], each["strict"]) for each in formats} == {("json_schema", True)}


def test_contract_alone_sends_no_schema(tmp_path: Path) -> None:
    report = _team(tmp_path, GATE, {"score": None}, {"score": 9}).run(flow="own")
    assert (report.exit_code, report.totals["repairs"]) == (0, 1)
    assert "outputSchema" not in (report.folder / "planner/events.jsonl").read_text()
