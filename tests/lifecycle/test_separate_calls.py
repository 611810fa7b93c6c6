"""Warnings about calls whose flows work elsewhere; which of them are refused is tried in `tests/engine`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from codex_multi_role.catalog import FlowSpec, RoleSpec
from codex_multi_role.lifecycle.separate_calls import limits_per_item
from tests.support.teams import Record


def catalog(**limits: object) -> Any:
    deadlines = {"idle_seconds": 1, "turn_seconds": 1}
    roles = {"writer": {**deadlines, **limits}, "other": {**deadlines, "max_turns": 1}}
    specs = [RoleSpec.model_validate({"name": name, "prompt_text": "x", "limits": own}) for name, own in roles.items()]
    return SimpleNamespace(roles=specs)


def flows(**more: object) -> dict[str, FlowSpec]:
    each = {"id": "each", "call": "inner", "for_each": ["a"], **more}
    steps: dict[str, list[Record]] = {"outer": [each, {"ask": "other"}], "inner": [{"ask": "writer"}]}
    return {name: FlowSpec.model_validate({"name": name, "steps": own}) for name, own in steps.items()}


@pytest.mark.parametrize("limit", ["max_turns", "max_tokens", "max_cost"])
def test_role_limits_that_each_item_has_are_named(limit: str) -> None:
    (said,) = limits_per_item(flows(place="workers"), catalog(**{limit: 1}))
    assert said.startswith("step each of flow outer: on workers, each item may use the whole limits of writer; ")


def test_role_limits_of_other_steps_are_not_named() -> None:
    assert list(limits_per_item(flows(place="workers"), catalog())) == []
    assert list(limits_per_item(flows(), catalog(max_turns=1))) == []
