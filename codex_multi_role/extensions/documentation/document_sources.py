"""The checks ``document_sources`` and ``document_notes``: what an analyst reads and writes about a batch."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, ResultPart, declare_check, no_time
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.documentation.code_graph import repository, symbols_of
from codex_multi_role.extensions.documentation.discovery import LANGUAGE_OF, read_source
from codex_multi_role.extensions.documentation.document_paths import folder_of, page_of, summary_of
from codex_multi_role.extensions.documentation.document_plan import shortened
from codex_multi_role.reading.json_types import Json
from codex_multi_role.workspace import PathRefused, Workspace

MAX_CHARACTERS = 24_000
MAX_SUMMARY_CHARACTERS = 600
MAX_NAMES = 200


class DocumentSourcesOptions(CheckOptions):
    """``files``: ``{path, dependencies}`` each, below ``repo``. ``notes``: analysts' notes on other files."""

    repo: str = Field(default=".", min_length=1, description="a folder with source code")
    out: str = Field(default="docs", min_length=1, description="a folder of the workspace")
    files: list[Json] = Field(description='"{{ batch.files }}"')
    notes: list[list[Json]] = Field(default=[], description="lists of an analyst's files")


class SourceToDocument(ResultPart):
    """A ``text`` of more than ``MAX_CHARACTERS`` is shortened and says so."""

    path: str
    language: str
    lines: int
    text: str
    functions: list[str]
    classes: list[str]
    problem: str


class Summary(ResultPart):
    path: str
    summary: str


class DocumentSourcesResult(CheckResult):
    """``context``: dependencies of these files in the repository that have a note, or a page of an earlier run."""

    status: Literal["read"]
    files: list[SourceToDocument]
    context: list[Summary]


@declare_check(options=DocumentSourcesOptions, result=DocumentSourcesResult, max_seconds=no_time)
def read_sources(context: CheckContext) -> DocumentSourcesResult:
    """Read the files; leaves ``result.json``.

    Options: `DocumentSourcesOptions`. Raises UsageError for a wrong option and for a path outside ``repo``.
    """
    options = context.read_options(DocumentSourcesOptions, "document_sources")
    repo = Workspace(repository(context, options.repo, "document_sources"))
    own = {str(each["path"]) for each in options.files}
    all_needed = (str(path) for each in options.files for path in each.get("dependencies", ()))
    needed = dict.fromkeys(path for path in all_needed if path not in own)
    notes = {str(note["path"]): str(note["summary"]) for each in options.notes for note in each}
    root = context.workspace.root
    out = folder_of(context, options.out, "document_sources").relative_to(root).as_posix()
    summaries = {path: notes.get(path) or summary_of(root / page_of(out, path), path) for path in needed}
    told = {path: summary[:MAX_SUMMARY_CHARACTERS] for path, summary in summaries.items() if summary}
    known = [Summary(path=path, summary=summary) for path, summary in told.items()]
    files = [_read(repo, str(each["path"])) for each in options.files]
    return DocumentSourcesResult(status="read", files=files, context=known)


def _read(repo: Workspace, path: str) -> SourceToDocument:
    try:
        place = repo.resolve_inside(path)
        if place.suffix.lower() not in LANGUAGE_OF:
            raise PathRefused("invalid path")
    except PathRefused as error:
        raise UsageError(f"check document_sources: files: {error.reason} {path!r}") from error
    source = read_source(place, path)
    symbols = symbols_of(source)
    return SourceToDocument(
        path=path,
        language=source.language,
        lines=source.lines,
        text=shortened(source.text, MAX_CHARACTERS),
        functions=symbols.functions[:MAX_NAMES],
        classes=symbols.classes[:MAX_NAMES],
        problem=symbols.problem,
    )


class NotesOptions(CheckOptions):
    """``files`` of the batch, the analyst's new notes (``said``), and the earlier ``notes``."""

    files: list[Json] = Field(description='"{{ batch.files }}"')
    said: list[Json] = Field(description="an analyst's files")
    notes: list[Json] = Field(default=[], description="an earlier result's notes")


class NotesResult(CheckResult):
    """The latest note on each file of the batch; the paths of those without one, and of others that have one."""

    bad = ("incomplete",)

    status: Literal["complete", "incomplete"]
    reason: str
    notes: list[Json]
    missing: list[str]
    strange: list[str]


@declare_check(options=NotesOptions, result=NotesResult, max_seconds=no_time)
def judge_notes(context: CheckContext) -> NotesResult:
    """Judge the notes; leaves ``result.json``. Options: `NotesOptions`. Raises UsageError."""
    options = context.read_options(NotesOptions, "document_notes")
    wanted = [str(file["path"]) for file in options.files]
    given: dict[str, dict[str, Any]] = {str(note["path"]): note for note in (*options.notes, *options.said)}
    notes = [given[path] for path in wanted if str(given.get(path, {}).get("summary", "")).strip()]
    missing = [path for path in wanted if path not in {note["path"] for note in notes}]
    return NotesResult(
        status="incomplete" if missing else "complete",
        reason=f"missing in the answer: {', '.join(missing)}" if missing else "",
        notes=notes,
        missing=missing,
        strange=[path for path in given if path not in wanted],
    )
