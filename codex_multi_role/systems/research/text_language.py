"""Detect a text's language, for the checks in the run's own process."""

from __future__ import annotations

from codex_multi_role.errors import UsageError
from codex_multi_role.systems.research.searching import language_detection


def language_of(text: str) -> str:
    """Like `searching.language_detection.language_of`. Raises UsageError without the library."""
    try:
        return language_detection.language_of(text)
    except ImportError as error:
        hint = "pip install 'codex-multi-role[research]', or leave the language out."
        raise UsageError("a filter by language needs py3langid, which is not installed", hint) from error
