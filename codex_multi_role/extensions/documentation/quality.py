"""The check ``document_quality``: measure documents about source code, part by part."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, Field

from codex_multi_role.checks import (
    CheckContext,
    CheckOptions,
    CheckResult,
    ResultPart,
    TimeLeft,
    as_json,
    declare_check,
)
from codex_multi_role.checks.text_files import put
from codex_multi_role.extensions.documentation.code_graph import repository
from codex_multi_role.extensions.documentation.discovery import Folder
from codex_multi_role.extensions.documentation.document_paths import LARGEST_PAGE_BYTES, folder_of, read_text
from codex_multi_role.extensions.documentation.evidence import Evidence
from codex_multi_role.extensions.documentation.measurement import DocumentMeasurement
from codex_multi_role.extensions.documentation.mermaid import judge_diagrams
from codex_multi_role.extensions.documentation.score import Score
from codex_multi_role.reading.json_types import Json


class Refined(BaseModel):
    """A refined document and its text before; None if it was missing."""

    path: str
    before: str | None = None


class QualityOptions(CheckOptions):
    """``graph`` is the result of ``code_graph``, ``out`` the documents' folder, relative to the workspace.

    ``sections``: the required headings of each document, by its name without ``.md``. ``report`` and the measured
    quality are written to ``document.json`` in the run folder, unless ``report`` is empty. ``refined``: the documents
    refined since the last measurement, whose ``not_kept`` are passed on.
    """

    graph: Json = Field(description='"{{ steps.<code_graph> }}"')
    out: str = Field(default="docs", min_length=1, description="a folder of the workspace")
    sections: dict[str, list[str]] = Field(min_length=1, description="document: [heading, …]")
    report: Json = Field(default={}, description="further content of document.json")
    refined: list[Refined] = Field(default=[], description="a list of {path, before}")
    not_kept: list[Json] = Field(default=[], description="the not_kept of the last result")
    threshold: float = Field(default=0.8, ge=0, le=1, description="a number from 0 to 1")


class PartBelow(ResultPart):
    part: str
    score: float
    minimum: float


class DocumentProblem(ResultPart):
    document: str
    problem: str


class MeasuredPart(ResultPart):
    """``good`` ``of`` so many items; ``costs``: what the others take from the score. ``score``: None if not judged."""

    name: str
    weight: float
    score: float | None
    minimum: float
    good: int
    of: int
    costs: float
    problems: list[DocumentProblem]


class DocumentToRefine(ResultPart):
    """``source`` and ``sha256``: the file that a page is about, otherwise empty."""

    source: str
    sha256: str
    path: str
    problems: list[str]
    costs: float


class QualityResult(CheckResult):
    """``score`` is the weighted sum of the scores of the ``parts``.

    ``files`` that have a page about their current state, ``pages`` that are about their file, ``mermaid`` diagrams that
    parse, ``links`` that lead somewhere, ``sections`` with content, ``claims``: names in code font that the code knows,
    on a page those of its file. To pass, the score must reach the threshold and each part its minimum; a threshold of 0
    only measures. A part without items scores 0. Without Mermaid's own parser, diagrams are ``not_judged``: the part
    has no score then, and no weight; ``mermaid_judged_by`` says why.
    ``refine``: the documents that cost most. ``not_kept``: refinements, ``{path, score, without}``: the score they led
    to and the one without them.
    """

    bad = ("below",)

    status: Literal["passed", "below"]
    score: float
    threshold: float
    below: list[PartBelow]
    parts: list[MeasuredPart]
    mermaid_judged_by: str
    not_judged: int
    refine: list[DocumentToRefine]
    not_kept: list[Json]


@declare_check(options=QualityOptions, result=QualityResult)
def measure_documents(context: CheckContext) -> QualityResult:
    """Measure; write ``result.json``. A refinement that does not raise the score is rolled back.

    Options: `QualityOptions`. Raises UsageError for a wrong option, CheckFailed when it takes too long, RunInterrupted,
    StorageError.
    """
    options = context.read_options(QualityOptions, "document_quality")
    result = QualityResult.model_validate(_Gate(context, options).measured())
    if options.report:
        run = context.run()
        known = {"run_id": run.run_id, "flow": run.flow, "started_at": run.started_at}
        fields = context.redact.within({**known, **options.report, "quality": as_json(result)})
        text = json.dumps(fields, indent=2, ensure_ascii=False)
        replace(context, folder=run.folder).write_artifact("document.json", f"{text}\n")
    return result


class _Gate:
    def __init__(self, context: CheckContext, options: QualityOptions) -> None:
        self._context = context
        self._options = options
        self._root = context.workspace.root
        self._time_left = TimeLeft(context, "document_quality")
        files = options.graph["files"]
        out = folder_of(context, options.out, "document_quality").relative_to(self._root).as_posix()
        self._measurement = DocumentMeasurement(self._root, out, files, options.sections, self._time_left.require)
        self._texts = {path: read_text(self._root / path) for path in self._measurement.paths}
        earlier = {each.path: each.before for each in options.refined if each.path in self._texts}
        self._before = {path: text[:LARGEST_PAGE_BYTES] for path, text in earlier.items() if text is not None}
        self._judge_diagrams()
        self._evidence = self._read_evidence(files)

    def _judge_diagrams(self) -> None:
        texts = [*self._texts.values(), *self._before.values()]
        diagrams = list(dict.fromkeys(each for text in texts for each in self._measurement.diagrams(text)))
        judged = judge_diagrams(self._context, diagrams)
        self._judged_by = judged.by
        self._measurement.verdicts = judged.verdicts

    def _read_evidence(self, files: list[dict[str, Any]]) -> Evidence:
        graph = self._options.graph
        evidence = Evidence(str(graph["name"]), files, graph["external"])
        root = repository(self._context, str(graph["repo"]), "document_quality")
        for source in Folder(root, forbidden=self._context.workspace.forbidden).sources():
            self._time_left.require()
            if source.path in evidence.paths and not source.problem:
                evidence.learn(source.path, source.text)
        return evidence

    def _score(self, texts: dict[str, str | None]) -> Score:
        return self._measurement.score(texts, self._evidence)

    def _best(self) -> tuple[Score, list[Json]]:
        """The score with only the refinements that raise it, and the others, whose documents get their old text."""
        texts = self._texts
        score = self._score(texts)
        not_kept: list[Json] = []
        for path, before in self._before.items():
            without = self._score({**texts, path: before})
            if without.exact >= score.exact and texts[path] != before:
                not_kept.append({"path": path, "score": score.total, "without": without.total})
                texts, score = {**texts, path: before}, without
        all_before = self._score({**self._texts, **self._before}) if self._before else score
        if all_before.exact > score.exact:  # each raises it alone, but together they lower it, such as two copies
            fields = {"score": score.total, "without": all_before.total}
            score, not_kept = all_before, [{"path": path, **fields} for path in self._before]
        return score, not_kept

    def measured(self) -> dict[str, object]:
        score, not_kept = self._best()
        whole = {each.path: each.before for each in self._options.refined}
        for each in not_kept:
            put(self._context, str(each["path"]), whole[str(each["path"])] or "")
        passed = score.total >= self._options.threshold and (not score.below or not self._options.threshold)
        diagrams = [each for path in self._texts for each in self._measurement.diagrams(self._texts[path])]
        return {
            "status": "passed" if passed else "below",
            "score": score.total,
            "threshold": self._options.threshold,
            "below": score.below,
            "parts": score.parts(),
            "mermaid_judged_by": self._judged_by,
            "not_judged": sum(each not in self._measurement.verdicts for each in diagrams),
            "refine": [{**self._source(str(each["path"])), **each} for each in score.costliest()],
            "not_kept": [*self._options.not_kept, *not_kept],
        }

    def _source(self, path: str) -> dict[str, object]:
        file = self._measurement.source_of.get(path, {})
        return {"source": file.get("path", ""), "sha256": file.get("sha256", "")}
