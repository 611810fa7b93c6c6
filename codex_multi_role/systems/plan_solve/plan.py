"""The check ``plan``: whether tasks with dependencies can be carried out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from codex_multi_role.checks.check_options import CheckOptions, read_options
from codex_multi_role.checks.check_result import CheckResult
from codex_multi_role.checks.contract import CheckContext, declare_check, no_time
from codex_multi_role.checks.json_schema import schema_problems
from codex_multi_role.checks.output_files import write_result
from codex_multi_role.reading.json_types import Json
from codex_multi_role.systems.plan_solve.plans import (
    FEWEST_TASKS,
    MOST_TASKS,
    TASKS_SCHEMA,
    plan_problems,
    with_defaults,
)

_Number = Annotated[int, Field(ge=1)]


class PlanOptions(CheckOptions):
    tasks: JsonValue = Field(description="a list of tasks, each with id and content, usually a template")
    min_tasks: _Number = Field(default=FEWEST_TASKS, description="the fewest tasks that will do")
    max_tasks: _Number = Field(default=MOST_TASKS, description="the most tasks there may be")


class PlanResult(CheckResult):
    """Valid ``tasks`` have all their fields; an invalid plan has none."""

    status: Literal["valid", "invalid"]
    problems: list[str]
    tasks: list[Json]


@declare_check(options=PlanOptions, result=PlanResult, max_seconds=no_time, read_only=True)
def check_plan(context: CheckContext) -> PlanResult:
    """Validate the tasks; write ``result.json``. Options: `PlanOptions`. Raises UsageError for a wrong option."""
    options = read_options(PlanOptions, context, "plan")
    given: Any = options.tasks
    problems = schema_problems(given, dict(TASKS_SCHEMA)) or _problems(given, options)
    tasks = [] if problems else with_defaults(given)
    result = PlanResult(status="invalid" if problems else "valid", problems=problems, tasks=tasks)
    return write_result(context, result)


def _problems(tasks: Sequence[dict[str, Any]], options: PlanOptions) -> list[str]:
    return plan_problems(tasks, options.min_tasks, options.max_tasks)
