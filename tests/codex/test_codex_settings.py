from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.codex.child import Launch
from codex_multi_role.codex.codex_settings import (
    LEAN,
    app_server_argv,
    as_settings,
    holds_secret,
    known_settings,
    needs_user_home,
    searches_web,
    toml_value,
    without_own_retries,
    without_user_servers,
)
from codex_multi_role.codex.locator import find_codex
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.wire_log import WireLog
from codex_multi_role.host.redaction import Redactor

VALUES = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="ascii")), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_values_of_yaml_survive_as_toml(value: object) -> None:
    assert tomllib.loads(f"value = {toml_value(value)}")["value"] == value


def test_users_settings_come_after_ours() -> None:
    argv = app_server_argv(find_codex(None, {}), ('web_search="live"',))
    assert argv.index('web_search="disabled"') < argv.index('web_search="live"')
    assert "agents.enabled=true" not in app_server_argv(Path("codex"), ())
    assert "agents.enabled=true" in app_server_argv(Path("codex"), ("features.multi_agent=true",))


@pytest.mark.parametrize(
    ("setting", "given"),
    [
        ('shell_environment_policy={set={A="1"}}', ['shell_environment_policy.set.A="1"']),
        (
            'shell_environment_policy.set = {A="1", B="="}',
            [f"shell_environment_policy.set.{each}" for each in ('A="1"', 'B="="')],
        ),
        ("features={goals=true,apps=true}", ["features.goals=true", "features.apps=true"]),
        ('shell_environment_policy.set={"a b"="1"}', ['shell_environment_policy.set={"a b"="1"}']),
        ("features=wrong", ["features=wrong"]),
        ('model_providers.x={name="x"}', ['model_providers.x={name="x"}']),
    ],
)
def test_whole_tables_leave_the_settings_beside_them(setting: str, given: list[str]) -> None:
    """Codex would replace the table, and drop the setting that keeps secrets from commands (measured)."""
    argv = app_server_argv(find_codex(None, {}), (setting,))
    assert argv[-2 * len(given) :] == [part for each in given for part in ("-c", each)]


@pytest.mark.parametrize(
    ("settings", "can"),
    [
        ((), False),
        (('web_search="live"',), True),
        (("web_search=live",), True),
        (("web_search=cached",), True),
        (('web_search="indexed"',), True),
        (('web_search="live"', "web_search=disabled"), False),
        (("features.web_search_request=true", "tools.web_search=true"), False),
    ],
)
def test_only_the_setting_web_search_gives_a_role_web_search(settings: tuple[str, ...], can: bool) -> None:
    """As measured by the tools that each of them puts into a model request."""
    assert searches_web(settings) is can


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((), True),
        (('model="o3"',), True),
        (('model_provider="openai"',), True),
        (('model_provider="mine"',), True),
        (('model_provider="ollama"',), False),
        (('model_provider="mine"', 'model_providers.mine.base_url="http://127.0.0.1:1/v1"'), False),
        (as_settings({"model_provider": "mine", "model_providers.mine": {"name": "x"}}), False),
    ],
)
def test_users_home_is_used_where_its_login_or_its_provider_is(settings: tuple[str, ...], expected: bool) -> None:
    assert needs_user_home(settings) is expected


def test_users_mcp_servers_stay_out_name_by_name(tmp_path: Path) -> None:
    assert without_user_servers(tmp_path) == ()
    (tmp_path / "config.toml").write_text('[mcp_servers.one]\ncommand = "x"\n[mcp_servers.my-two]\ncommand = "y"\n')
    assert without_user_servers(tmp_path) == ("mcp_servers.one.enabled=false", "mcp_servers.my-two.enabled=false")
    (tmp_path / "config.toml").write_text("broken = ")
    assert without_user_servers(tmp_path) == ()


@pytest.mark.parametrize(
    ("setting", "is_secret"),
    [
        ('model_providers.x.http_headers={Authorization="Bearer 0123456789abcdef"}', True),
        ('model_providers.x={http_headers={"X-Api-Key"="hunter2hunter2"}}', True),
        ('model_providers.x.experimental_bearer_token="hunter2hunter2"', True),
        ('mcp_servers.x.env={GITHUB_TOKEN="hunter2hunter2"}', True),
        ("mcp_servers.x.env.API_KEY=hunter2hunter2", True),
        ('mcp_servers.x.args=["--header", "ghp_0123456789abcdefghij"]', True),
        ('anything="the-value-of-my-key"', True),
        ('model_providers.x.env_key="MY_PROVIDER_KEY"', False),
        ('model_providers.x={env_http_headers={Authorization="MY_HEADER"}, base_url="http://127.0.0.1/v1"}', False),
        ('mcp_servers.x.bearer_token_env_var="MY_TOKEN_VARIABLE"', False),
        ('cli_auth_credentials_store="ephemeral"', False),
        ("model_auto_compact_token_limit=64000000", False),
        ("model_providers.x.requires_openai_auth=true", False),
        ('mcp_servers.x.oauth_resource="https://example.org/resource"', False),
        ("model=gpt-5-codex", False),
        ("model_provider=", False),
    ],
)
def test_setting_with_a_secret_is_known_and_one_that_names_it_is_none(setting: str, is_secret: bool) -> None:
    assert holds_secret(setting, Redactor({"MY_KEY": "the-value-of-my-key"})) is is_secret


