"""The checks ``document_pages`` and ``document_write``: write documents, but only those that change."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, declare_check, no_time
from codex_multi_role.checks.text_files import put
from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.documentation.code_graph import repository
from codex_multi_role.extensions.documentation.document_paths import folder_of, marked, page_of, summary_of
from codex_multi_role.extensions.documentation.document_plan import obsolete_pages, shortened
from codex_multi_role.reading.json_types import Json
from codex_multi_role.workspace import PathRefused, Workspace

MAX_DIGEST_CHARACTERS = 100_000
MAX_NAMES_CHARACTERS = 30_000
MAX_PROJECT_FILE_CHARACTERS = 6_000
MAX_SCRIPTS = 10
PROJECT_FILES: Final = (
    *("README.md", "README.rst", "README.txt", "README", "pyproject.toml", "setup.cfg", "setup.py", "requirements.txt"),
    *("package.json", "Cargo.toml", "go.mod", "pom.xml", "build.gradle", "Makefile", "justfile", "Dockerfile"),
)
SCRIPT_FOLDERS: Final = ("scripts", "bin")
_FENCE = re.compile(r"\A\s*```(?:mermaid)?\n(.*?)\n?```\s*\Z", re.DOTALL)


class PagesOptions(CheckOptions):
    """``notes``: for each batch, the analyst's notes on its files."""

    graph: Json = Field(description='"{{ steps.<code_graph> }}"')
    out: str = Field(default="docs", min_length=1, description="a folder of the workspace")
    notes: list[list[Json]] = Field(description="lists of an analyst's files")


class DocumentWriteOptions(CheckOptions):
    """``content`` of a document of the workspace; ``source`` and ``sha256`` if it is the page about a file."""

    path: str = Field(min_length=1, description="a file of the workspace")
    content: str = Field(description="a text")
    source: str = Field(default="", description="the source file that it is about")
    sha256: str = Field(default="", description="the state of that file")


class PagesResult(CheckResult):
    """``pages`` were written, ``same`` counts new pages that were identical, ``unchanged`` files kept their page.

    Files ``without`` a page have none at all. ``digest`` has the first paragraph of every file's page; the texts after
    it list what the code defines, and files that no other depends on. ``project``: README, manifests and scripts.
    """

    status: Literal["written"]
    pages: list[str]
    same: int
    removed: list[str]
    unchanged: int
    without: list[str]
    digest: str
    classes: str
    functions: str
    entry_points: str
    project: str


class DocumentWriteResult(CheckResult):
    bad = ()

    status: Literal["written", "unchanged"]
    path: str


@declare_check(options=PagesOptions, result=PagesResult, max_seconds=no_time)
def write_pages(context: CheckContext) -> PagesResult:
    """Write a page for each note, and remove those about files that no longer exist. Leaves ``result.json``.

    Options: `PagesOptions`. Raises UsageError, CheckFailed if a page cannot be written, StorageError.
    """
    options = context.read_options(PagesOptions, "document_pages")
    return _Writer(context, options).write()


class _Writer:
    def __init__(self, context: CheckContext, options: PagesOptions) -> None:
        graph = options.graph
        self._context = context
        self._root = context.workspace.root
        self._folder = folder_of(context, options.out, "document_pages")
        self._out = self._folder.relative_to(self._root).as_posix()
        self._repo = repository(context, str(graph["repo"]), "document_pages")
        self._layers: list[list[str]] = graph["layers"]
        self._files: dict[str, dict[str, Any]] = {file["path"]: file for file in graph["files"]}
        self._notes: dict[str, dict[str, Any]] = {str(note["path"]): note for each in options.notes for note in each}

    def write(self) -> PagesResult:
        removed = [self._removed(page) for page in list(obsolete_pages(self._folder, self._files))]
        outcomes = {path: self._write_page(path, note) for path, note in self._notes.items() if path in self._files}
        summaries = {path: summary_of(self._root / page_of(self._out, path), path) for path in self._files}
        used = {needed for file in self._files.values() for needed in (*file["dependencies"], *file["deferred"])}
        return PagesResult(
            status="written",
            pages=[page_of(self._out, path) for path, outcome in outcomes.items() if outcome == "written"],
            same=sum(outcome == "unchanged" for outcome in outcomes.values()),
            removed=removed,
            unchanged=sum(bool(summary) for path, summary in summaries.items() if path not in outcomes),
            without=[path for path, summary in summaries.items() if not summary],
            digest=self._digest(summaries),
            classes=self._named("classes"),
            functions=self._named("functions"),
            entry_points=shortened("\n".join(path for path in self._files if path not in used), MAX_NAMES_CHARACTERS),
            project=project_files(self._repo),
        )

    def _write_page(self, path: str, note: dict[str, Any]) -> str:
        file = self._files[path]
        source = self._repo / path
        text = page_text(note, file, self._out, source if source.is_relative_to(self._root) else None, self._root)
        return write_document(self._context, page_of(self._out, path), marked(path, file["sha256"], text))

    def _removed(self, page: Path) -> str:
        try:
            page.unlink()
        except OSError as error:
            raise StorageError(f"{page} cannot be removed: {error.strerror}") from error
        return page.relative_to(self._root).as_posix()

    def _named(self, kind: str) -> str:
        lines = [f"{path}: {', '.join(file[kind])}" for path, file in self._files.items() if file[kind]]
        return shortened("\n".join(lines), MAX_NAMES_CHARACTERS)

    def _digest(self, summaries: dict[str, str]) -> str:
        lines = []
        for number, layer in enumerate(self._layers):
            lines.append(f"Layer {number}:")
            lines += [f"- {path}: {' '.join(summaries[path].split()) or '(unknown)'}" for path in layer]
        return shortened("\n".join(lines), MAX_DIGEST_CHARACTERS)


