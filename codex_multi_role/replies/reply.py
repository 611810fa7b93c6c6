"""Read one answer: its handoff, valid against its schema, the role's refusal, or the problem to ask about again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

from codex_multi_role.reading.schema_validation import schema_problems
from codex_multi_role.replies.extract import FoundObject, find_objects
from codex_multi_role.replies.fitting import (
    ERROR,
    MAX_NAME_CHARACTERS,
    Correction,
    denies_error_only,
    error_in,
    fit,
    is_refusal,
    properties_of,
)

LOOP = "The answer repeats itself without an end. Write each part once."
LOOP_CHARACTERS = 2000
_LOOP = re.compile(r"(.{2,200}?)\1{9,}", re.DOTALL)
EMPTY = "The answer was empty."
"""The ``problem`` of an empty answer."""


@dataclass(frozen=True)
class Reply:
    """The content of an answer.

    ``handoff``: the validated object, or None. ``repaired_locally``: its text was not JSON but could be read exactly.
    ``problem``: empty for a good answer, otherwise what was wrong, in words for the repair prompt. ``only_text``: the
    answer has no JSON object, not even a damaged one. ``refusal``: why the role cannot do its part; ``handoff`` then
    holds only that reason. ``error``: what the answer calls an error although it is a handoff. ``corrections``: what
    was changed to make the handoff fit its schema.
    """

    handoff: dict[str, object] | None
    repaired_locally: bool
    problem: str
    only_text: bool = False
    refusal: str = ""
    error: str = ""
    corrections: tuple[str, ...] = ()


def unusable(reply: Reply, problems: Sequence[str]) -> Reply:
    """The reply with what is wrong with its object, each with its place, as something to ask about again."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    return Reply(None, reply.repaired_locally, f"The JSON object lacks what later steps need:\n{listed}")


def without(reply: Reply, paths: Sequence[tuple[str | int, ...]]) -> Reply:
    """The reply without the values at these paths of its object, which are noted as corrections."""
    if reply.handoff is None or not paths:
        return reply
    handoff, dropped = deepcopy(reply.handoff), [Correction(path) for path in paths]
    for each in dropped:
        each.apply(handoff)
    return replace(reply, handoff=handoff, corrections=(*reply.corrections, *map(str, dropped)))


def read_reply(text: str, schema: Mapping[str, object] | None, *, strict: bool = False) -> Reply:
    """Read a model's answer. ``schema`` is the JSON Schema of the handoff, None if any object will do.

    ``strict``: an answer that does not fit as it stands is not corrected. Raises UsageError if ``schema`` is not a JSON
    Schema.
    """
    if not text.strip("\ufeff \t\r\n"):
        return Reply(None, False, EMPTY, only_text=True)
    found = find_objects(text)
    if not found.objects:
        return Reply(None, False, _loop_in(text) or found.problem, only_text=found.only_text)
    replies = [_reply(each, schema) for each in found.objects]
    if schema is None or strict or not all(reply.problem for reply in replies):
        return _choose(replies)
    return _choose([_corrected(*each, schema) for each in zip(replies, found.objects, strict=True)])


def _loop_in(text: str) -> str:
    """The problem of an answer whose end says the same again and again; empty for any other."""
    end = text[-LOOP_CHARACTERS:]
    loop = _LOOP.search(end)
    return LOOP if loop is not None and 2 * len(loop[0]) > len(end) else ""


def _choose(replies: Sequence[Reply]) -> Reply:
    """The only valid reply; if none fits its schema, the last one, because an answer follows what it quotes."""
    good = [reply for reply in replies if not reply.problem]
    if len(good) > 1:
        return Reply(None, False, f"The answer contains {len(good)} different JSON objects that could be meant.")
    return good[0] if good else replies[-1]


def _reply(found: FoundObject, schema: Mapping[str, object] | None) -> Reply:
    """The object as it stands."""
    problems = [] if schema is None else schema_problems(found.value, schema)
    # An ``error`` that the schema declares is content, unless the answer has nothing else and does not fit.
    error = error_in(found.value, None if problems else schema)
    if error and is_refusal(found.value, schema):
        return Reply({ERROR: error}, found.repaired, "", refusal=error)
    if problems and _is_schema(found.value, schema):
        return Reply(None, found.repaired, "The answer is a JSON Schema. Write an object that fits it.")
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems)
        return Reply(None, found.repaired, f"The JSON object does not match its schema:\n{listed}")
    if denies_error_only(found.value, schema):
        said = json.dumps(found.value[ERROR], ensure_ascii=False)
        problem = f'The JSON object has neither a result nor a reason for declining the task: its "{ERROR}" is {said}.'
        return Reply(None, found.repaired, problem)
    return Reply(found.value, found.repaired, "", error=error)


def _is_schema(value: Mapping[str, object], schema: Mapping[str, object] | None) -> bool:
    """Whether the object describes an answer instead of being one."""
    described = value.get("properties")
    return isinstance(described, dict) and "properties" not in properties_of(schema) and "type" in value


def _corrected(reply: Reply, found: FoundObject, schema: Mapping[str, object]) -> Reply:
    """The object, or the only one that it wraps, corrected; ``reply`` if neither then fits."""
    if fitted := _fitted(found, schema):
        return fitted
    wrapper, wrapped = _wrapped(found.value, schema)
    if wrapped and (inner := _fitted(FoundObject(wrapped, found.repaired), schema)):
        return replace(inner, corrections=(f"{wrapper[:MAX_NAME_CHARACTERS]!r} around it dropped", *inner.corrections))
    return reply


def _wrapped(value: Mapping[str, object], schema: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """The only field, which the schema does not declare, and its object; empty if the object has no such wrapper."""
    fields = [(key, each) for key, each in value.items() if key != "$schema"]
    for key, each in fields if len(fields) == 1 else ():
        if isinstance(each, dict) and key not in properties_of(schema):
            return key, each
    return "", {}


def _fitted(found: FoundObject, schema: Mapping[str, object]) -> Reply | None:
    error, fitting = error_in(found.value, schema), fit(found.value, schema)
    if fitting is None or denies_error_only(found.value, schema) or (error and is_refusal(found.value, schema)):
        return None
    # An ``error`` has its own warning, or denies an error and needs no warning.
    notes = tuple(note for path, note in fitting.corrections.items() if path != (ERROR,))
    return Reply(fitting.value, found.repaired, "", error=error, corrections=notes)
