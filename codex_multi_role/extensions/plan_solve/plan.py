"""Plans: lists of tasks, some of which wait for others; their validation, and the check ``plan``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, declare_check, no_time
from codex_multi_role.checks.json_schema import schema_problems
from codex_multi_role.reading.json_types import Json

FEWEST_TASKS = 1
MOST_TASKS = 20
LONGEST_TEXT = 4_000

_TEXT = {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT}
_ID = {"type": "string", "minLength": 1, "maxLength": 64}
TASKS_SCHEMA: Mapping[str, Any] = {
    "type": "array",
    "maxItems": 200,
    "items": {
        "type": "object",
        "required": ["id", "content"],
        "additionalProperties": False,
        "properties": {
            "id": {**_ID, "description": "Short and unique: T1."},
            "content": {**_TEXT, "description": "What to do, complete enough for someone who sees nothing else."},
            "active_form": {**_TEXT, "description": "The same in progressive form: Calculating the area."},
            "status": {"enum": ["pending", "in_progress", "completed"]},
            "priority": {"enum": ["high", "medium", "low"]},
            "dependencies": {
                "type": "array",
                "items": _ID,
                "description": "The ids of the tasks whose results this one needs.",
            },
        },
    },
}


def with_defaults(tasks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The tasks with all fields filled in."""
    usual = {"status": "pending", "priority": "medium", "dependencies": []}
    return [{**usual, "active_form": task["content"], **task} for task in tasks]


def plan_problems(tasks: Sequence[Mapping[str, Any]], fewest: int = FEWEST_TASKS, most: int = MOST_TASKS) -> list[str]:
    """Why the plan cannot be followed; empty for a valid plan. The tasks must match `TASKS_SCHEMA`."""
    return list(_problems(tasks, fewest, most))


def _problems(tasks: Sequence[Mapping[str, Any]], fewest: int, most: int) -> Iterator[str]:
    if not tasks:
        yield "the plan is empty"
        return
    if len(tasks) < fewest:
        yield f"{len(tasks)} tasks are too few: at least {fewest}"
    if len(tasks) > most:
        yield f"{len(tasks)} tasks are too many: at most {most}"
    ids = [str(task["id"]) for task in tasks]
    yield from (f"{count} tasks have the id {name}" for name, count in Counter(ids).items() if count > 1)
    needs = {str(task["id"]): [str(name) for name in task.get("dependencies", ())] for task in tasks}
    for name, needed in needs.items():
        yield from (f"{name} depends on {other}, which is not a task" for other in needed if other not in needs)
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        yield f"tasks depend on each other: {' -> '.join(reversed(error.args[1]))}"


_Number = Annotated[int, Field(ge=1)]


class PlanOptions(CheckOptions):
    tasks: JsonValue = Field(description="a list of tasks, each with id and content, usually a template")
    min_tasks: _Number = Field(default=FEWEST_TASKS, description="the minimum number of tasks")
    max_tasks: _Number = Field(default=MOST_TASKS, description="the maximum number of tasks")


class PlanResult(CheckResult):
    """Valid ``tasks`` have all their fields; an invalid plan has none."""

    bad = ("invalid",)

    status: Literal["valid", "invalid"]
    problems: list[str]
    tasks: list[Json]


@declare_check(options=PlanOptions, result=PlanResult, max_seconds=no_time, read_only=True)
def check_plan(context: CheckContext) -> PlanResult:
    """Validate the tasks; write ``result.json``. Options: `PlanOptions`. Raises UsageError for a wrong option."""
    options = context.read_options(PlanOptions, "plan")
    given: Any = options.tasks
    problems = schema_problems(given, dict(TASKS_SCHEMA)) or plan_problems(given, options.min_tasks, options.max_tasks)
    tasks = [] if problems else with_defaults(given)
    return PlanResult(status="invalid" if problems else "valid", problems=problems, tasks=tasks)
