"""Which provider settings lead to, and how another address is put in front of it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.codex.codex_settings import known_settings
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays.selected_provider import CHATGPT_URL, IN_FRONT, OPENAI_URL, provider_of

HERE = "http://127.0.0.1:1/provider-1"
MINE = ('model_provider="mine"', 'model_providers.mine={name="My own", base_url="https://a.example/v1", env_key="K"}')


def merged(*settings: str) -> dict[str, Any]:
    known = known_settings(settings, None)
    provider: dict[str, Any] = known["model_providers"][known["model_provider"]]
    return provider


def test_one_of_ones_own_keeps_all_but_its_address() -> None:
    provider = provider_of(MINE, None)
    assert (provider.name, provider.base_url, provider.account_url) == ("My own", "https://a.example/v1", "")
    assert merged(*MINE, *provider.at(HERE)) == {
        "name": "My own",
        "env_key": "K",
        "base_url": HERE,
        "supports_websockets": False,
    }


def test_one_of_the_users_config_is_found(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        'model_provider = "work"\n[model_providers.work]\nname = "W"\nbase_url = "https://w/v1"\n'
    )
    assert provider_of((), tmp_path).base_url == "https://w/v1"


def test_built_in_one_is_replaced_by_one_with_the_same_login() -> None:
    provider = provider_of((), None)
    assert (provider.name, provider.base_url, provider.account_url) == ("OpenAI", OPENAI_URL, CHATGPT_URL)
    table = merged(*provider.at(HERE))
    assert known_settings(provider.at(HERE), None)["model_provider"] == IN_FRONT
    assert (table["name"], table["base_url"], table["requires_openai_auth"]) == ("OpenAI", HERE, True)
    assert (table["request_max_retries"], table["stream_max_retries"]) == (0, 0)


def test_address_of_the_users_own_holds_for_every_login() -> None:
    provider = provider_of(('openai_base_url="https://eu.example/v1"',), None)
    assert (provider.base_url, provider.account_url) == ("https://eu.example/v1", "")


def test_local_ones_are_known() -> None:
    assert provider_of(('model_provider="ollama"',), None).base_url == "http://localhost:11434/v1"


@pytest.mark.parametrize("name", ["amazon-bedrock", "nobody"])
def test_others_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} cannot be recorded"):
        provider_of((f'model_provider="{name}"',), None)


def test_every_setting_is_toml() -> None:
    for settings in (MINE, (), ('model_provider="ollama"',)):
        for setting in provider_of(settings, None).at(HERE):
            tomllib.loads(setting)
