from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from codex_multi_role.errors import UsageError
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
