"""Which roles are certain to change nothing, so that they are asked while the tests run before the first change."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.lifecycle.assembly import only_reads
from codex_multi_role.lifecycle.definitions import load_for_another_machine
from tests.support.teams import WRITER, Record, TeamFolder

PROVIDER = {"model_provider": "own", "model_providers.own.base_url": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("keys", "config", "reads"),
    [
        ({}, "", True),
        ({"tools": ["ask_user", "terminate"], "codex_config": PROVIDER}, 'model_verbosity="low"', True),
        ({"sandbox": "workspace-write"}, "", False),
        ({"prompt_flags": {"allow_write": True}}, "", False),
        ({"auto_approve": {"commands": True}}, "", False),
        ({"auto_approve": {"file_changes": True}}, "", False),
        (WRITER, "", False),
        ({"mcp_servers": {"notes": {"command": "true"}}}, "", False),
        ({"codex_config": {"sandbox_mode": "danger-full-access"}}, "", False),
        ({}, 'mcp_servers.notes.command="true"', False),
    ],
)
def test_role_only_reads_if_nothing_it_may_use_can_write(
    tmp_path: Path, keys: Record, config: str, reads: bool
) -> None:
    team = TeamFolder(tmp_path, {"one": keys}, {"one": []})
    definitions = load_for_another_machine(team.options(playbook=None, config=(config,) if config else ()))
    assert only_reads(definitions, lambda: definitions.catalog, "one") is reads
    assert not only_reads(definitions, lambda: definitions.catalog, "no longer there")
