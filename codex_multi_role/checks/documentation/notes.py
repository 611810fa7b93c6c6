"""The check ``document_notes``: whether an analyst has a note on every file of the batch."""

from __future__ import annotations

from typing import Any

from pydantic import Field, JsonValue

from codex_multi_role.checks.check_options import CheckOptions, read_options
from codex_multi_role.checks.contract import CheckContext, declare_check, no_time
from codex_multi_role.checks.output_files import write_result

COMPLETE, INCOMPLETE = "complete", "incomplete"


class NotesOptions(CheckOptions):
    """``files`` of the batch, the analyst's new notes (``said``), and the earlier ``notes``."""

    files: list[dict[str, JsonValue]] = Field(description='"{{ batch.files }}"')
    said: list[dict[str, JsonValue]] = Field(description="an analyst's files")
    notes: list[dict[str, JsonValue]] = Field(default=[], description="an earlier result's notes")


@declare_check(options=NotesOptions, max_seconds=no_time)
def judge_notes(context: CheckContext) -> dict[str, object]:
    """Judge the notes; leaves ``result.json``.

    Options: `NotesOptions`. Returns the content of ``result.json``: ``{status: complete|incomplete, reason, notes,
    missing: [path], strange: [path]}``: the latest note on each file of the batch, the files of the batch without one,
    and the files with one that are not in the batch. Raises UsageError.
    """
    options = read_options(NotesOptions, context, "document_notes")
    wanted = [str(file["path"]) for file in options.files]
    given: dict[str, dict[str, Any]] = {str(note["path"]): note for note in (*options.notes, *options.said)}
    notes = [given[path] for path in wanted if str(given.get(path, {}).get("summary", "")).strip()]
    missing = [path for path in wanted if path not in {note["path"] for note in notes}]
    result: dict[str, object] = {
        "status": INCOMPLETE if missing else COMPLETE,
        "reason": f"nothing was said of {', '.join(missing)}" if missing else "",
        "notes": notes,
        "missing": missing,
        "strange": [path for path in given if path not in wanted],
    }
    return write_result(context, result)
