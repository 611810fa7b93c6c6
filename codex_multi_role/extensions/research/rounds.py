"""The checks ``research_sources`` and ``research_findings``: the results of a round of searching and reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, ResultPart, declare_check, no_time
from codex_multi_role.errors import CheckFailed
from codex_multi_role.extensions.research.research_plan import LONGEST_TOPIC, topic_key
from codex_multi_role.extensions.research.search import same_source
from codex_multi_role.extensions.research.search_providers import results_of_web, searched
from codex_multi_role.extensions.research.searching.addresses import origin
from codex_multi_role.reading.json_types import Json

Rows = list[dict[str, Any]]
MOST_TOPICS_OF_A_FINDING = 3
Depth = Annotated[int, Field(ge=0, le=10)]


class ResearchSourcesOptions(CheckOptions):
    """This round's ``topics``, the ``searches`` for them, a role's own (``web``), all in the same order.

    ``sources`` and ``read`` are those of the rounds before: a source is read once per question.
    """

    topics: Rows = Field(description="a list of topics, each with question, text and depth")
    searches: Rows = Field(description='"{{ steps.<search>.results }}"')
    web: Rows = Field(default=[], description="what a role found by its own web search, for each topic")
    sources: Rows = Field(default=[], description="the sources known so far")
    read: list[list[str]] = Field(default=[], description="pairs of a question's and a source's id")


class FindingsOptions(CheckOptions):
    """This round's ``topics``, the ``items`` of ``research_sources``, and what was ``extracted`` from each.

    ``recursion``: the maximum depth of topics; ``most``: how many are followed at one depth.
    """

    topics: Rows = Field(description="a list of topics, each with question, text and depth")
    items: Rows = Field(description='"{{ steps.<research_sources>.items }}"')
    extracted: Rows = Field(description='"{{ steps.<ask>.results }}"')
    visited: list[str] = Field(default=[], description="the topics researched so far")
    findings: Rows = Field(default=[], description="the findings so far")
    recursion: Depth = Field(description="a number from 0 to 10")
    most: int = Field(default=10, ge=1, le=100, description="a number from 1 to 100")


class ResearchSourcesResult(CheckResult):
    """``items`` to read: ``{topic, source, text}``. ``read``: pairs of a question's and a source's id.

    ``sources``: ``{id: S1, title, address, origin, date, provider, language, duplicates, sketch, shortened}``;
    ``origin`` is a page's host, or a document: what counts as one source when facts are verified. ``log``: the outcome
    of the search for each topic.
    """

    bad = ()

    status: Literal["found", "nothing"]
    items: list[Json]
    sources: list[Json]
    read: list[list[str]]
    log: list[Json]


class SkippedTopic(ResultPart):
    topic: str
    depth: int
    question: str
    reason: str


class UnreadSource(ResultPart):
    topic: str
    source: str
    reason: str


class FindingsResult(CheckResult):
    """All ``findings``: ``{id: F1, question, topic, depth, source, facts, confidence, new_topics, shortened}``.

    ``topics`` are those of the next round: new ones, no deeper than ``recursion``, by the priority of their question.
    ``visited``: those looked at so far; ``failed``: sources that were not read.
    """

    bad = ()

    status: Literal["more", "done"]
    findings: list[Json]
    topics: list[Json]
    visited: list[str]
    skipped: list[SkippedTopic]
    failed: list[UnreadSource]


@declare_check(options=ResearchSourcesOptions, result=ResearchSourcesResult, max_seconds=no_time, read_only=True)
def research_sources(context: CheckContext) -> ResearchSourcesResult:
    """Collect what to read, each source once per question. Raises CheckFailed if no search was answered."""
    options = context.read_options(ResearchSourcesOptions, "research_sources")
    sources = [dict(each) for each in options.sources]
    read = [list(pair) for pair in options.read]
    items: list[Json] = []
    log: list[Json] = []
    for index, (topic, found) in enumerate(zip(options.topics, options.searches, strict=True)):
        web = options.web[index] if index < len(options.web) else {}
        log.append(searched(topic, found, web))
        for result in [*found.get("results", []), *results_of_web(web)]:
            source = _find_or_add(result, sources)
            pair = [topic["question"], source["id"]]
            if pair not in read:
                read.append(pair)
                items.append({"topic": topic, "source": _source_fields(source, result), "text": result["text"]})
    if options.topics and not any(each["answered"] for each in log):
        raise CheckFailed("no search provider answered: " + "; ".join(sorted({each["reason"] for each in log})))
    return ResearchSourcesResult(
        status="found" if items else "nothing", items=items, sources=sources, read=read, log=log
    )


@declare_check(options=FindingsOptions, result=FindingsResult, max_seconds=no_time, read_only=True)
def research_findings(context: CheckContext) -> FindingsResult:
    """Collect this round's findings, and the topics that they lead to."""
    options = context.read_options(FindingsOptions, "research_findings")
    findings = list(options.findings)
    failed: list[UnreadSource] = []
    leads: list[Json] = []
    for item, extracted in zip(options.items, options.extracted, strict=True):
        topic, source = item["topic"], item["source"]["id"]
        if extracted.get("status") == "failed":
            failed.append(UnreadSource(topic=topic["text"], source=source, reason=extracted["error"]))
            continue
        finding = _finding(len(findings) + 1, topic, source, extracted)
        finding["shortened"] = item["source"].get("shortened", "")
        if finding["facts"]:
            findings.append(finding)
        leads += [{**topic, "text": text, "depth": topic["depth"] + 1} for text in finding["new_topics"]]
    visited = [*options.visited, *(topic_key(topic["text"]) for topic in options.topics)]
    topics, visited, skipped = _next_topics(leads, visited, options)
    return FindingsResult(
        status="more" if topics else "done",
        findings=findings,
        topics=topics,
        visited=visited,
        skipped=skipped,
        failed=failed,
    )


