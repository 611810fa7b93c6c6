"""The checks ``read_file``, ``write_file`` and ``answer``: a text of the workspace, of a copy, or of the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field

from codex_multi_role.checks.contract import CheckContext, CheckOptions, CheckResult, declare_check, no_time
from codex_multi_role.checks.data_file import read_document
from codex_multi_role.errors import CheckFailed
from codex_multi_role.workspace import apply_files

ANSWER_FILE = "answer.md"


class ReadOptions(CheckOptions):
    """``path`` is relative to the workspace."""

    path: str = Field(min_length=1, description="a file of the workspace")


class TextFileOptions(CheckOptions):
    """``content`` is the whole file. ``copy``: the copy of the workspace to write in."""

    path: str = Field(min_length=1, description="a file of the workspace")
    content: str = Field(description="a text")
    copy_: str = Field(default="", alias="copy", description="the copy of a result of a step with isolate")


class TextFileResult(CheckResult):
    bad = ()

    status: Literal["read", "written"]
    path: str
    content: str


@declare_check(options=ReadOptions, result=TextFileResult, max_seconds=no_time, read_only=True)
def read_file(context: CheckContext) -> TextFileResult:
    """Read a text. Raises UsageError, CheckFailed if it is not a text of at most 1 MB."""
    options = context.read_options(ReadOptions, "read_file")
    try:
        content = read_document(context.workspace, options.path, "check read_file: path")
    except ValueError as error:
        raise CheckFailed(str(error)) from error
    return TextFileResult(status="read", path=options.path, content=content)


@declare_check(options=TextFileOptions, result=TextFileResult, max_seconds=no_time)
def write_file(context: CheckContext) -> TextFileResult:
    """Write a text. Raises UsageError, CheckFailed."""
    options = context.read_options(TextFileOptions, "write_file")
    context = context.in_copy(options.copy_)
    put(context, options.path, options.content)
    return TextFileResult(status="written", path=options.path, content=options.content)


def put(context: CheckContext, path: str, content: str) -> None:
    """Write the whole file. Raises CheckFailed if that is refused, such as outside the workspace."""
    (entry,) = apply_files(context.workspace, [{"path": path, "content": content}])
    if entry.status != "WROTE":
        raise CheckFailed(f"{path} was not written: {entry.reason}")


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
    options = context.read_options(AnswerOptions, "answer")
    path = replace(context, folder=context.run().folder).write_artifact(ANSWER_FILE, f"{options.text.rstrip()}\n")
    return AnswerResult(status="written", file=path.name)
