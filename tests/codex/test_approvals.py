from __future__ import annotations

from codex_multi_role.codex.approvals import ApprovalPolicy, answer


def test_default_policy_declines() -> None:
    for kind in ("commandExecution", "fileChange"):
        assert answer(f"item/{kind}/requestApproval", {}, ApprovalPolicy()).reply == {"result": {"decision": "decline"}}


def test_permissions_are_granted_per_turn_with_commands_only() -> None:
    """They are granted for one turn, and only if commands are allowed."""
    asked = {"permissions": {"network": {"enabled": True}}}
    denied = answer("item/permissions/requestApproval", asked, ApprovalPolicy(file_changes=True))
    granted = answer("item/permissions/requestApproval", asked, ApprovalPolicy(commands=True))
    assert denied.reply == {"result": {"permissions": {}, "scope": "turn"}}
    assert granted.reply == {"result": {**asked, "scope": "turn"}}


def test_what_is_not_known_is_an_error_never_silence() -> None:
    given = answer("item/somethingNew", {}, ApprovalPolicy(commands=True, file_changes=True))
    assert given.decision == "unsupported"
    assert given.reply["error"]["code"] == -32601
