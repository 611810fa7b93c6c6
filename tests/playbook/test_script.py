"""The playbook file: where it is found, what its YAML may say, and which of its answers is selected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.playbook import list_playbooks, load_playbook
from codex_multi_role.playbook.request import AnswerKey, read_request
from codex_multi_role.playbook.script import Fault, Playbook, ScriptedVisit, Usage
from codex_multi_role.playbook.selection import Message, ToolCall, select
from tests.support.models import PLANNER, asked, body, user


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({}, "give exactly one of json, text, call, patch, fault, choose, steps, attempts"),
        ({"json": {}, "text": ""}, "give exactly one of"),
        ({"text": "a", "arguments": {}}, "arguments belongs to call"),
        (
            {"steps": [{"text": "a"}], "delay_seconds": 1},
            "delay_seconds belongs to json or text or call or patch or fault",
        ),
        ({"steps": []}, "at least 1"),
        ({"attempts": [{"attempts": [{"text": "a"}]}]}, "attempts"),
        ({"text": "a", "deltas": -1}, "deltas"),
        ({"text": "a", "delay_seconds": 3601}, "delay_seconds"),
        ({"payload": {}}, "payload"),
        ({"call": ""}, "call"),
    ],
)
def test_entry_is_exactly_one_thing(entry: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        ScriptedVisit.model_validate(entry)


@pytest.mark.parametrize(
    ("fault", "form"),
    [
        ({"status": 429, "code": "rate_limit_exceeded"}, "status"),
        ({"code": "context_length_exceeded"}, "code"),
        ({"drop": True, "after_events": 0}, "drop"),
        ({"stall_seconds": 2}, "stall_seconds"),
        ({"garbage": ""}, "garbage"),
        ({"empty": True}, "empty"),
    ],
)
def test_forms_of_a_fault(fault: dict[str, Any], form: str) -> None:
    assert Fault.model_validate(fault).form == form


@pytest.mark.parametrize("fault", [{}, {"status": 200}, {"drop": False}, {"drop": True, "empty": True}, {"body": {}}])
def test_fault_is_one_that_can_be_played(fault: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Fault.model_validate(fault)


def test_last_attempt_stands_for_all_further_ones() -> None:
    entry = ScriptedVisit.model_validate({"attempts": [{"fault": {"status": 500}}, {"text": "works"}]})
    assert [entry.turn(attempt).text for attempt in (1, 2, 3)] == ["", "works", "works"]


def test_repairs_are_their_own_answers() -> None:
    entry = ScriptedVisit.model_validate({"text": "bad", "repairs": [{"text": "worse"}, {"json": {"ok": True}}]})
    assert [entry.answer(repair).text for repair in (0, 1)] == ["bad", "worse"]
    assert entry.answer(2).payload == {"ok": True}
    with pytest.raises(UsageError, match=r"no repair 3 \(the visit has 2\)"):
        entry.answer(3)


def test_visits_run_out_unless_the_last_is_repeated() -> None:
    script = {"name": "x", "roles": {"planner": [{"text": "1"}, {"text": "2"}]}}
    with pytest.raises(UsageError, match=r"no visit 3 of role planner \(it has 2\)"):
        Playbook.model_validate(script).entry("planner", 3)
    assert Playbook.model_validate(script | {"repeat_last": True}).entry("planner", 9).text == "2"


def test_role_that_is_not_named_plays_the_default() -> None:
    script = {"name": "x", "roles": {"planner": [{"text": "1"}]}}
    with pytest.raises(UsageError, match=r'no role plannr \(it has planner\); did you mean "planner"\?'):
        Playbook.model_validate(script).entry("plannr", 1)
    with_default = Playbook.model_validate(script | {"default": {"text": "any"}})
    assert with_default.entry("plannr", 7).text == "any"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / "playbooks" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_project_s_playbook_comes_before_a_packaged_one(tmp_path: Path) -> None:
    own = write(tmp_path, "roman-numerals", "name: mine\ndefault: {text: hi}\n")
    assert load_playbook("roman-numerals").name == "roman-numerals"
    assert load_playbook("roman-numerals", tmp_path).name == "mine"
    assert list_playbooks(tmp_path)["roman-numerals"] == own
    assert load_playbook("roman-numerals", tmp_path).source == own


def test_path_is_read_as_it_is_and_what_is_missing_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "mine", "name: mine\ncycles: 2\nroles: {planner: [{json: {summary: hi}}]}\n")
    assert load_playbook(str(path)).cycles == 2
    with pytest.raises(UsageError, match=r'unknown playbook "roman-numeral"; did you mean "roman-numerals"\?'):
        load_playbook("roman-numeral", tmp_path)
    with pytest.raises(DefinitionError, match=r"nowhere\.yaml"):
        load_playbook(str(tmp_path / "nowhere.yaml"))


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ("{json: {summary: '{{ promt }}'}}", r"roles.planner\[0\].json.summary: .*promt"),
        ("{text: '{{ prompt '}", r"roles.planner\[0\].text: "),
        ("{steps: [{call: x, arguments: {a: '{{ nope }}'}}]}", r"roles.planner\[0\].steps\[0\].arguments.a: "),
        ("{text: a, repairs: [{patch: '{{ nope }}'}]}", r"roles.planner\[0\].repairs\[0\].patch: "),
        ("{choose: [{when: 'promt', text: a}]}", r"roles.planner\[0\].choose\[0\].when: "),
        ("{txt: a}", r'roles.planner\[0\]: unknown key "txt"; did you mean "text"'),
    ],
)
def test_mistakes_are_found_when_the_file_is_loaded(tmp_path: Path, entry: str, place: str) -> None:
    path = write(tmp_path, "wrong", f"name: wrong\nroles: {{planner: [{entry}]}}\n")
    with pytest.raises(DefinitionError, match=place) as caught:
        load_playbook("wrong", tmp_path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("name", list_playbooks())
def test_every_shipped_playbook_loads(name: str) -> None:
    playbook = load_playbook(name)
    assert playbook.name == name
    assert playbook.description
    assert playbook.goal


def playing(entry: dict[str, Any]) -> Playbook:
    return Playbook.model_validate({"name": "demo", "roles": {"planner": [entry]}})


def test_strings_inside_json_are_templates_and_keep_their_type() -> None:
    entry = {"json": {"said": ["{{ prompt }}!", "{{ visit }}"], "{{ role }}": None, "count": "{{ tool_outputs }}"}}
    answer = select(playing(entry), asked("hi")).answer
    assert isinstance(answer, Message)
    assert json.loads(answer.text) == {"said": ["hi!", 1], "{{ role }}": None, "count": []}


def test_text_is_one_template() -> None:
    entry = {"text": "{% if 'FAILED' in prompt %}red{% else %}green{% endif %} {{ role }}.{{ repair }}.{{ attempt }}\n"}
    assert select(playing(entry), asked("x FAILED")).answer == Message("red planner.0.1\n")


def test_steps_follow_the_tool_outputs() -> None:
    playbook = playing(
        {"steps": [{"call": "ls", "arguments": {"dir": "{{ role }}"}}, {"text": "{{ tool_outputs[0] }}"}]}
    )
    assert select(playbook, asked()).answer == ToolCall("ls", '{"dir": "planner"}')
    assert select(playbook, asked(outputs=("a b",))).answer == Message("a b")
    with pytest.raises(
        UsageError, match=r"playbook demo has no step 3 \(the turn has 2\): asked for role planner, visit 1"
    ):
        select(playbook, asked(outputs=("a", "b")))


def test_patch_is_a_pure_heredoc() -> None:
    answer = select(playing({"patch": "*** Begin Patch\n+{{ prompt }}\n*** End Patch\n"}), asked("new")).answer
    assert isinstance(answer, ToolCall)
    command = "apply_patch <<'EOF'\n*** Begin Patch\n+new\n*** End Patch\n\nEOF"
    assert json.loads(answer.arguments) == {"cmd": command}


def test_arguments_may_be_text_that_is_not_json() -> None:
    assert select(playing({"call": "ls", "arguments": "{oops"}), asked()).answer == ToolCall("ls", "{oops")


def test_first_choice_that_holds_is_played() -> None:
    choices = [
        {"when": "'red' in prompt", "text": "fix"},
        {"when": "attempt > 1", "fault": {"empty": True}},
        {"text": "ok"},
    ]
    playbook = playing({"choose": choices})
    assert select(playbook, asked("all red")).answer == Message("fix")
    assert select(playbook, asked(ask=PLANNER._replace(attempt=2))).answer == Fault(empty=True)
    assert select(playbook, asked()).answer == Message("ok")
    with pytest.raises(UsageError, match="no choice matches"):
        select(playing({"choose": choices[:1]}), asked())


def test_attempts_and_repairs_are_selected_apart() -> None:
    playbook = playing({"attempts": [{"fault": {"status": 500}}, {"text": "bad"}], "repairs": [{"text": "good"}]})
    assert select(playbook, asked(ask=AnswerKey("planner", 1, 0, 2))).answer == Message("bad")
    assert select(playbook, asked(ask=AnswerKey("planner", 1, 1, 1))).answer == Message("good")


def test_tokens_are_counted_from_the_lengths_unless_given() -> None:
    request = asked()
    assert select(playing({"text": "x" * 40}), request).usage == Usage(
        input_tokens=request.characters // 4, output_tokens=10
    )
    given = {"input_tokens": 7, "output_tokens": 3}
    assert select(playing({"text": "a", "usage": given}), request).usage == Usage.model_validate(given)


def test_template_that_fails_says_where() -> None:
    with pytest.raises(DefinitionError, match=r"^playbook demo: role planner, visit 1, repair 0, attempt 1, step 1"):
        select(playing({"text": "{{ tool_outputs[3] }}"}), asked())


def test_compaction_gets_a_summary_and_no_role_s_answer() -> None:
    answer = select(playing({"text": "a"}), read_request(body(user("go"), request_kind="compaction"))).answer
    assert isinstance(answer, Message)
    assert "no model was asked" in answer.text