def _next_topics(
    leads: list[Json], visited: list[str], options: FindingsOptions
) -> tuple[Rows, list[str], list[SkippedTopic]]:
    """The topics to follow, all topics visited then, and those that are skipped, with the reason."""
    topics: Rows = []
    skipped: list[SkippedTopic] = []
    seen = list(dict.fromkeys(visited))
    for lead in sorted(leads, key=lambda each: each["priority"]):
        key = topic_key(lead["text"])
        if lead["depth"] > options.recursion:
            reason = "beyond the maximum depth"
        elif not key or key in seen:
            reason = "already researched"
        elif len(topics) >= options.most:
            reason = f"more than {options.most} topics at this depth"
        else:
            seen.append(key)
            topics.append(lead)
            continue
        place = {"topic": lead["text"], "depth": lead["depth"], "question": lead["question"]}
        skipped.append(SkippedTopic(**place, reason=reason))
    return topics, seen, skipped


def _finding(number: int, topic: Json, source: str, extracted: Json) -> Json:
    facts = [" ".join(fact.split()) for fact in extracted.get("extracted_facts", []) if isinstance(fact, str)]
    leads = [" ".join(text.split())[:LONGEST_TOPIC] for text in extracted.get("new_topics_to_research", [])]
    return {
        "id": f"F{number}",
        "question": topic["question"],
        "topic": topic["text"],
        "depth": topic["depth"],
        "source": source,
        "facts": [fact for fact in facts if fact],
        "confidence": min(1.0, max(0.0, float(extracted.get("confidence", 0)))),
        "new_topics": leads[:MOST_TOPICS_OF_A_FINDING],
    }


def _find_or_add(result: Json, sources: list[Json]) -> Json:
    """The source that ``result`` comes from, added to ``sources`` if it is new; copies are listed with the first."""
    known = same_source(result, sources)
    if known is None:
        known = {"id": f"S{len(sources) + 1}", "origin": origin(result), **result}
        known.pop("text")
        sources.append(known)
    copies = dict.fromkeys([*known["duplicates"], result["address"], *result["duplicates"]])
    known["duplicates"] = [each for each in copies if each != known["address"]]
    return known


def _source_fields(source: Json, result: Json) -> Json:
    """A source as shown to a role, with the length shown if its text was shortened."""
    fields = {key: source[key] for key in ("id", "title", "address", "date")}
    return {**fields, "shortened": result["shortened"]} if result.get("shortened") else fields


def by_id(rows: Sequence[Json]) -> dict[str, Json]:
    """The rows by id."""
    return {row["id"]: row for row in rows}
