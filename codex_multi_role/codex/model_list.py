"""What Codex's list of models says about the one that a role asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def model_warning(listed: Mapping[str, Any], model: str, effort: str | None, *, only_listed: bool) -> str:
    """Why ``model`` may not take a turn, by the answer ``listed`` to ``model/list``; empty if nothing is wrong.

    ``only_listed``: the provider is OpenAI; of the models of others Codex knows nothing.
    """
    data = listed.get("data")
    models = [each for each in data if isinstance(each, Mapping)] if isinstance(data, list) else []
    found = next((each for each in models if each.get("model") == model), None)
    if found is None:
        known = ", ".join(str(each.get("model")) for each in models if not each.get("hidden"))
        return f"Codex does not know the model {model}; it knows {known}" if only_listed and known else ""
    efforts = [str(each.get("reasoningEffort")) for each in found.get("supportedReasoningEfforts") or []]
    if effort is None or not efforts or effort in efforts:
        return ""
    return f"the model {model} does not list the reasoning effort {effort}; it lists {', '.join(efforts)}"
