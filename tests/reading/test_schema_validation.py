from __future__ import annotations

from typing import Any

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.reading.schema_validation import MAX_PROBLEMS, schema_problems

TASKS: dict[str, Any] = {
    "type": "object",
    "required": ["tasks"],
    "properties": {
        "tasks": {"type": "array", "items": {"type": "object", "required": ["id"]}},
        "score": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"value": {"type": "number"}}}]},
    },
}


def test_valid_object_has_no_problems() -> None:
    assert schema_problems({"tasks": [{"id": 1}], "score": None}, TASKS) == []


def test_problem_names_its_path() -> None:
    assert schema_problems({"tasks": [{"id": 1}, {}]}, TASKS) == ["$.tasks[1]: 'id' is a required property"]


def test_alternative_is_explained_by_its_nearest_branch() -> None:
    problems = schema_problems({"tasks": [], "score": {"value": "high"}}, TASKS)
    assert problems == ["$.score.value: 'high' is not of type 'number'"]


def test_problems_are_few_and_short() -> None:
    problems = schema_problems({"tasks": ["x" * 10_000] * 50}, TASKS)
    assert len(problems) == MAX_PROBLEMS
    assert all(len(problem) < 300 and problem.endswith("is not of type 'object'") for problem in problems)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"properties": {"a": {"pattern": "("}}},
        {"$ref": "#/missing"},
        {"$ref": "#"},
        {"$ref": "http://127.0.0.1:9/remote.json"},
    ],
)
def test_invalid_schema_is_a_usage_error(schema: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="reply schema") as caught:
        schema_problems({"a": "b"}, schema)
    assert caught.value.hint
