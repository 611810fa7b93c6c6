"""How data differs from a JSON Schema, in words that a model or a person can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_MAX_MESSAGE_CHARACTERS = 240


def describe_mismatch(error: ValidationError) -> str:
    """The most specific mismatch, with its place; long values lose their middle."""
    from jsonschema.exceptions import best_match

    deepest = best_match([error]) or error
    message = deepest.message
    if len(message) > _MAX_MESSAGE_CHARACTERS:
        half = _MAX_MESSAGE_CHARACTERS // 2
        message = f"{message[:half]} … {message[-half:]}"
    return f"{deepest.json_path}: {message}"
