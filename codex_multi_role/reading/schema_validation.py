"""Validate an answer against its JSON Schema (draft 2020-12), in words that a model or a person can act on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from codex_multi_role.errors import UsageError

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


MAX_PROBLEMS = 5
_HINT = "fix the role's output_schema or the step's reply schema"


@lru_cache
def require_valid(schema: str) -> None:
    """Raise ``SchemaError`` if that JSON is not a valid schema. One to which many answers are held is checked once."""
    from jsonschema import Draft202012Validator  # here: most answers have no schema of their own

    Draft202012Validator.check_schema(json.loads(schema))


def schema_problems(value: object, schema: Mapping[str, object]) -> list[str]:
    """Validate ``value`` against a JSON Schema; returns at most five problems, each with its path.

    Raises UsageError if the schema itself is invalid.
    """
    with mismatches(value, schema) as errors:
        return [describe_mismatch(error) for error in islice(errors, MAX_PROBLEMS)]


@contextmanager
def mismatches(value: object, schema: Mapping[str, object]) -> Iterator[Iterator[ValidationError]]:
    """The differences between ``value`` and ``schema``, found while the block reads them. Raises as above."""
    import jsonschema
    import referencing

    try:
        require_valid(json.dumps(schema))
        # An empty registry, because the default one fetches a remote $ref from the network.
        validator = jsonschema.Draft202012Validator(schema, registry=referencing.Registry())
        yield validator.iter_errors(value)
    except jsonschema.SchemaError as error:
        raise UsageError(f"the reply schema is not valid at {error.json_path}: {error.message}", _HINT) from error
    except (referencing.exceptions.Unresolvable, re.error, RecursionError) as error:
        raise UsageError(f"the reply schema cannot be used: {error}", _HINT) from error


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
