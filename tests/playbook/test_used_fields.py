"""The shape of an answer, read from how a flow uses it."""

from __future__ import annotations

from typing import Any

import pytest

from codex_multi_role.catalog import FlowSpec, RoleSpec
from codex_multi_role.flow.contracts import Contracts
from codex_multi_role.playbook.automatic import schema_from_use
from codex_multi_role.playbook.example import example

ROLE = RoleSpec(name="one", prompt_text="Do.")


def answers(*steps: dict[str, Any], count: int = 3) -> list[Any]:
    """The answers of the role ``one``, which the step ``a`` asks, by visit."""
    flow = FlowSpec.model_validate({"name": "own", "steps": [{"id": "a", "ask": "one"}, *steps]})
    contracts = Contracts({"own": flow}, "own", [ROLE])
    return [example(schema_from_use(contracts, {"own": flow}, "one"), number) for number in range(count)]


def route(when: str) -> dict[str, Any]:
    return {"id": "b", "ask": "two", "next": [{"when": when, "end": "over"}]}


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("steps.a.mood == 'good'", [{"mood": "automatic"}, {"mood": "good"}]),
        ("'good' == roles.one.mood", [{"mood": "automatic"}, {"mood": "good"}]),
        ("steps.a.mood in ['good', 'fine']", [{"mood": "automatic"}, {"mood": "good"}, {"mood": "fine"}]),
        ("steps.a.score >= 7", [{"score": 6}, {"score": 8}, {"score": 7}]),
        ("steps.a.ok == true", [{"ok": False}, {"ok": True}]),
        ("cycle > 1 and not steps.a.ok", [{"ok": False}, {"ok": True}]),
        ("steps.a.handoff.status == 'OPEN'", [{"status": "automatic"}, {"status": "OPEN"}]),
        ("steps.a.tasks | length > 0", [{"tasks": ["automatic"]}]),
        ("steps.a.visits > 2 and steps.a.status == 'done'", [{}]),
    ],
)
def test_condition_gets_values_for_both_outcomes(when: str, expected: list[Any]) -> None:
    assert answers(route(when), count=len(expected)) == expected


def test_texts_and_inner_fields_are_filled() -> None:
    prompt = "{{ steps.a.title }} by {{ roles.one.author.name }}{% for part in steps.a.parts %}{{ part }}{% endfor %}"
    expected = {"title": "automatic", "author": {"name": "automatic"}, "parts": ["automatic"]}
    assert (
        answers({"id": "b", "ask": "two", "prompt": prompt, "with": {"t": ["{{ steps.a.title }}"]}}) == [expected] * 3
    )


def test_items_of_a_fan_out_have_the_fields_that_it_uses() -> None:
    step = {"id": "b", "ask": "two", "for_each": {"items": "{{ steps.a.tasks }}", "as": "task", "max_items": 9}}
    step |= {"prompt": "{{ task.title }} {{ item.size }}"}
    assert answers(step, count=1) == [{"tasks": [{"title": "automatic", "size": "automatic"}]}]


def test_results_of_a_fan_out_are_not_fields() -> None:
    items = {"id": "c", "ask": "one", "for_each": [1, 2]}
    assert answers(items, route("steps.c.results"), count=1) == [{}]
