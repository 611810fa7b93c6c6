"""JSON Schema validation with problems that a model or a person can act on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

from codex_multi_role.errors import UsageError
from codex_multi_role.reading.schema_mismatch import describe_mismatch

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
