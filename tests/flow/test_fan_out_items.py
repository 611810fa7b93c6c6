from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.catalog import FlowSpec
from codex_multi_role.flow import first_asked, name_of, new_state
from codex_multi_role.flow.fan_out_items import title_of
from tests.support.flows import CATALOG, flow_of

TASKS: list[dict[str, Any]] = [{"id": "a", "after": []}, {"id": "b", "after": ["a"]}, {"id": "c", "after": []}]


def first(step: dict[str, Any]) -> tuple[str, int]:
    """What a run of the flow that begins with ``step`` needs first."""
    inputs: dict[str, Any] = {"letters": ["a", "b", "c"], "tasks": TASKS, "at_once": 2}
    flow = FlowSpec(name="x", source=Path("flows/x.yaml"), inputs=inputs, steps=[step, {"ask": "last"}])
    return first_asked(flow, CATALOG, new_state(flow, "goal", inputs, 3))


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({}, ("solver", 1)),
        ({"for_each": {"items": [1, 2, 3], "concurrency": 8}}, ("solver", 3)),
        (
            {"for_each": {"items": "{{ inputs.letters }}", "max_items": 9, "concurrency": "{{ inputs.at_once }}"}},
            ("solver", 2),
        ),
        (
            {"for_each": {"items": "{{ inputs.letters if cycle == 1 else [] }}", "max_items": 9, "concurrency": 9}},
            ("solver", 3),
        ),
        (
            {
                "for_each": {
                    "items": "{{ inputs.tasks }}",
                    "max_items": 9,
                    "concurrency": 9,
                    "needs": "{{ item.after }}",
                }
            },
            ("solver", 2),
        ),
    ],
)
def test_items_that_begin_at_once_are_known_before_the_run(step: dict[str, Any], expected: tuple[str, int]) -> None:
    assert first({"ask": "solver", **step}) == expected


@pytest.mark.parametrize(
    "step",
    [
        {"check": "command"},
        {"check": "command", "for_each": [1, 2]},
        {"ask": "solver", "for_each": []},
        {"ask": "solver", "for_each": {"items": "{{ inputs.at_once }}", "max_items": 9}},
        {"ask": "solver", "for_each": {"items": "{{ inputs.letters }}", "max_items": 2}},
    ],
)
def test_nothing_is_asked_first_by_other_steps_and_invalid_lists(step: dict[str, Any]) -> None:
    assert first(step)[1] == 0


@pytest.mark.parametrize(
    ("waits_for", "expected"),
    [
        ({}, ("planner", 1)),
        ({"planner": "developer", "reader": "planner"}, ("developer", 1)),
        ({"reader": "planner"}, ("", 0)),
    ],
)
def test_first_of_every_role_is_the_only_one_that_waits_for_none(
    waits_for: dict[str, str], expected: tuple[str, int]
) -> None:
    needs = {role: (other,) for role, other in waits_for.items()}
    roles = tuple(role.model_copy(update={"depends_on": needs.get(role.name, ())}) for role in CATALOG.roles)
    flow = flow_of("steps: [{id: all, ask: '*'}]")
    assert first_asked(flow, replace(CATALOG, roles=roles), new_state(flow, "goal", {}, 3)) == expected


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ({"id": "T1"}, "T1"),
        ("parser", "parser"),
        ("two words", "two words"),
        ("", "3"),
        ("two\nlines", "3"),
        ("x" * 61, "3"),
        (7, "3"),
        ({"name": "x"}, "3"),
    ],
)
def test_item_is_named_by_its_id_or_its_text_or_its_number(item: object, name: str) -> None:
    assert name_of(item, 2) == name


@pytest.mark.parametrize(
    ("item", "title"),
    [
        ({"id": "T1", "name": "slug words"}, "slug words"),
        ({"id": "T1", "question": "which\nnames?"}, "which names?"),
        ({"file": "pack/sign.py", "problem": ""}, "pack/sign.py"),
        ({"id": "T1", "content": "Find the formulas"}, "Find the formulas"),
        ({"id": "T1", "title": 7, "after": []}, ""),
        (
            "one two three four five six seven eight nine ten eleven",
            "one two three four five six seven eight nine ten …",
        ),
        (7, ""),
    ],
)
def test_title_of_an_item_is_what_it_says_of_itself(item: object, title: str) -> None:
    step = flow_of("steps: [{ask: developer, for_each: [1]}]").steps[0]
    assert title_of(step, {}, item) == title


def test_author_may_say_the_title_and_a_wrong_one_is_left_out() -> None:
    step = flow_of("steps: [{ask: developer, for_each: [1], title: '{{ item.about }} first'}]").steps[0]
    assert title_of(step, {"item": {"about": "parser"}}, {"title": "x"}) == "parser first"
    assert title_of(step, {"item": {}}, {"title": "x"}) == "x"