TABLE = 'model_providers.mine={name="mine", base_url="http://127.0.0.1:1/v1"}'
NONE_OF_ITS_OWN = ("model_providers.mine.request_max_retries=0", "model_providers.mine.stream_max_retries=0")


@pytest.mark.parametrize(
    ("settings", "config", "expected"),
    [
        ((), "", ()),
        (('model_provider="openai"',), "", ()),
        (('model_provider="nowhere"',), "", ()),
        ((TABLE,), "", ()),
        (("model_provider=mine", TABLE), "", NONE_OF_ITS_OWN),
        (('model_provider="mine"', 'model_providers.mine.name="mine"'), "", NONE_OF_ITS_OWN),
        (('model_provider="mine"', TABLE, "model_providers.mine.stream_max_retries=2"), "", NONE_OF_ITS_OWN[:1]),
        ((), 'model_provider = "mine"\n[model_providers.mine]\nname = "mine"\n', NONE_OF_ITS_OWN),
        (("model_provider=mine",), "[model_providers.mine]\nrequest_max_retries = 3\n", NONE_OF_ITS_OWN[1:]),
        (('model_provider="openai"',), 'model_provider = "mine"\n[model_providers.mine]\n', ()),
        (("model_provider=mine", TABLE), "= = [", NONE_OF_ITS_OWN),
        (("model_provider=mine",), "model_providers = 3", ()),
        (("model_provider=a.b", 'model_providers."a.b".name="x"'), "", ()),
    ],
)
def test_codex_retries_of_user_defined_provider_are_disabled(
    tmp_path: Path, settings: tuple[str, ...], config: str, expected: tuple[str, ...]
) -> None:
    """We retry ourselves. A number of retries that is set is kept, and built-in providers are left unchanged."""
    (tmp_path / "config.toml").write_text(config)
    assert without_own_retries(settings, tmp_path) == expected


FILE = """
[shell_environment_policy]
inherit = "none"
set = {B = "2"}
[mcp_servers.own]
command = "true"
"""


@pytest.mark.real
@pytest.mark.parametrize(
    "settings",
    [
        (
            *('shell_environment_policy={set={A="1"}}', 'shell_environment_policy.exclude=["X"]'),
            *('mcp_servers.own={args=["a"]}', 'mcp_servers.own.args=["b"]'),
            *('mcp_servers.two={command="a",args=["b"]}', 'mcp_servers.two={command="c"}'),
            *("model_reasoning_effort=low", 'model_reasoning_effort="high"'),
        ),
        (
            *('shell_environment_policy.set={A="1"}', 'shell_environment_policy.set={C="3"}'),
            *('mcp_servers={two={command="a"}}', 'mcp_servers={three={command="b"}}'),
        ),
    ],
)
def test_known_settings_are_those_that_codex_reports(tmp_path: Path, settings: tuple[str, ...]) -> None:
    (tmp_path / "config.toml").write_text(FILE)
    argv = app_server_argv(find_codex(None, {}), settings)
    environment = {**os.environ, "CODEX_HOME": str(tmp_path)}
    transport = AppServerTransport(
        Launch(argv, environment, tmp_path, tmp_path / "stderr.log"), WireLog(tmp_path / "events.jsonl", str)
    )
    transport.start()
    try:
        transport.request("initialize", {"clientInfo": {"name": "test", "version": "0"}}, 30)
        transport.notify("initialized")
        reported = transport.request("config/read", {}, 30)["config"]
    finally:
        transport.stop()
    known = known_settings((*LEAN, *settings), tmp_path)
    for name in {re.split("[.=]", setting)[0] for setting in settings}:
        assert without_defaults(reported[name]) == known[name]


DEFAULTS = [("args", []), ("environment_id", "local"), ("enabled", True)]
"""What Codex adds to each MCP server."""


def without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        given = [(key, each) for key, each in value.items() if each is not None and (key, each) not in DEFAULTS]
        return {key: without_defaults(each) for key, each in given}
    return value


@pytest.mark.parametrize("setting", ["#a=1", "=1", "a", "", "a b=1", "[a]\n[b]\nc=1", "a.=1"])
def test_settings_with_unusable_keys_are_left_to_codex(setting: str) -> None:
    assert known_settings((setting, "model=m"), None)["model"] == "m"


def test_settings_of_one_role_do_not_reach_the_next() -> None:
    """Each setting is read once, and its table is merged with others of different roles."""
    shared = 'model_providers.own={name="own"}'
    first = known_settings((shared, "model_providers.own.retries=1"), None)
    assert first == {"model_providers": {"own": {"name": "own", "retries": 1}}}
    assert known_settings((shared,), None) == {"model_providers": {"own": {"name": "own"}}}
