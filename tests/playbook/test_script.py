"""The playbook file: where it is found, and what its YAML may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.playbook import list_playbooks, load_playbook
from codex_multi_role.playbook.script import Fault, Playbook, ScriptedVisit


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({}, "needs exactly one of json, text, call, patch, fault, choose, steps, attempts; it has none"),
        ({"json": {}, "text": ""}, "it has json, text"),
        ({"text": "a", "arguments": {}}, "arguments: not a setting of text"),
        ({"steps": [{"text": "a"}], "delay_seconds": 1}, "delay_seconds: not a setting of steps"),
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


def test_path_is_read_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, "mine", "name: mine\ncycles: 2\nroles: {planner: [{json: {summary: hi}}]}\n")
    assert load_playbook(str(path)).cycles == 2


def test_unknown_name_suggests_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'unknown playbook "roman-numeral"; did you mean "roman-numerals"\?'):
        load_playbook("roman-numeral", tmp_path)


def test_missing_file_is_named(tmp_path: Path) -> None:
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
