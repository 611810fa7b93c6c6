"""What later steps read, a role must answer: otherwise it is asked again; one that answers only an `error` declines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.support.console import console
from tests.support.models import model_requests
from tests.support.teams import Record, TeamFolder, read, say, with_flow

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


REASON = "there is no schema of the orders table"
DECLINED = {"json": {"error": REASON}}
STRICT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["verdict"],
    "properties": {"verdict": {"enum": ["good", "bad"]}},
}


@pytest.mark.extensions
def test_in_a_cycle_the_next_role_sees_the_refusal(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, {"one": [DECLINED, say("found it")], "two": [say(), say()]})
    report = team.run(cycles=2)
    ended = [("one", 1, "declined"), ("two", 1, "completed"), ("one", 2, "completed"), ("two", 2, "completed")]
    assert team.turns() == ended
    assert json.dumps({"error": REASON}, indent=2) in team.prompt("two")
    turn = read(report.folder / "one/turn_001/turn.json")
    assert (turn["status"], turn["outcome"], turn["reason"]) == ("declined", "declined", REASON)
    assert report.totals["repairs"] == 0
    history = read(report.folder / "controller_state.json")["history"]
    assert history[0] == {"role": "one", "turn": 1, "handoff": {"error": REASON}}
    shown = console("show", "latest", folder=tmp_path).stdout
    assert "declined" in shown
    assert REASON in shown
    assert REASON in (report.folder / "report.html").read_text()


def test_refusal_of_a_role_that_may_finish_is_not_a_success(tmp_path: Path) -> None:
    refusal = {"json": {"error": REASON, "status": "DONE"}}
    team = TeamFolder(tmp_path, {"one": {"behaviors": {"can_finish": True}}}, {"one": [refusal]})
    report = team.run()
    assert (report.outcome, report.exit_code) == ("cycles_used_up", 1)
    assert report.reason == f"one declined: {REASON}"


def test_schema_is_sent_as_written_and_a_refusal_is_read_all_the_same(tmp_path: Path) -> None:
    plays = {"one": [DECLINED, {"json": {"verdict": "good", "error": "None"}}]}
    team = TeamFolder(tmp_path, {"one": {"output_schema": STRICT}}, plays)
    report = team.run(cycles=2)
    assert team.turns() == [("one", 1, "declined"), ("one", 2, "completed")]
    assert read(report.folder / "one/turn_002/handoff.json") == {"verdict": "good"}
    assert team.of_type("warning") == []
    wire = (report.folder / "one/events.jsonl").read_text()
    sent = [json.loads(line)["message"] for line in wire.splitlines() if '"turn/start"' in line]
    assert [each["params"]["outputSchema"] for each in sent] == [STRICT, STRICT]


def test_done_beside_an_error_is_a_handoff_that_does_not_end_the_run(tmp_path: Path) -> None:
    answer = {"json": {"summary": "Added the column.", "mood": "fine", "status": "DONE", "error": REASON}}
    properties = {"summary": {"type": "string"}, "status": {"enum": ["DONE", "CONTINUE"]}}
    schema = {**STRICT, "properties": properties, "required": ["summary", "status"]}
    role = {"output_schema": schema, "behaviors": {"can_finish": True}}
    report = (team := TeamFolder(tmp_path, {"one": role}, {"one": [answer]})).run()
    assert (report.outcome, report.exit_code) == ("cycles_used_up", 1)
    assert read(report.folder / "one/turn_001/handoff.json") == {"summary": "Added the column.", "status": "DONE"}
    assert [event["message"] for event in team.of_type("warning")] == [
        "one: its answer was corrected: $.mood dropped",
        f"one: its answer is a handoff, but has an error: {REASON}; its DONE does not count",
    ]
    assert report.totals["repairs"] == 0


def test_role_with_strict_output_is_asked_again_instead_of_corrected(tmp_path: Path) -> None:
    plays = {"one": [{"json": {"verdict": "good", "mood": "fine"}, "repairs": [{"json": {"verdict": "good"}}]}]}
    team = TeamFolder(tmp_path, {"one": {"output_schema": STRICT, "strict_output": True}}, plays)
    team.run()
    assert team.turns() == [("one", 1, "invalid_reply"), ("one", 2, "completed")]
    assert "'mood' was unexpected" in team.prompt("one", 2)


def test_refused_step_fails_the_run_and_resume_asks_again(tmp_path: Path) -> None:
    team = with_flow(TeamFolder(tmp_path, {"one": {}}, {"one": [DECLINED]}), {"steps": [{"ask": "one"}]})
    report = team.run(flow="own")
    assert (report.status, report.outcome, report.exit_code) == ("failed", "declined", 3)
    assert report.reason == f"role one declined: {REASON}"
    team.write_plays(one=[say()])
    assert team.resume(playbook=str(team.playbook)).exit_code == 0
    assert team.turns() == [("one", 2, "completed")]


def test_tolerated_refusal_is_step_error_and_next_roles_input(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, {"one": [DECLINED], "two": [say()]})
    ends = [{"when": f"steps.one.error == '{REASON}'", "end": "without_it"}]
    steps = [{"ask": "one", "allow": ["failed"]}, {"ask": "two", "next": ends}]
    report = with_flow(team, {"steps": steps}).run(flow="own")
    assert report.outcome == "without_it"
    assert REASON in team.prompt("two")
    assert [event["reason"] for event in team.of_type("role_skipped")] == [f"role one declined: {REASON}"]


def test_refusal_of_an_item_does_not_answer(tmp_path: Path) -> None:
    """The next role gets how the item ended, as of one that did not answer; the role's latest answer stays."""
    steps = [
        {"ask": "one", "for_each": {"items": ["a", "b"], "allow": ["failed"]}},
        {"ask": "two", "prompt": "Last: {{ roles.one.summary }}"},
    ]
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, {"one": [say("did a"), DECLINED], "two": [say()]})
    report = with_flow(team, {"steps": steps}).run(flow="own")
    assert report.exit_code == 0
    prompt = team.prompt("two")
    assert "Last: did a" in prompt
    failed = {"status": "failed", "error": REASON}
    given = prompt.partition("INCOMING HANDOFF (JSON):\n")[2]
    assert json.JSONDecoder().raw_decode(given)[0] == {"results": [{"summary": "did a"}, failed]}
