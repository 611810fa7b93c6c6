from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from codex_multi_role.catalog import without_wider_rights
from codex_multi_role.catalog.role_spec import _NARROWER, RoleLimits, RoleSpec, check_name
from codex_multi_role.lifecycle.live_roles import FIXED
from tests.support.teams import Record


def _role(**given: Any) -> RoleSpec:
    return RoleSpec.model_validate({"name": "planner", "prompt_text": "Plan."} | given)


@pytest.mark.parametrize(
    ("flags", "sandbox", "approval_policy"),
    [
        ({}, "read-only", "on-request"),
        ({"allow_write": True}, "workspace-write", "on-request"),
        ({"allow_tools": False}, "read-only", "untrusted"),
        ({"allow_read": False}, "read-only", "untrusted"),
        ({"allow_tools": False, "allow_write": True}, "workspace-write", "untrusted"),
        ({"allow_file_suggestions": True}, "read-only", "on-request"),
    ],
)
def test_flags_become_sandbox_and_approval_policy(flags: dict[str, bool], sandbox: str, approval_policy: str) -> None:
    role = _role(prompt_flags=flags)
    assert (role.sandbox, role.approval_policy) == (sandbox, approval_policy)


def test_explicit_sandbox_and_approval_policy_win() -> None:
    role = _role(prompt_flags={"allow_tools": False}, sandbox="danger-full-access", approval_policy="never")
    assert (role.sandbox, role.approval_policy) == ("danger-full-access", "never")


@pytest.mark.parametrize(
    ("policy", "limits", "idle_seconds", "turn_seconds"),
    [
        ("default", {}, 120, 900),
        ("planner", {}, 300, 1800),
        ("planner", {"idle_seconds": 7}, 7, 1800),
        ("default", {"turn_seconds": 7.5}, 120, 7.5),
        ("any other name", {}, 120, 900),
    ],
)
def test_limits_follow_the_policy_key_by_key(
    policy: str, limits: dict[str, float], idle_seconds: float, turn_seconds: float
) -> None:
    role = _role(behaviors={"timeout_policy": policy}, limits=limits)
    assert (role.limits.idle_seconds, role.limits.turn_seconds) == (idle_seconds, turn_seconds)


def test_finished_limits_stay() -> None:
    limits = RoleLimits(idle_seconds=1, turn_seconds=2)
    assert RoleSpec(name="planner", prompt_text="Plan.", limits=limits).limits == limits


@pytest.mark.parametrize(
    ("model", "model_env", "environment", "run_model", "expected"),
    [
        ("own", "M", {"M": "env"}, "run", "own"),
        (None, "M", {"M": "env"}, "run", "env"),
        (None, "M", {"M": " "}, "run", "run"),
        (None, "M", {}, "run", "run"),
        (None, None, {"M": "env"}, "run", "run"),
        (None, "M", {}, None, None),
        (None, None, {}, "", None),
    ],
)
def test_which_model_counts(
    model: str | None, model_env: str | None, environment: dict[str, str], run_model: str | None, expected: str | None
) -> None:
    assert _role(model=model, model_env=model_env).resolved_model(environment, run_model) == expected


@pytest.mark.parametrize("name", ["planner", "A", "0", "test_developer", "a.b-c_D", "tests", "x" * 64])
def test_names_that_can_be_folders(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "_a", "a/b", "a b", "prüfer", "a\n", "*", "x" * 65])
def test_names_that_cannot_be_folders(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be a name"):
        check_name(name)


def test_role_is_frozen() -> None:
    role = _role()
    with pytest.raises(ValidationError, match="frozen"):
        role.name = "other"


@pytest.mark.parametrize(
    ("glob", "kept"), [("tests/**", "tests/**"), ("./tests/", "tests"), ("a//*.toml", "a/*.toml"), ("**", "**")]
)
def test_what_is_protected_is_a_path_of_the_workspace(glob: str, kept: str) -> None:
    assert _role(protect=[glob]).protect == (kept,)


@pytest.mark.parametrize("glob", ["/etc/*", "~/x", "../x", "a/../b", "..", "a\\b", "", ".", "./", "a\0b"])
def test_protect_globs_must_be_inside_the_workspace(glob: str) -> None:
    """Empty globs and globs that name nothing are refused as well."""
    with pytest.raises(ValidationError, match=r"must be relative to the workspace|names nothing"):
        _role(protect=[glob])


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
