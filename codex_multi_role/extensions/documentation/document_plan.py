"""The check ``document_plan``: which files to document, and in which batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, JsonValue

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, ResultPart, declare_check, no_time
from codex_multi_role.extensions.documentation.document_paths import PAGES, folder_of, page_of, read_page
from codex_multi_role.extensions.documentation.layers import group, in_order
from codex_multi_role.reading.json_types import Json

SAMPLE = 5
MAX_STRUCTURE_CHARACTERS = 60_000


class DocumentPlanOptions(CheckOptions):
    """``graph`` is the result of ``code_graph``; ``groups`` are a planner's lists of paths.

    ``documents``: the names of the documents about the whole, without ``.md``. ``planning`` and ``synthesis`` are only
    validated: an unknown value is found here, before a role is asked.
    """

    graph: Json = Field(description='"{{ steps.<code_graph> }}"')
    out: str = Field(default="docs", min_length=1, description="a folder of the workspace")
    documents: list[str] = Field(default=[], description="names of documents without .md")
    groups: JsonValue = Field(default=None, description="a list of lists of paths")
    planning: Literal["static", "agentic"] = Field(default="static", description="static or agentic")
    synthesis: Literal["batch", "agentic"] = Field(default="batch", description="batch or agentic")


class FileToDocument(ResultPart):
    path: str
    sha256: str
    dependencies: list[str]


class Batch(ResultPart):
    """``needs``: the ids of the batches that it depends on."""

    id: str
    files: list[FileToDocument]
    needs: list[str]


class DroppedGroup(ResultPart):
    group: Any
    reason: str


class DocumentPlanResult(CheckResult):
    """``gone``: pages about files that no longer exist; ``missing``: documents without a file.

    ``dropped``: the unusable ones of a planner's groups; ``put_back``: files that are in no group. ``structure``
    describes the layers to a planner, ``sample`` names the files that most others depend on.
    """

    bad = ()

    status: Literal["planned", "up to date"]
    batches: list[Batch]
    changed: list[str]
    unchanged: int
    gone: list[str]
    missing: list[str]
    grouped_by: Literal["layers", "groups"]
    dropped: list[DroppedGroup]
    put_back: list[str]
    structure: str
    sample: list[str]


@declare_check(options=DocumentPlanOptions, result=DocumentPlanResult, max_seconds=no_time)
def plan_documents(context: CheckContext) -> DocumentPlanResult:
    """Compare the files with their pages by content hash; batch those that changed. Leaves ``result.json``.

    Options: `DocumentPlanOptions`. Raises UsageError for a wrong option.
    """
    options = context.read_options(DocumentPlanOptions, "document_plan")
    graph, root = options.graph, context.workspace.root
    out = folder_of(context, options.out, "document_plan")
    files = {file["path"]: file for file in graph["files"]}
    place = out.relative_to(root).as_posix()
    changed = [path for path, file in files.items() if not _is_current(root / page_of(place, path), file)]
    gone = [page.relative_to(root).as_posix() for page in obsolete_pages(out, files)]
    missing = [name for name in options.documents if not (out / f"{name}.md").is_file()]
    grouping = group(graph["layers"], {*changed}, options.groups if isinstance(options.groups, list) else None)
    return DocumentPlanResult(
        status="planned" if changed or gone or missing else "up to date",
        batches=[Batch.model_validate(batch) for batch in in_order(grouping, files)],
        changed=changed,
        unchanged=len(files) - len(changed),
        gone=gone,
        missing=missing,
        grouped_by=grouping.grouped_by,
        dropped=[DroppedGroup.model_validate(each) for each in grouping.dropped],
        put_back=grouping.put_back,
        structure=_structure(graph, {*changed}),
        sample=_sample(graph["files"]),
    )


def _is_current(page: Path, file: dict[str, Any]) -> bool:
    found = read_page(page)
    return found is not None and (found.source, found.sha256) == (file["path"], file["sha256"])


def obsolete_pages(out: Path, sources: Any) -> Iterator[Path]:  # noqa: ANN401 - any container of paths
    """The pages below ``out`` about a file that is not in ``sources``; links are not followed."""
    for path in sorted((out / PAGES).rglob("*.md")):
        page = read_page(path) if path.is_file() and path.resolve() == path else None
        if page is not None and page.source and page.source not in sources:
            yield path


def _sample(files: list[dict[str, Any]]) -> list[str]:
    users = Counter(needed for file in files for needed in file["dependencies"])
    return sorted(users, key=lambda path: (-users[path], path))[:SAMPLE]


def _structure(graph: dict[str, Any], changed: set[str]) -> str:
    """The files of each layer with their dependencies; a star marks those to document."""
    needs = {file["path"]: file["dependencies"] for file in graph["files"]}
    lines = []
    for number, layer in enumerate(graph["layers"]):
        lines.append(f"Layer {number}:")
        lines += [f"{'*' if path in changed else ' '} {path}: {', '.join(needs[path]) or '-'}" for path in layer]
    lines += [f"Circle: {', '.join(circle)}" for circle in graph["cycles"]]
    return shortened("\n".join(lines), MAX_STRUCTURE_CHARACTERS)


def shortened(text: str, most: int) -> str:
    """``text``, or as many of its lines as fit into ``most`` characters, and how many are left out."""
    if len(text) <= most:
        return text
    kept = text[:most].rpartition("\n")[0] or text[:most]
    return f"{kept}\n… {len(text.splitlines()) - len(kept.splitlines())} lines left out …"
