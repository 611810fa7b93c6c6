"""The model provider that a role's settings select, and the settings that redirect it to another address."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_multi_role.codex.codex_settings import DEFAULT_PROVIDER, OWN_RETRIES, PLAIN_KEY, as_settings, known_settings
from codex_multi_role.errors import UsageError

OPENAI_NAME = "OpenAI"
OPENAI_URL = "https://api.openai.com/v1"
CHATGPT_URL = "https://chatgpt.com/backend-api/codex"
IN_FRONT = "openai-through-codex-multi-role"
LOCAL_URLS = {"ollama": "http://localhost:11434/v1", "lmstudio": "http://localhost:1234/v1"}
ORGANIZATION = {"OpenAI-Organization": "OPENAI_ORGANIZATION", "OpenAI-Project": "OPENAI_PROJECT"}


@dataclass(frozen=True)
class ModelProvider:
    """A model provider from Codex's configuration. ``name`` determines what Codex does, such as how it compacts.

    ``account_url``: where Codex connects with a ChatGPT login instead of ``base_url``, or empty. ``table``: the
    definition to use for a built-in provider, whose own accepts no other address.
    """

    id: str
    name: str
    base_url: str
    account_url: str = ""
    table: Mapping[str, Any] | None = None

    def at(self, address: str) -> tuple[str, ...]:
        """The settings that send the provider's requests to ``address``, as plain HTTP with plain bodies."""
        plain = ("features.enable_request_compression=false",)
        if self.table is None:
            changes = {"base_url": address, "supports_websockets": False}
            return (*as_settings({f"model_providers.{self.id}.{key}": value for key, value in changes.items()}), *plain)
        table = {**self.table, "name": self.name, "base_url": address, **dict.fromkeys(OWN_RETRIES, 0)}
        return (*as_settings({"model_provider": IN_FRONT, f"model_providers.{IN_FRONT}": table}), *plain)


def provider_of(settings: tuple[str, ...], home: Path | None) -> ModelProvider:
    """The provider that ``settings`` and the ``config.toml`` of the user's ``home`` select. Raises `UsageError`.

    The built-in provider uses WebSockets, a user-defined one does not (measured on 0.163.0; it has the same login,
    model, headers and compaction if it is called `OPENAI_NAME` and ``requires_openai_auth``).
    """
    known = known_settings(settings, home)
    name = str(known.get("model_provider") or DEFAULT_PROVIDER)
    providers = known.get("model_providers")
    defined = providers.get(name) if isinstance(providers, Mapping) else None
    if isinstance(defined, Mapping):
        return _defined(name, defined)
    if name == DEFAULT_PROVIDER:
        given = known.get("openai_base_url")
        table = {"wire_api": "responses", "requires_openai_auth": True, "env_http_headers": ORGANIZATION}
        return ModelProvider(name, OPENAI_NAME, str(given or OPENAI_URL), "" if given else CHATGPT_URL, table)
    if name in LOCAL_URLS:
        base_url = os.environ.get("CODEX_OSS_BASE_URL") or LOCAL_URLS[name]
        return ModelProvider(name, "gpt-oss", base_url, table={"wire_api": "responses"})
    message = f"the model provider {name} cannot be recorded"
    raise UsageError(message, "Only providers defined by -c or config.toml, and OpenAI's, can be recorded.")


def _defined(name: str, table: Mapping[str, Any]) -> ModelProvider:
    if not PLAIN_KEY.fullmatch(name):
        raise UsageError(f"the model provider {name!r} cannot be recorded", "Give it a name of letters and digits.")
    base_url = table.get("base_url")
    return ModelProvider(
        name, str(table.get("name") or name), str(base_url or OPENAI_URL), "" if base_url else CHATGPT_URL
    )
