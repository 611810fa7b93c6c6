from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from codex_multi_role.catalog import RoleSpecCatalog
from codex_multi_role.codex.codex_settings import mcp_server_table
from codex_multi_role.errors import DefinitionError
from tests.support.catalogs import raised
from tests.support.teams import Record

DOCS: Record = {"command": "docs-server"}


def load(tmp_path: Path, role: Record, defaults: Record | None = None) -> RoleSpecCatalog:
    role = {"name": "one", "prompt_text": "Do.", **role}
    catalog = tmp_path / "catalog.yaml"
    catalog.write_text(yaml.safe_dump({"version": 1, "defaults": defaults or {}, "roles": [role]}))
    return RoleSpecCatalog.load(catalog)


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ({}, "docs: give exactly one of command, url"),
        ({**DOCS, "url": "http://x"}, "docs: give exactly one of command, url"),
        ({"url": "http://x", "args": ["a"], "cwd": "/"}, "docs: args belongs to command"),
        ({**DOCS, "bearer_token_env_var": "A"}, "docs: bearer_token_env_var belongs to url"),
        ({"command": "./server"}, 'docs.command: "./server" must be a program on PATH or an absolute path'),
        ({**DOCS, "cwd": "servers"}, 'docs.cwd: "servers" must be an absolute path'),
        ({"url": "x.org"}, "docs.url: must start with http:// or https://"),
        ({**DOCS, "env_vars": ["KEY=value"]}, "docs.env_vars[0]: must be the name of an environment variable"),
        ({**DOCS, "approval": "sometimes"}, "docs.approval: "),
        ({**DOCS, "tools": {"a": True}}, "docs.tools.a: "),
        ({**DOCS, "tool_timeout_sec": 0}, "docs.tool_timeout_sec: must be more than 0, not 0"),
        ({**DOCS, "approvals": "auto"}, 'docs: unknown key "approvals"; did you mean "approval"?'),
    ],
)
def test_invalid_server_is_a_load_error(tmp_path: Path, server: Record, problem: str) -> None:
    error = raised(DefinitionError, load, tmp_path, {"mcp_servers": {"docs": server}})
    assert f"role one: mcp_servers.{problem}" in str(error)


def test_invalid_server_name_is_a_load_error(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match='"a b" cannot be the name of an MCP server'):
        load(tmp_path, {"mcp_servers": {"a b": DOCS}})


def test_servers_are_merged_by_name(tmp_path: Path) -> None:
    """A role file adds servers to the defaults; the catalog's entry replaces one and leaves another out."""
    (tmp_path / "one.yaml").write_text(yaml.safe_dump({"mcp_servers": {"docs": DOCS, "more": DOCS}}))
    entry = {"role_file": "one.yaml", "mcp_servers": {"docs": {"url": "https://x"}, "common": None}}
    catalog = load(tmp_path, entry, {"mcp_servers": {"common": DOCS}})
    servers = catalog.role("one").mcp_servers
    assert {name: server.url or server.command for name, server in servers.items()} == {
        "docs": "https://x",
        "more": "docs-server",
    }


@pytest.mark.parametrize("key", ["mcp_servers", "mcp_servers.docs", "mcp_servers.other.enabled"])
def test_servers_in_two_keys_are_an_error(tmp_path: Path, key: str) -> None:
    error = raised(DefinitionError, load, tmp_path, {"mcp_servers": {"docs": DOCS}, "codex_config": {key: {}}})
    assert f"role one: mcp_servers: the role's codex_config sets {key} as well" in str(error)
    assert "role one: codex_config" in str(error)
    assert load(tmp_path, {"codex_config": {key: {}}}).role("one").mcp_servers == {}


@pytest.mark.parametrize("approval", ["auto", "never"])
def test_approval_that_codex_would_not_ask_for_is_an_error(tmp_path: Path, approval: str) -> None:
    """Measured: with full access and the policy never Codex approves every call, whatever the server's setting."""
    keys = {"sandbox": "danger-full-access", "approval_policy": "never"}
    with pytest.raises(DefinitionError, match=r"mcp_servers\.docs: Codex approves every call"):
        load(tmp_path, {**keys, "mcp_servers": {"docs": {**DOCS, "approval": approval}}})
    load(tmp_path, {**keys, "mcp_servers": {"docs": {**DOCS, "approval": "always"}}})
    load(tmp_path, {**keys, "approval_policy": "on-request", "mcp_servers": {"docs": DOCS}})


def test_server_becomes_a_table_of_codex(tmp_path: Path) -> None:
    given = {**DOCS, "env_vars": ["KEY"], "enabled_tools": [], "approval": "never", "tools": {"a": "always"}}
    server = load(tmp_path, {"mcp_servers": {"docs": given}}).role("one").mcp_servers["docs"]
    assert mcp_server_table(server.model_dump()) == {
        "command": "docs-server",
        "env_vars": ("KEY",),
        "enabled_tools": (),
        "default_tools_approval_mode": "prompt",
        "tools": {"a": {"approval_mode": "approve"}},
    }
