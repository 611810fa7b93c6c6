"""The settings of every Codex process, and their form on its command line.

Measured on the pinned binary: without them each start looks for updates and plugins on the network, runs the user's
login shell, and passes every ``*_API_KEY`` of the environment to the commands that a model runs.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

from codex_multi_role.host.processes import Family
from codex_multi_role.host.redaction import SECRET_NAME, SHORTEST_SECRET
from codex_multi_role.host.spelling import texts_in
from codex_multi_role.host.user_cache import home_folder

LEAN: tuple[str, ...] = (
    "features.unbounded_connection_retries=false",
    "features.plugins=false",
    "features.apps=false",
    "agents.enabled=false",  # unlike features.multi_agent=false, applies to models that require sub-agents (measured)
    "features.goals=false",
    "features.shell_snapshot=false",
    "skills.bundled.enabled=false",
    'web_search="disabled"',
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    'history.persistence="none"',
    "notify=[]",
    "allow_login_shell=false",
    'shell_environment_policy.inherit="core"',
    # Without it bash takes the command's socket for a remote shell and reads the user's ~/.bashrc.
    'shell_environment_policy.set={SHLVL="1"}',
)
LEAN_TABLES = frozenset(setting.split(".")[0] for setting in LEAN if "." in setting.split("=")[0])
"""The tables in which `LEAN` sets something."""
BUILT_IN_LOCAL_PROVIDERS = frozenset({"ollama", "lmstudio"})
DEFAULT_PROVIDER = "openai"
OWN_RETRIES = ("request_max_retries", "stream_max_retries")
PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
NAME_OF_VARIABLE = re.compile(r"env_|_env|_store$")  # _store: where Codex keeps a login


def app_server_argv(codex: Path, settings: tuple[str, ...]) -> list[str]:
    """``codex app-server`` with the lean settings first, so that ``settings`` (``key=value``, TOML) override them.

    Codex replaces a table that is given as a whole, and with it the lean settings in it, such as the one that keeps
    secrets from commands (measured). Tables with lean settings are therefore given key by key.
    """
    features = known_settings(settings, None).get("features")
    wanted = isinstance(features, Mapping) and features.get("multi_agent") is True
    sub_agents = ("agents.enabled=true",) if wanted else ()
    by_key = (each for setting in settings for each in _without_whole_tables(setting))
    flags = [part for setting in (*LEAN, *sub_agents, *by_key) for part in ("-c", setting)]
    return [str(codex), "app-server", *flags]


def _without_whole_tables(setting: str) -> Iterator[str]:
    """The setting; one setting per key if it would replace one of `LEAN_TABLES`."""
    key, _, text = setting.partition("=")
    value = _value(text)
    names = [each for each in value if PLAIN_KEY.fullmatch(each)] if isinstance(value, Mapping) else []
    if not isinstance(value, Mapping) or len(names) < len(value) or key.partition(".")[0].strip() not in LEAN_TABLES:
        yield setting
        return
    for name in names:
        yield from _without_whole_tables(f"{key.strip()}.{name}={toml_value(value[name])}")


def marking(family: Family) -> str:
    """The setting that passes the mark of ``family`` to the commands a model runs; we define their environment."""
    return f"shell_environment_policy.set.{family.variable}={toml_value(family.mark)}"


def without_project_settings(*folders: Path) -> str:
    """The setting that disables ``.codex`` (servers, hooks, rules) in the projects of ``folders``.

    Otherwise Codex trusts a project that a thread may write, and records that in ``config.toml`` (measured).
    """
    places = {str(place) for folder in folders for place in (folder, *folder.parents)}
    return f"projects={toml_value({place: {'trust_level': 'untrusted'} for place in sorted(places)})}"


WITHOUT_SKILLS = "skills.include_instructions=false"
"""Excludes every skill that Codex finds. Codex uses a project's skills even if it is untrusted (measured)."""