@declare_check(options=DocumentWriteOptions, result=DocumentWriteResult, max_seconds=no_time)
def write_one_document(context: CheckContext) -> DocumentWriteResult:
    """Write the document unless it is the same already. Raises UsageError, CheckFailed."""
    options = context.read_options(DocumentWriteOptions, "document_write")
    text = f"{options.content.strip()}\n"
    if options.source:
        text = marked(options.source, options.sha256, text)
    status = write_document(context, options.path, text)
    return DocumentWriteResult(status=status, path=options.path)


def write_document(context: CheckContext, path: str, text: str) -> Literal["written", "unchanged"]:
    """``written``, or ``unchanged`` if it is the same already. Raises CheckFailed where nothing may be written."""
    try:
        same = (context.workspace.root / path).read_bytes() == text.encode("utf-8", "replace")
    except OSError:
        same = False
    if not same:
        put(context, path, text)
    return "unchanged" if same else "written"


def page_text(note: Mapping[str, Any], file: Mapping[str, Any], out: str, source: Path | None, root: Path) -> str:
    """``file`` as ``code_graph`` lists it; ``source`` is its path, None outside the workspace ``root``."""
    here = (root / page_of(out, file["path"])).parent
    facts = f"{file['language']}, {file['lines']} lines, layer {file['layer']}"
    if source is not None:
        facts = f"[Source]({_relative(source, here)}), {facts}"
    pages = [f"[{_plain(path)}]({_relative(root / page_of(out, path), here)})" for path in file["dependencies"]]
    diagram = str(note.get("flow_diagram") or "").strip()
    inner = _FENCE.match(diagram)
    parts = [
        f"# {_plain(file['path'])}",
        str(note["summary"]).strip(),
        f"{facts}.",
        f"**Cannot be read as code:** {file['problem']}." if file["problem"] else "",
        f"**Read in part:** {file['partly']} could not be read." if file.get("partly") else "",
        _listed("Key insights", note.get("key_insights")),
        _listed("Classes", [_named(each) for each in note.get("classes") or ()]),
        _listed("Functions", [_named(each) for each in note.get("functions") or ()]),
        _listed("Depends on", pages),
        _listed("References", note.get("references")),
        f"## Flow\n\n{note['flow']}" if str(note.get("flow") or "").strip() else "",
        f"```mermaid\n{inner[1] if inner else diagram}\n```" if diagram else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _plain(path: str) -> str:
    """Escape ``__init__.py``: two underscores would make it bold."""
    return path.replace("__", r"\_\_")


def _listed(heading: str, items: Sequence[Any] | None) -> str:
    lines = [f"- {' '.join(str(item).split())}" for item in items or () if str(item).strip()]
    return "\n".join([f"## {heading}", "", *lines]) if lines else ""


def _named(text: Any) -> str:  # noqa: ANN401 - as a model wrote it
    """Put the name of ``add: puts it in`` in code font."""
    name, separator, rest = str(text).strip().partition(":")
    return f"`{name.strip(' `')}`{separator}{rest}" if name.strip(" `") else str(text)


def _relative(target: Path, here: Path) -> str:
    return Path(os.path.relpath(target, here)).as_posix().replace(" ", "%20").replace("(", "%28").replace(")", "%29")


def project_files(repo: Path) -> str:
    """The README, manifests and scripts of ``repo``, each with its path and the beginning of its text."""
    scripts = [f"{folder}/{file.name}" for folder in SCRIPT_FOLDERS for file in sorted((repo / folder).glob("[!.]*"))]
    return "\n\n".join(_shown_files(Workspace(repo), [*PROJECT_FILES, *scripts[:MAX_SCRIPTS]]))


def _shown_files(repo: Workspace, paths: list[str]) -> Iterator[str]:
    for path in paths:
        try:
            text = repo.resolve_inside(path).read_text(encoding="utf-8")
        except (PathRefused, OSError, UnicodeDecodeError):
            continue
        yield f"{path}:\n{shortened(text.strip(), MAX_PROJECT_FILE_CHARACTERS)}\nEND OF {path}"
