"""The check ``research_report``: write a research's result as Markdown, HTML and JSON into the run folder."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Literal

from pydantic import Field

from codex_multi_role.checks import (
    CheckContext,
    CheckOptions,
    CheckResult,
    ResultPart,
    RunFacts,
    declare_check,
    no_time,
)
from codex_multi_role.extensions.research.citations import citations_in, count_words
from codex_multi_role.extensions.research.report_text import Chapter, Research, as_markdown, page
from codex_multi_role.extensions.research.rounds import Rows
from codex_multi_role.reading.json_types import Json

Status = Literal["complete", "shortfalls", "unresolved", "nothing"]


class ReportOptions(CheckOptions):
    """The question and the plan, the results of the rounds and the verification, and the written texts.

    ``sections`` are those of ``research_facts``; ``written`` is the result of ``research-section`` for each.
    """

    question: str = Field(description="what was asked")
    depth: str = Field(description="how deep")
    plan: Json = Field(description='"{{ steps.<research_plan> }}"')
    sources: Rows = Field(default=[], description="all sources")
    findings: Rows = Field(default=[], description="all findings")
    facts: Rows = Field(default=[], description="all facts")
    discrepancies: Rows = Field(default=[], description="all discrepancies")
    sections: Rows = Field(default=[], description="the questions with known facts")
    written: Rows = Field(default=[], description='"{{ steps.<call>.results }}"')
    summary: Json = Field(default={}, description="{summary, problems}")
    log: Rows = Field(default=[], description="the result of each search")
    skipped: Rows = Field(default=[], description="topics that were not followed")
    failed: Rows = Field(default=[], description="sources that were not read")
    unanswered: list[str] = Field(default=[], description="ids of questions")


class RemovedCitation(ResultPart):
    where: str
    id: str


class ResearchReportResult(CheckResult):
    """``files``: the names of those written. ``status`` is ``unresolved`` if a citation was removed."""

    bad = ("nothing", "unresolved")

    status: Status
    words: int
    shortfalls: list[str]
    removed_citations: list[RemovedCitation]
    files: list[str]


@declare_check(options=ReportOptions, result=ResearchReportResult, max_seconds=no_time, read_only=True)
def research_report(context: CheckContext) -> ResearchReportResult:
    """Write ``findings.json`` and ``sources.json``; if anything is known, ``research.md`` and ``research.html`` too.

    A citation of an unknown source is removed and reported; every other is in ``sources.json``. Raises UsageError,
    StorageError.
    """
    options = context.read_options(ReportOptions, "research_report")
    run = context.run()
    research = _research(options, run)
    removed = [{"where": each.title, "id": name} for each in research.chapters for name in each.unresolved]
    shortfalls = [f"{each.title}: {problem}" for each in research.chapters for problem in each.problems]
    words = sum(count_words(each.body) for each in research.chapters)
    fields: Json = {"words": words, "shortfalls": shortfalls, "removed_citations": removed}
    sources = [{key: each[key] for key in each if key != "sketch"} for each in research.sources]
    files = {"findings.json": _data(options, run, fields), "sources.json": _json({"sources": sources})}
    if research.chapters:
        files |= {"research.md": as_markdown(research), "research.html": page(research)}
    place = replace(context, folder=run.folder)
    for name, text in files.items():
        place.write_artifact(name, text)
    unfit: Status = "unresolved" if removed else "shortfalls" if shortfalls else "complete"
    status: Status = unfit if research.chapters else "nothing"
    return ResearchReportResult(status=status, **fields, files=sorted(files))


def _research(options: ReportOptions, run: RunFacts) -> Research:
    known = [source["id"] for source in options.sources]
    chapters = []
    if options.sections:
        chapters.append(_chapter("Summary", "", str(options.summary.get("summary", "")), options.summary, known))
    for section, written in zip(options.sections, options.written, strict=True):
        own, question = written["vars"], section["question"]["text"]
        chapters.append(_chapter(" ".join(own["title"].split()) or question, question, own["body"], own, known))
    cited = {name for each in chapters for name in citations_in(each.body)}
    questions = {each["id"]: each["text"] for each in options.plan.get("questions", [])}
    return Research(
        question=" ".join(options.question.split()),
        depth=options.depth,
        date=run.started_at[:10],
        chapters=chapters,
        facts=options.facts,
        discrepancies=options.discrepancies,
        sources=[{**source, "cited": source["id"] in cited} for source in options.sources],
        missing=_missing(options, questions),
    )


def _chapter(title: str, question: str, body: str, fields: Json, known: list[str]) -> Chapter:
    unresolved = [each for each in citations_in(body) if each not in known]
    problems = [str(each) for each in fields.get("problems") or []]
    return Chapter(title, question, body, problems, unresolved)


def _missing(options: ReportOptions, questions: dict[str, str]) -> list[str]:
    """What a reader must know about gaps in the report."""
    gaps = [f"Nothing was found on: {questions[name]}" for name in options.unanswered]
    gaps += [f"Not researched because the plan had too many questions: {text}" for text in options.plan.get("cut", [])]
    gaps += [f"{each['source']} was not read on {each['topic']}: {each['reason']}" for each in options.failed]
    gaps += [f"Not followed: {each['topic']} ({each['reason']})" for each in options.skipped]
    reasons = dict.fromkeys(each["reason"] for each in options.log if each["reason"])
    return [*gaps, *(f"A search provider did not answer: {reason}" for reason in reasons)]


def _data(options: ReportOptions, run: RunFacts, fields: Json) -> str:
    return _json(
        {
            "run_id": run.run_id,
            "question": options.question,
            "depth": options.depth,
            "started_at": run.started_at,
            "questions": options.plan.get("questions", []),
            "cut_questions": options.plan.get("cut", []),
            "findings": options.findings,
            "facts": options.facts,
            "discrepancies": options.discrepancies,
            "unanswered": options.unanswered,
            "skipped": options.skipped,
            "failed": options.failed,
            "searches": options.log,
            **fields,
        }
    )


def _json(value: Json) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
