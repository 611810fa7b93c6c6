"""Read one answer: its handoff, valid against its schema, the role's refusal, or the problem to ask about again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from codex_multi_role.errors import UsageError
from codex_multi_role.reading.schema_mismatch import describe_mismatch
from codex_multi_role.replies.extract import FoundObject, find_objects

MAX_PROBLEMS = 5
_HINT = "fix the role's output_schema or the step's reply schema"


def schema_problems(value: object, schema: Mapping[str, object]) -> list[str]:
    """Validate ``value`` against a JSON Schema (draft 2020-12); returns at most five problems, each with its path.

    Raises UsageError if the schema itself is invalid.
    """
    import jsonschema  # here: most answers have no schema of their own
    import referencing

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
        # An empty registry, because the default one fetches a remote $ref from the network.
        validator = jsonschema.Draft202012Validator(schema, registry=referencing.Registry())
        errors = list(islice(validator.iter_errors(value), MAX_PROBLEMS))
    except jsonschema.SchemaError as error:
        raise UsageError(f"the reply schema is not valid at {error.json_path}: {error.message}", _HINT) from error
    except (referencing.exceptions.Unresolvable, re.error, RecursionError) as error:
        raise UsageError(f"the reply schema cannot be used: {error}", _HINT) from error
    return [describe_mismatch(error) for error in errors]


ERROR = "error"


def with_error(schema: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """``schema`` as sent: with a field ``error``, unless it declares its own or does not list its fields."""
    if schema is None or not _is_extended(schema):
        return schema
    properties, required = _properties(schema), schema.get("required", [])
    required = list(required) if isinstance(required, list) else []
    needed = [*required, ERROR] if set(required) >= set(properties) else required
    return {**schema, "properties": {**properties, ERROR: {"type": ["string", "null"]}}, "required": needed}


def without_error(value: dict[str, object], schema: Mapping[str, object]) -> dict[str, object]:
    """``value`` without the empty ``error`` that only the sent schema requires."""
    if _is_extended(schema) and value.get(ERROR, "") in ("", None):
        return {key: each for key, each in value.items() if key != ERROR}
    return value


def refusal_in(value: Mapping[str, object], schema: Mapping[str, object] | None) -> str:
    """The reason why ``value`` is not a handoff, or an empty string.

    Fields that the sent schema forces on a model are ignored; any other further field makes ``value`` a handoff.
    """
    reason = value.get(ERROR)
    if not isinstance(reason, str):
        return ""
    says_more = any(each for key, each in value.items() if key not in (ERROR, "status"))
    return "" if says_more and not (schema and _is_extended(schema)) else reason.strip()


def declares_error(schema: Mapping[str, object] | None) -> bool:
    """Whether ``error`` is a field of the role's own handoff, which is then validated like any other."""
    return schema is not None and ERROR in _properties(schema)


def _is_extended(schema: Mapping[str, object]) -> bool:
    return schema.get("type") == "object" and bool(_properties(schema)) and not declares_error(schema)


def _properties(schema: Mapping[str, object]) -> Mapping[str, object]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


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
