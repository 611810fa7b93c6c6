"""``main.yaml``, the settings file of the original format: the replacement of each of its keys."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from codex_multi_role.errors import DefinitionError

_COUNTERPARTS = {
    "OPENAI_API_KEY": "`codex-multi-role codex login --with-api-key`",
    "GOAL": "--goal {value}",
    "CYCLES": "--cycles {value}",
    "REPAIR_ATTEMPTS": "--repair-attempts {value}",
    "RUN_TESTS": "--run-tests or --no-run-tests",
    "PYTEST_CMD": "--pytest-cmd {value}",
    "ROLE_CONFIG_PATH": "--roles {value}",
    "DEFAULT_MODEL": "--model {value}",
    "PLANNER_TIMEOUT_S": "limits: {{idle_seconds: {value}}} of the roles with timeout_policy: planner",
    "ROLE_TIMEOUT_S": "defaults: {{limits: {{idle_seconds: {value}}}}} in the catalog",
    "HARD_TIMEOUT_S": "defaults: {{limits: {{turn_seconds: {value}}}}} in the catalog",
    "CODEX_ALLOW_COMMANDS": "defaults: {{prompt_flags: {{allow_tools: true}}}} in the catalog",
    "CODEX_AUTO_APPROVE_COMMANDS": "defaults: {{auto_approve: {{commands: true}}}} in the catalog",
    "CODEX_AUTO_APPROVE_FILE_CHANGES": "defaults: {{auto_approve: {{file_changes: true}}}} in the catalog",
}
_SWITCHES = {"0", "1", "true", "false", "yes", "no", "on", "off"}
_OFF = {"0", "false", "no", "off", ""}


def refuse_settings(data: object, source: Path) -> None:
    """Raise `DefinitionError` if ``data`` has these settings instead of a catalog."""
    if not isinstance(data, Mapping) or "roles" in data or not data.keys() & _COUNTERPARTS.keys():
        return
    catalog = source.parent / Path(str(data.get("ROLE_CONFIG_PATH") or "developer_config.yaml")).name
    known = {**data, "ROLE_CONFIG_PATH": catalog}
    lines = [f"\n  {key}: {_counterpart(key, known[key])}" for key in data]
    raise DefinitionError(
        f"{source}: line 1: these are settings, not a catalog of roles. Each key here, and what replaces it:"
        + "".join(lines),
        f"Name the catalog itself, --roles {shlex.quote(str(catalog))}. Options may also be in codex-multi-role.yaml.",
    )


def _counterpart(key: str, value: object) -> str:
    text = str(int(value)) if isinstance(value, bool) else "" if value is None else str(value)
    if key == "RUN_TESTS" and text.casefold() in _SWITCHES:
        return "--no-run-tests" if text.casefold() in _OFF else "--run-tests"
    if key not in _COUNTERPARTS:
        return "no counterpart"
    if key == "HARD_TIMEOUT_S" and text in _OFF:
        return "nothing; every turn has a limit, limits.turn_seconds"
    switched_off = "true" in _COUNTERPARTS[key] and text.casefold() in _OFF
    shown = _COUNTERPARTS[key].format(value=shlex.quote(text) if text else "VALUE")
    return shown.replace("true", "false") if switched_off else shown
