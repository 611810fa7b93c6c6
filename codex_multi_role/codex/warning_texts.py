"""Codex's warnings: which notifications carry one, its wording, and which are dropped."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Params = Mapping[str, Any]
MAX_CHARACTERS = 500
EXPECTED = re.compile(r"Codex will use the bundled bubblewrap|^Model metadata for `playbook` not found")
"""Warnings of every run with the bundled binary, or with a playbook."""
UNTRUSTED_PROJECT = "Project-local config, hooks, and exec policies are disabled"
UNTRUSTED_PROJECT_TEXT = "a project's .codex settings (config, hooks, rules) take no effect in a run"
"""Codex's own text advises trusting the project, which changes nothing here."""


def _message(params: Params) -> str:
    return _text(params["message"])


def _summary(params: Params) -> str:
    return _text(params["summary"], params.get("details"))


def _model(params: Params) -> str:
    return _text(f"the model {params['toModel']} answers instead of {params['fromModel']} ({params['reason']})")


def _server(params: Params) -> str:
    """MCP servers report every state in one notification; only a failure is a warning."""
    if params["status"] != "failed":
        return ""
    return _text(params.get("error") or f"the MCP server {params['name']} did not start")


def _text(*parts: object) -> str:
    text = " ".join(" ".join(str(part) for part in parts if part).split())
    if text.startswith(UNTRUSTED_PROJECT):
        return UNTRUSTED_PROJECT_TEXT
    return "" if EXPECTED.search(text) else text[:MAX_CHARACTERS]


WARNING_TEXTS: Mapping[str, Callable[[Params], str]] = {
    "warning": _message,
    "guardianWarning": _message,
    "configWarning": _summary,
    "deprecationNotice": _summary,
    "model/rerouted": _model,
    "mcpServer/startupStatus/updated": _server,
}
