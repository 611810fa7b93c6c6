"""What Codex's model list says about the model of a role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def model_warning(listed: Mapping[str, Any], model: str, effort: str, *, only_listed: bool) -> str:
    """Why ``model`` may fail a turn, according to ``listed``, the answer to ``model/list``; empty if nothing is wrong.

    ``only_listed``: the provider is OpenAI. Codex knows nothing about the models of others.
    """
    data = listed.get("data")
    models = [each for each in data if isinstance(each, Mapping)] if isinstance(data, list) else []
    found = next((each for each in models if each.get("model") == model), None)
    if found is None:
        known = ", ".join(str(each.get("model")) for each in models if not each.get("hidden"))
        return f"Codex does not know the model {model}; it knows {known}" if only_listed and known else ""
    efforts = [str(each.get("reasoningEffort")) for each in found.get("supportedReasoningEfforts") or []]
    if not effort or not efforts or effort in efforts:
        return ""
    return f"the model {model} does not list the reasoning effort {effort}; it lists {', '.join(efforts)}"
