"""Read one answer: its handoff, valid against its schema, the role's refusal, or the problem to ask about again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codex_multi_role.replies.extract import FoundObject, find_objects
from codex_multi_role.replies.refusal import ERROR, declares_error, refusal_in, without_error
from codex_multi_role.replies.schema import schema_problems

EMPTY = "The answer was empty."
"""The ``problem`` of an empty answer."""


@dataclass(frozen=True)
class Reply:
    """The content of an answer.

    ``handoff``: the validated object, or None. ``repaired_locally``: its text was not JSON but could be read exactly.
    ``problem``: empty for a good answer, otherwise what was wrong, in words for the repair prompt. ``only_text``: the
    answer has no JSON object, not even a damaged one. ``refusal``: why the role cannot do its part; ``handoff`` then
    holds only that reason.
    """

    handoff: dict[str, object] | None
    repaired_locally: bool
    problem: str
    only_text: bool = False
    refusal: str = ""


def read_reply(text: str, schema: Mapping[str, object] | None) -> Reply:
    """Read a model's answer. ``schema`` is the JSON Schema of the handoff, None if any object will do.

    Raises UsageError if ``schema`` is not a JSON Schema.
    """
    if not text.strip("\ufeff \t\r\n"):
        return Reply(None, False, EMPTY, only_text=True)
    found = find_objects(text)
    if not found.objects:
        return Reply(None, False, found.problem, only_text=found.only_text)
    return _choose([_reply(each, schema) for each in found.objects])


def _choose(replies: Sequence[Reply]) -> Reply:
    """The only valid reply; if none fits its schema, the last one, because an answer follows what it quotes."""
    good = [reply for reply in replies if not reply.problem]
    if len(good) > 1:
        return Reply(None, False, f"The answer contains {len(good)} different JSON objects that could be meant.")
    return good[0] if good else replies[-1]


def _reply(found: FoundObject, schema: Mapping[str, object] | None) -> Reply:
    value = found.value if schema is None else without_error(found.value, schema)
    problems = [] if schema is None else schema_problems(value, schema)
    reason = refusal_in(value, schema)
    if reason and (problems or not declares_error(schema)):
        return Reply({ERROR: reason}, found.repaired, "", refusal=reason)
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems)
        return Reply(None, found.repaired, f"The JSON object does not match its schema:\n{listed}")
    return Reply(value, found.repaired, "")
