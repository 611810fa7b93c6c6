"""A role's rights, and what remains of a change of its YAML that would widen them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from pydantic import BaseModel

from codex_multi_role.catalog.mcp_servers import McpServer, narrower_server
from codex_multi_role.catalog.role_spec import RoleSpec, Sandbox

_SANDBOXES = get_args(Sandbox)  # strictest first


def _only_what_both_allow(then: BaseModel, now: BaseModel) -> BaseModel:
    return now.model_copy(update={name: allowed and getattr(then, name) for name, allowed in now})


def _all_globs(then: tuple[str, ...], now: tuple[str, ...]) -> tuple[str, ...]:
    return (*now, *(glob for glob in then if glob not in now))


def _servers_of_both(then: dict[str, McpServer], now: dict[str, McpServer]) -> dict[str, McpServer]:
    return {name: narrower_server(then[name], server) for name, server in now.items() if name in then}


_NARROWER: dict[str, Callable[[Any, Any], Any]] = {
    "sandbox": lambda then, now: min(then, now, key=_SANDBOXES.index),
    "approval_policy": lambda then, now: now if now == "untrusted" else then,
    "auto_approve": _only_what_both_allow,
    "prompt_flags": _only_what_both_allow,
    "behaviors": lambda then, now: now.model_copy(update={"apply_files": then.apply_files and now.apply_files}),
    "protect": _all_globs,
    "mcp_servers": _servers_of_both,
    "codex_config": lambda then, _: then,  # only Codex knows what a change of it allows
}


def without_wider_rights(then: RoleSpec, now: RoleSpec) -> tuple[RoleSpec, list[str]]:
    """``now`` without the rights it has beyond ``then``, and the keys that would have granted them."""
    narrower = {key: choose(getattr(then, key), getattr(now, key)) for key, choose in _NARROWER.items()}
    refused = [key for key, value in narrower.items() if value != getattr(now, key)]
    return now.model_copy(update={key: narrower[key] for key in refused}), refused