def as_settings(config: Mapping[str, object]) -> tuple[str, ...]:
    """A role's ``codex_config`` as ``key=value`` settings."""
    return tuple(f"{key}={toml_value(value)}" for key, value in config.items())


MCP_APPROVAL_MODES = {"never": "prompt", "auto": "auto", "always": "approve"}
"""Codex's mode for each approval of a role's MCP server. Codex asks by an elicitation, which is declined (measured)."""


def mcp_server_table(server: Mapping[str, Any]) -> dict[str, object]:
    """Codex's table for a role's MCP server: the same keys, except for approvals."""
    tools = {name: {"approval_mode": MCP_APPROVAL_MODES[approval]} for name, approval in server["tools"].items()}
    approvals = {"default_tools_approval_mode": MCP_APPROVAL_MODES[server["approval"]], "tools": tools}
    table = {key: value for key, value in server.items() if key not in ("approval", "tools")} | approvals
    return {key: value for key, value in table.items() if value is not None and (value or key == "enabled_tools")}


def toml_value(value: object) -> str:
    """``value`` (what YAML can hold) as a TOML inline value."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml_value(str(key))} = {toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON leaves DEL unescaped


def holds_secret(setting: str, redact: Callable[[str], str]) -> bool:
    """Whether ``setting`` (``key=value``, TOML) contains a secret, recognized by its shape or by its key.

    The name of an environment variable is not a secret: ``env_key``, ``bearer_token_env_var``, ``env_http_headers``.
    """
    key, _, value = setting.partition("=")
    try:
        known: object = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        known = value
    return any(
        redact(text) != text or (_is_secret_name(keys) and len(text) >= SHORTEST_SECRET and "://" not in text)
        for text, keys in texts_in(known, tuple(key.split(".")))
    )


def _is_secret_name(keys: Sequence[str | int]) -> bool:
    names = [each for each in keys if isinstance(each, str)]
    return bool(SECRET_NAME.search(names[-1])) and not any(NAME_OF_VARIABLE.search(name) for name in names)


def user_home(environment: Mapping[str, str]) -> Path:
    """Codex's own home, with the user's login and ``config.toml``."""
    return Path(environment.get("CODEX_HOME") or home_folder(environment) / ".codex")


def without_user_servers(home: Path) -> tuple[str, ...]:
    """Settings that disable the user's MCP servers by name; a table cannot be disabled as a whole.

    Codex accepts no name that needs quotes and reports it itself.
    """
    return tuple(f"mcp_servers.{name}.enabled=false" for name in _user_config(home).get("mcp_servers", {}))


def without_own_retries(settings: tuple[str, ...], home: Path | None) -> tuple[str, ...]:
    """Settings that turn off Codex's retries, in favour of ours, for a provider in ``settings`` or the user's home.

    Codex sends a failing request up to thirty times and waits as long as ``Retry-After`` says (measured); neither is
    visible from outside. A configured number is kept; a built-in provider accepts none.
    """
    known = known_settings(settings, home)
    provider, providers = str(known.get("model_provider")), known.get("model_providers")
    defined = providers.get(provider) if isinstance(providers, Mapping) else None
    if not isinstance(defined, Mapping) or not PLAIN_KEY.fullmatch(provider):
        return ()
    return tuple(f"model_providers.{provider}.{key}=0" for key in OWN_RETRIES if key not in defined)


def only_these_skills(skills: Mapping[str, Path], settings: tuple[str, ...], home: Path | None) -> tuple[str, ...]:
    """The setting that binds each name in ``skills`` to the folder given there, even if it exists in other places.

    Codex loads neither of two skills with the same name (measured).
    """
    if not skills:
        return ()
    table = known_settings(settings, home).get("skills", {})
    given = table.get("config", []) if isinstance(table, Mapping) else []
    rules = [{"name": name, "enabled": False} for name in skills]
    rules += [{"path": str(folder / "SKILL.md"), "enabled": True} for folder in skills.values()]
    return (f"skills.config={toml_value([*given, *rules])}",)


def known_settings(settings: tuple[str, ...], home: Path | None) -> dict[str, Any]:
    """What Codex makes of ``settings`` and the user's ``config.toml``, as one table.

    A setting replaces what an earlier one set, also a whole table; only with the tables of the file are they merged
    (measured).
    """
    known = dict(_user_config(home))
    _merge(known, _table_of(settings))
    return known


@lru_cache(maxsize=256)
def _table_of(settings: tuple[str, ...]) -> Mapping[str, Any]:
    """``settings`` as one table. All callers share it, so nobody may change it."""
    given: dict[str, Any] = {}
    for setting in settings:
        for each in _without_whole_tables(setting):
            key, _, text = each.partition("=")
            _assign(given, _path(key), deepcopy(_value(text)))
    return given


def searches_web(settings: tuple[str, ...]) -> bool:
    """Whether a process with these ``settings`` offers the model Codex's web search: live, indexed or cached.

    The lean settings turn it off and override the user's ``config.toml``; older switches of Codex have no effect.
    """
    return bool(known_settings((*LEAN, *settings), None)["web_search"] != "disabled")


@lru_cache(maxsize=256)
def _as_table(setting: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(setting)
    except tomllib.TOMLDecodeError:
        key, _, value = setting.partition("=")  # Codex reads a value that is not TOML as text
        return {key: value}


def _value(text: str) -> object:
    return _as_table(f"value={text}")["value"]


@lru_cache(maxsize=256)
def _path(key: str) -> tuple[str, ...]:
    """The names of the tables that ``a.b`` leads through, and of the key itself."""
    path, table = [], _as_table(f"{key}=0")
    while isinstance(table, Mapping) and len(table) == 1:
        ((name, table),) = table.items()
        path.append(name)
    return tuple(path) or (key,)  # for a key that is none, such as a comment


def _assign(table: dict[str, Any], path: Sequence[str], value: object) -> None:
    for name in path[:-1]:
        if not isinstance(table.get(name), dict):
            table[name] = {}
        table = table[name]
    table[path[-1]] = value


def _merge(known: dict[str, Any], table: Mapping[str, Any]) -> None:
    """Add what ``table`` has, which stays as it is."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            earlier = known.get(key)
            known[key] = merged = earlier if isinstance(earlier, dict) else {}
            _merge(merged, value)
        else:
            known[key] = value


