"""The check ``answer``: write the final answer of a run to ``answer.md``."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field

from codex_multi_role.checks.check_options import CheckOptions, read_options
from codex_multi_role.checks.check_result import CheckResult
from codex_multi_role.checks.contract import CheckContext, declare_check, no_time
from codex_multi_role.checks.output_files import write_artifact, write_result

ANSWER_FILE = "answer.md"


class AnswerOptions(CheckOptions):
    text: str = Field(min_length=1, description="the answer, usually a template")


class AnswerResult(CheckResult):
    status: Literal["written"]
    file: str


@declare_check(options=AnswerOptions, result=AnswerResult, max_seconds=no_time, read_only=True)
def write_answer(context: CheckContext) -> AnswerResult:
    """Write ``answer.md`` into the run folder, secrets masked.

    Options: `AnswerOptions`. Raises UsageError, StorageError.
    """
    options = read_options(AnswerOptions, context, "answer")
    path = write_artifact(replace(context, folder=context.run().folder), ANSWER_FILE, f"{options.text.rstrip()}\n")
    return write_result(context, AnswerResult(status="written", file=path.name))
