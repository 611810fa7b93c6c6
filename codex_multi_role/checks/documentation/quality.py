"""The check ``document_quality``: documents about source code, measured part by part."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import Field, JsonValue

from codex_multi_role.checks.artifacts import write_artifact, write_result
from codex_multi_role.checks.base import CheckContext, lasts
from codex_multi_role.checks.code_graph.check import repository
from codex_multi_role.checks.code_graph.files import Folder
from codex_multi_role.checks.documentation.evidence import Evidence
from codex_multi_role.checks.documentation.markdown import Document, read_markdown
from codex_multi_role.checks.documentation.mermaid import judge_diagrams
from codex_multi_role.checks.documentation.places import folder_of, page_of, read_page
from codex_multi_role.checks.documentation.score import CLAIMS, FILES, LINKS, MERMAID, SECTIONS, WEIGHTS, Part, Score
from codex_multi_role.checks.options import CheckOptions, read_options
from codex_multi_role.checks.time_left import TimeLeft

PASSED, BELOW = "passed", "below"


class QualityOptions(CheckOptions):
    """``graph`` is the result of ``code_graph``, ``out`` the documents' folder, relative to the workspace.

    ``sections``: the headings that each document must have, by its name without ``.md``. With a ``report`` the run
    folder gets a ``document.json``, which has this and the measured quality.
    """

    graph: dict[str, JsonValue] = Field(description='"{{ steps.<code_graph> }}"')
    out: str = Field(default="docs", min_length=1, description="a folder of the workspace")
    sections: dict[str, list[str]] = Field(min_length=1, description="document: [heading, …]")
    report: dict[str, JsonValue] = Field(default={}, description="what else document.json is to say")
    threshold: float = Field(default=0.8, ge=0, le=1, description="a number from 0 to 1")


@lasts(lambda _, deadline_seconds: deadline_seconds)
def measure_documents(context: CheckContext) -> dict[str, object]:
    """Measure; write ``result.json``.

    Options: `QualityOptions`. Returns what ``result.json`` holds: ``{status: passed|below, score, threshold, parts:
    [{name, weight, score, good, of, costs, problems: [{document, problem}]}], mermaid_judged_by, not_judged: n,
    refine: [{path, source, sha256, problems: [text], costs}]}``. The score is the sum of the parts' scores by their
    weights: ``files`` that have a page about their present state, ``mermaid`` diagrams that parse, ``links`` that lead
    somewhere, ``sections`` that are there, ``claims``: names in code font that the code knows. A part of which there
    is nothing has no score, but diagrams that nobody here can judge (``not_judged``) do not count. ``refine``: the
    documents that cost most, with the source file that a page is about.

    Raises UsageError for a wrong option, CheckFailed when it takes too long, RunInterrupted, StorageError.
    """
    options = read_options(QualityOptions, context, "document_quality")
    measured = _Measurement(context, options)
    result = write_result(context, measured.told())
    if options.report:
        _report(context, options.report, result)
    return result


def _report(context: CheckContext, report: dict[str, JsonValue], quality: dict[str, object]) -> None:
    run = context.run()
    known = {"run_id": run.run_id, "flow": run.flow, "started_at": run.started_at}
    told = context.redact.within({**known, **report, "quality": quality})
    text = json.dumps(told, indent=2, ensure_ascii=False)
    write_artifact(replace(context, folder=run.folder), "document.json", f"{text}\n")


class _Measurement:
    def __init__(self, context: CheckContext, options: QualityOptions) -> None:
        self._context = context
        self._options = options
        self._root = context.workspace.root
        self._files: list[dict[str, Any]] = list(options.graph["files"])  # type: ignore[arg-type]
        self._out = folder_of(context, options.out, "document_quality").relative_to(self._root).as_posix()
        self._parts = {name: Part() for name in WEIGHTS}
        self._documents: dict[str, Document] = {}
        self._time_left = TimeLeft(context, "document_quality")
        self._source_of = {page_of(self._out, file["path"]): file for file in self._files}
        self._measure()

    def _measure(self) -> None:
        for path, file in self._source_of.items():
            self._time_left.require()
            self._read_page(path, file)
        for name, headings in self._options.sections.items():
            self._read_document(f"{self._out}/{name}.md", headings)
        self._judge_diagrams()
        evidence = self._evidence()
        for path, document in self._documents.items():
            self._time_left.require()
            self._judge_links(path, document)
            for code in dict.fromkeys(document.codes):
                if (real := evidence.judge(code)) is not None:
                    self._parts[CLAIMS].count(real, path, f"`{code}` is no name that the code knows")

    def _read_page(self, path: str, file: dict[str, Any]) -> None:
        page = read_page(self._root / path)
        problem = f"there is no page about {file['path']}"
        if page is not None and page.text.strip():
            self._documents[path] = read_markdown(page.text)
            problem = "" if page.sha256 == file["sha256"] else f"it is about another state of {file['path']}"
        self._parts[FILES].count(not problem, path, problem)

    def _read_document(self, path: str, headings: Sequence[str]) -> None:
        page = read_page(self._root / path)
        document = self._documents[path] = read_markdown(page.text if page else "")
        there = {heading.strip().casefold() for heading in document.headings}
        for heading in headings:
            self._parts[SECTIONS].count(heading.casefold() in there, path, f"the section {heading!r} is missing")

    def _judge_diagrams(self) -> None:
        placed = [(path, text) for path, document in self._documents.items() for text in document.diagrams]
        judged = judge_diagrams(self._context, [text for _, text in placed])
        self._judged_by = judged.by
        self._not_judged = sum(problem is None for problem in judged.problems)
        for (path, text), problem in zip(placed, judged.problems, strict=True):
            if problem is not None:
                first = text.strip().splitlines()[0] if text.strip() else "nothing"
                self._parts[MERMAID].count(not problem, path, f"a diagram ({first[:40]}) does not parse: {problem}")

    def _evidence(self) -> Evidence:
        graph = self._options.graph
        evidence = Evidence(str(graph["name"]), self._files, graph["external"])  # type: ignore[arg-type]
        root = repository(self._context, str(graph["repo"]), "document_quality")
        for source in Folder(root, forbidden=self._context.workspace.forbidden).sources():
            self._time_left.require()
            if source.path in evidence.paths:
                evidence.learn(source.text)
        return evidence

    def _judge_links(self, path: str, document: Document) -> None:
        for link in dict.fromkeys(document.links):
            parts = urlsplit(link)
            if not parts.scheme and not parts.netloc:
                problem = self._link_problem(path, unquote(parts.path), unquote(parts.fragment))
                self._parts[LINKS].count(not problem, path, f"the link {link} {problem}")

    def _link_problem(self, path: str, target: str, anchor: str) -> str:
        place = ((self._root / path).parent / target).resolve() if target else self._root / path
        if target.startswith("/") or not place.is_relative_to(self._root):
            return "leads outside the workspace"
        if not place.exists():
            return "leads nowhere"
        if anchor and place.suffix == ".md":
            return "" if anchor in self._document_at(place).anchors else f"names a heading that {place.name} has not"
        return ""

    def _document_at(self, place: Path) -> Document:
        known = self._documents.get(place.relative_to(self._root).as_posix())
        page = read_page(place) if known is None else None
        return known or read_markdown(page.text if page else "")

    def told(self) -> dict[str, object]:
        unjudged = {MERMAID} if self._not_judged and not self._parts[MERMAID].of else set()
        score = Score(self._parts, unjudged, f"{self._out}/{next(iter(self._options.sections))}.md")
        sources = {path: {"source": file["path"], "sha256": file["sha256"]} for path, file in self._source_of.items()}
        return {
            "status": PASSED if score.total >= self._options.threshold else BELOW,
            "score": score.total,
            "threshold": self._options.threshold,
            "parts": score.parts(),
            "mermaid_judged_by": self._judged_by,
            "not_judged": self._not_judged,
            "refine": [
                {"source": "", "sha256": "", **sources.get(str(each["path"]), {}), **each} for each in score.dearest()
            ],
        }
