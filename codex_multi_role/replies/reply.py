"""Read one answer: its JSON object, mended locally if need be, valid against its schema; or what to ask again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codex_multi_role.replies.extract import find_object
from codex_multi_role.replies.repair import repair_object
from codex_multi_role.replies.schema import schema_problems

EMPTY = "The answer was empty."
"""The ``problem`` of an answer without a word."""


@dataclass(frozen=True)
class Reply:
    """What an answer gave.

    ``handoff`` is the validated object, or None; ``repaired_locally`` says that its text did not parse and was mended;
    ``problem`` is ``""`` for a good answer, otherwise what was wrong, in words for the repair prompt. ``only_text``:
    there was no JSON object at all, not even a damaged one.
    """

    handoff: dict[str, object] | None
    repaired_locally: bool
    problem: str
    only_text: bool = False


def read_reply(text: str, schema: Mapping[str, object] | None) -> Reply:
    """Read a model's answer. ``schema`` is the JSON Schema of the handoff, None where any object will do.

    Raises UsageError if ``schema`` is not a JSON Schema.
    """
    if not text.strip("\ufeff \t\r\n"):
        return Reply(None, False, EMPTY, only_text=True)
    found = find_object(text)
    value = found.value if found.value is not None else repair_object(found.damaged)
    if value is None:
        return Reply(None, False, found.problem, only_text=not found.damaged)
    repaired = found.value is None
    problems = schema_problems(value, schema) if schema is not None else []
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems)
        return Reply(None, repaired, f"The JSON object does not match its schema:\n{listed}")
    return Reply(value, repaired, "")
