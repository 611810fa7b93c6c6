"""A role has no hidden sub-agents; if its settings switch them on, their tokens count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.models import INPUT_TOKENS, OUTPUT_TOKENS, Body, Items, any_model, message
from tests.support.sub_agents import DONE, is_sub_agents, spawning
from tests.support.teams import Record, TeamFolder, warnings

pytestmark = pytest.mark.real

FORCING = "gpt-6.1-sol"
"""Its metadata in the binary's catalog demands MultiAgentV2."""


def finished(body: Body) -> Items:
    return message(DONE)


def test_no_model_is_offered_sub_agents(tmp_path: Path) -> None:
    """Nor do we warn of the model of a provider whose models Codex does not know."""
    team = TeamFolder(tmp_path, {"one": {"model": FORCING}, "two": {"model": "m"}}, {})
    with any_model(finished) as served:
        assert team.run(playbook=None, config=served.config).exit_code == 1
    assert [body["model"] for body in served.bodies] == [FORCING, "m"]
    assert "spawn_agent" not in json.dumps(served.bodies)
    assert not any("Codex does not know" in each for each in warnings(team.events))


def test_settings_of_a_role_switch_sub_agents_on(tmp_path: Path) -> None:
    settings = ("agents.enabled", "features.multi_agent", "features.multi_agent_v2")
    roles: dict[str, Record] = {f"role{number}": {"codex_config": {name: True}} for number, name in enumerate(settings)}
    with any_model(finished) as served:
        team = TeamFolder(tmp_path, roles, {})
        assert team.run(playbook=None, config=served.config, model=FORCING).exit_code == 1
    assert ["spawn_agent" in json.dumps(body) for body in served.bodies] == [True] * len(settings)


def test_tokens_of_sub_agents_count_in_turn_and_run(tmp_path: Path) -> None:
    keys: Record = {"agents.enabled": True}
    with any_model(spawning) as served:
        team = TeamFolder(tmp_path, {"one": {"codex_config": keys}}, {})
        report = team.run(playbook=None, config=served.config, model="m")
    (turn,) = team.of_type("turn_ended")
    asked = len(served.bodies)
    assert any(is_sub_agents(body) for body in served.bodies)
    assert (turn["input_tokens"], turn["output_tokens"]) == (asked * INPUT_TOKENS, asked * OUTPUT_TOKENS)
    assert report.totals["input_tokens"] == asked * INPUT_TOKENS
