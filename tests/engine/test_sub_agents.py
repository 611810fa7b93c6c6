"""A role has no hidden sub-agents; if its settings switch them on, their tokens count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.models import INPUT_TOKENS, OUTPUT_TOKENS, Body, Items, any_model, message
from tests.support.sub_agents import DONE, is_sub_agents, spawning
from tests.support.teams import Record, TeamFolder

pytestmark = pytest.mark.real

FORCING = "gpt-6.1-sol"
"""Its metadata in the binary's catalog demands MultiAgentV2."""


def finished(body: Body) -> Items:
    return message(DONE)


def team_of(folder: Path, **keys: object) -> TeamFolder:
    return TeamFolder(folder, {"one": dict(keys)}, {})


@pytest.mark.parametrize("model", [FORCING, "m"])
def test_no_model_is_offered_sub_agents(tmp_path: Path, model: str) -> None:
    with any_model(finished) as served:
        assert team_of(tmp_path).run(playbook=None, config=served.config, model=model).exit_code == 1
    (body,) = served.bodies
    assert body["model"] == model
    assert "spawn_agent" not in json.dumps(body)


@pytest.mark.parametrize("model", [FORCING, pytest.param("m", marks=pytest.mark.long)])
@pytest.mark.parametrize("setting", ["agents.enabled", "features.multi_agent", "features.multi_agent_v2"])
def test_settings_of_a_role_switch_sub_agents_on(tmp_path: Path, model: str, setting: str) -> None:
    with any_model(finished) as served:
        team = team_of(tmp_path, codex_config={setting: True})
        assert team.run(playbook=None, config=served.config, model=model).exit_code == 1
    assert "spawn_agent" in json.dumps(served.bodies[0])


def test_tokens_of_sub_agents_count_in_turn_and_run(tmp_path: Path) -> None:
    keys: Record = {"agents.enabled": True}
    with any_model(spawning) as served:
        team = team_of(tmp_path, codex_config=keys)
        report = team.run(playbook=None, config=served.config, model="m")
    (turn,) = team.of_type("turn_ended")
    asked = len(served.bodies)
    assert any(is_sub_agents(body) for body in served.bodies)
    assert (turn["input_tokens"], turn["output_tokens"]) == (asked * INPUT_TOKENS, asked * OUTPUT_TOKENS)
    assert report.totals["input_tokens"] == asked * INPUT_TOKENS
