"""The check ``document_notes``: whether an analyst has a note on every file of the batch."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field, JsonValue

from codex_multi_role.checks.check_options import CheckOptions, read_options
from codex_multi_role.checks.check_result import CheckResult
from codex_multi_role.checks.contract import CheckContext, declare_check, no_time
from codex_multi_role.checks.output_files import write_result
from codex_multi_role.reading.json_types import Json

COMPLETE: Final = "complete"
INCOMPLETE: Final = "incomplete"


class NotesOptions(CheckOptions):
    """``files`` of the batch, the analyst's new notes (``said``), and the earlier ``notes``."""

    files: list[dict[str, JsonValue]] = Field(description='"{{ batch.files }}"')
    said: list[dict[str, JsonValue]] = Field(description="an analyst's files")
    notes: list[dict[str, JsonValue]] = Field(default=[], description="an earlier result's notes")


class NotesResult(CheckResult):
    """The latest note on each file of the batch; the paths of those without one, and of others that have one."""

    status: Literal["complete", "incomplete"]
    reason: str
    notes: list[Json]
    missing: list[str]
    strange: list[str]


@declare_check(options=NotesOptions, result=NotesResult, max_seconds=no_time)
def judge_notes(context: CheckContext) -> NotesResult:
    """Judge the notes; leaves ``result.json``. Options: `NotesOptions`. Raises UsageError."""
    options = read_options(NotesOptions, context, "document_notes")
    wanted = [str(file["path"]) for file in options.files]
    given: dict[str, dict[str, Any]] = {str(note["path"]): note for note in (*options.notes, *options.said)}
    notes = [given[path] for path in wanted if str(given.get(path, {}).get("summary", "")).strip()]
    missing = [path for path in wanted if path not in {note["path"] for note in notes}]
    result = NotesResult(
        status=INCOMPLETE if missing else COMPLETE,
        reason=f"nothing was said of {', '.join(missing)}" if missing else "",
        notes=notes,
        missing=missing,
        strange=[path for path in given if path not in wanted],
    )
    return write_result(context, result)