def _user_config(home: Path | None) -> Mapping[str, Any]:
    """The user's ``config.toml``; empty if it is missing or unreadable, which Codex itself reports."""
    try:
        return tomllib.loads((home / "config.toml").read_text(encoding="utf-8")) if home else {}
    except (OSError, ValueError):
        return {}


def provider_in(settings: tuple[str, ...]) -> str:
    """The name of the model provider that these settings choose."""
    return str(known_settings(settings, None).get("model_provider", DEFAULT_PROVIDER))


def needs_user_home(settings: tuple[str, ...]) -> bool:
    """Whether these settings need the user's own Codex home: for its login, or for a provider defined in it."""
    provider, defined = provider_in(settings), known_settings(settings, None).get("model_providers")
    is_defined = isinstance(defined, Mapping) and provider in defined
    return provider == DEFAULT_PROVIDER or not (is_defined or provider in BUILT_IN_LOCAL_PROVIDERS)


def unread_user_home(settings: tuple[str, ...], environment: Mapping[str, str]) -> Path | None:
    """The user's own Codex home if a process with these settings gets another one."""
    return None if needs_user_home(settings) else user_home(environment)


def needed_user_home(settings: tuple[str, ...], environment: Mapping[str, str]) -> Path | None:
    """The user's own Codex home if these settings need it, otherwise None."""
    return user_home(environment) if needs_user_home(settings) else None
