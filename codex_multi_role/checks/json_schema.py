"""The check ``schema``: validate a value, or a file of the workspace, against a JSON Schema."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Literal, Self

from jsonschema import SchemaError
from jsonschema.validators import validator_for
from pydantic import Field, JsonValue, field_validator, model_validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from codex_multi_role.checks.contract import CheckContext, CheckOptions, CheckResult, declare_check, no_time
from codex_multi_role.checks.data_file import parse_document, read_document
from codex_multi_role.errors import UsageError
from codex_multi_role.reading.schema_validation import describe_mismatch
from codex_multi_role.workspace import Workspace

Status = Literal["valid", "invalid", "could not run"]
MAX_PROBLEMS = 20
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


class SchemaOptions(CheckOptions):
    """Either ``value``, of any type, or ``file``, which is JSON if its name ends so, otherwise YAML.

    ``schema`` is a JSON Schema or the name of such a file; draft 2020-12 unless its ``$schema`` names another.
    """

    value: JsonValue = Field(default=None, description="the value to validate, usually a template")
    file: str | None = Field(default=None, description="a JSON or YAML file of the workspace, relative to it")
    schema_: JsonValue = Field(alias="schema", description="a JSON Schema, or a file of the workspace with one")

    @field_validator("schema_")
    @classmethod
    def _check_schema(cls, schema: JsonValue) -> JsonValue:
        if not isinstance(schema, dict | str):
            raise ValueError("must be a mapping or the name of a file")
        return schema

    @model_validator(mode="after")
    def _check_subject(self) -> Self:
        if ("value" in self.model_fields_set) == (self.file is not None):
            raise ValueError("give either value or file")
        return self


class SchemaResult(CheckResult):
    """At most twenty ``problems`` with their paths (``$.files[0].path: …``).

    A file that cannot be parsed is ``invalid``; without a file or a valid schema file, the check could not run.
    """

    bad = ("invalid",)

    status: Status
    reason: str
    problems: list[str]


@declare_check(options=SchemaOptions, result=SchemaResult, max_seconds=no_time, read_only=True)
def check_schema(context: CheckContext) -> SchemaResult:
    """Validate; write ``result.json``.

    Options: `SchemaOptions`. Nothing is fetched: a reference out of the schema cannot be resolved. Raises UsageError
    for a wrong option, such as an invalid inline schema, and StorageError when the artifact cannot be written.
    """
    options = context.read_options(SchemaOptions, "schema")
    status, problems = _judge(context.workspace, options)
    reason = problems[0] if status == "could not run" else ""
    return SchemaResult(status=status, reason=reason, problems=problems)


def _judge(workspace: Workspace, options: SchemaOptions) -> tuple[Status, list[str]]:
    name = options.file
    try:
        schema = _schema(workspace, options.schema_)
        text = None if name is None else read_document(workspace, name, "check schema: file")
    except ValueError as error:
        return "could not run", [str(error)]
    try:
        value = options.value if name is None or text is None else parse_document(text, name)
    except ValueError as error:
        return "invalid", [f"{name}: {error}"]
    try:
        problems = schema_problems(value, schema)
    except ValueError as error:
        if isinstance(options.schema_, str):
            return "could not run", [f"{options.schema_}: {error}"]
        raise UsageError(f"check schema: schema: {error}", "Fix the step's schema.") from error
    return ("invalid" if problems else "valid"), problems


def _schema(workspace: Workspace, given: JsonValue) -> dict[str, Any]:
    """The schema, read from its file if ``given`` names one. Raises ValueError with the reason, UsageError."""
    if isinstance(given, dict):
        return given
    name = str(given)
    text = read_document(workspace, name, "check schema: schema")
    try:
        schema = parse_document(text, name)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if not isinstance(schema, dict):
        raise ValueError(f"{name}: not a JSON Schema: not a mapping")
    return schema


def schema_problems(value: Any, schema: dict[str, Any]) -> list[str]:  # noqa: ANN401 - any JSON
    """What is wrong with ``value``, at most `MAX_PROBLEMS`, in the order of the schema.

    Raises ValueError if the schema is invalid or cannot be used.
    """
    named = {"$schema": str(schema.get("$schema", _DRAFT))}
    draft = validator_for(named, default=None)  # type: ignore[arg-type]  # the annotations omit None
    if draft is None:
        raise ValueError(f"unknown JSON Schema draft {schema['$schema']!r}")
    try:
        draft.check_schema(schema)
        # An empty registry, because the default one fetches a remote $ref from the network.
        errors = draft(schema, registry=Registry()).iter_errors(value)
        return [describe_mismatch(error) for error in islice(errors, MAX_PROBLEMS)]
    except SchemaError as error:
        raise ValueError(f"not a JSON Schema: {error.json_path}: {error.message}") from error
    except (Unresolvable, re.error, RecursionError) as error:
        raise ValueError(f"the schema cannot be used: {error}") from error
