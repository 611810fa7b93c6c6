"""The MCP servers that the roles of a catalog would start, for ``doctor``. None is started or connected to."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.cli.diagnosis import Finding
from codex_multi_role.codex.codex_settings import known_settings, user_home
from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.host.programs import exclude_from_path, program_path
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.lifecycle.definitions import load_catalog, role_settings

NAME = "mcp server"


def mcp_servers(catalog: Path | None, config: tuple[str, ...], workspace: Path) -> Iterator[Finding]:
    """Yield a finding per server of a role, however it is defined, and one for the user's, which stay off in a run."""
    try:
        roles = load_catalog(catalog).roles
    except CodexMultiRoleError as error:
        yield Finding("roles", False, str(error), error.hint)
        return
    exclude_from_path(workspace)
    for role in roles:
        for name, server in _servers((*role_settings(role), *config), None).items():
            if isinstance(server, Mapping) and server.get("enabled", True):
                yield _finding(f"role {role.name}: {name}", server)
    if own := _servers((), user_home(os.environ)):
        yield Finding(NAME, True, f"of your config.toml, off in a run: {', '.join(own)}")


def _servers(settings: tuple[str, ...], home: Path | None) -> Mapping[str, Any]:
    found = known_settings(settings, home).get("mcp_servers")
    return found if isinstance(found, Mapping) else {}


def _finding(name: str, server: Mapping[str, Any]) -> Finding:
    command = str(server.get("command", ""))
    argv = [command, *map(str, _list(server.get("args")))]
    detail = Redactor(os.environ)(f"{name}: {server['url'] if 'url' in server else shlex.join(argv)}")
    variables = [*_list(server.get("env_vars")), *_list([server.get("bearer_token_env_var")])]
    if missing := [each for each in variables if isinstance(each, str) and each not in os.environ]:
        return Finding(NAME, False, f"{detail}: {', '.join(missing)} not set", "Set the environment variable.")
    if "url" not in server and shutil.which(command, path=program_path(os.environ)) is None:
        advice = "Install it outside the workspace, on PATH, or give its absolute path."
        return Finding(NAME, False, f"{detail}: program not found", advice)
    return Finding(NAME, True, detail)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
