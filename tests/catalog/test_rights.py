from __future__ import annotations

import pytest

from codex_multi_role.catalog import RoleSpec, without_wider_rights
from codex_multi_role.catalog.role_spec import _NARROWER
from codex_multi_role.lifecycle.live_roles import FIXED
from tests.support.teams import Record

DOCS: Record = {"docs": {"command": "docs-server"}}
HAS: Record = {"sandbox": "workspace-write", "auto_approve": {"commands": True}, "protect": ["a"]}


@pytest.mark.parametrize(
    ("then", "now", "refused"),
    [
        ({}, {"sandbox": "workspace-write"}, {"sandbox": "read-only"}),
        (HAS, {**HAS, "sandbox": "read-only"}, {}),
        ({}, {"approval_policy": "never"}, {"approval_policy": "on-request"}),
        ({"approval_policy": "untrusted"}, {"approval_policy": "on-request"}, {"approval_policy": "untrusted"}),
        ({}, {"approval_policy": "untrusted"}, {}),
        (HAS, {**HAS, "protect": ["a", "b"]}, {}),
        (HAS, {**HAS, "protect": ["b"]}, {"protect": ("b", "a")}),
        ({}, {"codex_config": {"x": 1}}, {"codex_config": {}}),
        ({"codex_config": {"x": 1}}, {}, {"codex_config": {"x": 1}}),
        ({}, {"mcp_servers": DOCS}, {"mcp_servers": {}}),
        ({"mcp_servers": DOCS}, {}, {}),
        ({"mcp_servers": DOCS}, {"mcp_servers": {"docs": {**DOCS["docs"], "approval": "never"}}}, {}),
        ({}, {"prompt_text": "Other.", "model": "other", "limits": {"turn_seconds": 9}}, {}),
    ],
)
def test_what_lets_a_role_do_more_stays_as_it_was(then: Record, now: Record, refused: Record) -> None:
    taken, keys = without_wider_rights(role(then), role(now))
    assert {key: getattr(taken, key) for key in keys} == refused
    assert taken.model_copy(update={key: getattr(role(now), key) for key in keys}) == role(now)


@pytest.mark.parametrize("key", [{"approval": "always"}, {"args": ["x"]}, {"tools": {"a": "always"}}])
def test_other_server_of_the_same_name_is_refused(key: Record) -> None:
    wider = {"mcp_servers": {"docs": {**DOCS["docs"], **key}}}
    taken, keys = without_wider_rights(role({"mcp_servers": DOCS}), role(wider))
    assert (taken.mcp_servers, keys) == (role({"mcp_servers": DOCS}).mcp_servers, ["mcp_servers"])


def test_every_key_of_a_role_is_narrowed_kept_or_harmless() -> None:
    """A new key must be judged: a reload applies it unless it is in one of these tables."""
    harmless = {
        "name",
        "source",
        "prompt_text",
        "model",
        "model_env",
        "reasoning_effort",
        "schema_hint",
        "output_schema",
    }
    harmless |= {"strict_output", "skills", "project_instructions", "limits", "optional"}
    kept = {key.partition(".")[0] for key in FIXED}
    assert set(RoleSpec.model_fields) == {*_NARROWER, *kept, *harmless}


def test_what_is_taken_away_holds_beside_what_is_refused() -> None:
    taken, keys = without_wider_rights(role(HAS), role({"auto_approve": {"file_changes": True}, "protect": ["a"]}))
    assert keys == ["auto_approve"]
    assert (taken.auto_approve.commands, taken.auto_approve.file_changes) == (False, False)


def role(keys: Record) -> RoleSpec:
    return RoleSpec.model_validate({"name": "one", "prompt_text": "Do.", **keys})
