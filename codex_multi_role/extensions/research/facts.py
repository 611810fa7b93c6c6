"""The checks ``research_groups`` and ``research_facts``: findings by question, and the known facts of each."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, ResultPart, declare_check, no_time
from codex_multi_role.extensions.research.research_plan import topic_key
from codex_multi_role.extensions.research.rounds import Rows, by_id
from codex_multi_role.reading.json_types import Json

SINGLE_SOURCE_SHARE, SINGLE_SOURCE_MOST = 0.7, 0.6
SINGLE_SOURCE_NOTE = "only one source"
NO_SOURCE_NOTE = "no listed source says so"
_NUMBER = re.compile(r"(?<!\d)\d{1,3}(?:[.,\u00a0\u202f ]\d{3})+(?!\d)|\d+")


class GroupsOptions(CheckOptions):
    questions: Rows = Field(description='"{{ steps.<research_plan>.questions }}"')
    findings: Rows = Field(description="all findings")
    sources: Rows = Field(description="all sources")


class FactsOptions(GroupsOptions):
    """``groups`` of ``research_groups``, and the fact checker's answer to each, in the same order."""

    groups: Rows = Field(description='"{{ steps.<research_groups>.groups }}"')
    single: Rows = Field(description='"{{ steps.<research_groups>.single }}"')
    verified: Rows = Field(default=[], description='"{{ steps.<ask>.results }}"')


class GroupsResult(CheckResult):
    """``groups`` to verify: ``{question, origins, claims: [{claim, confidence, source, title, date}]}``.

    ``single``: facts as in `FactsResult`; ``unanswered``: the ids of questions.
    """

    bad = ()

    status: Literal["grouped", "nothing"]
    groups: list[Json]
    single: list[Json]
    unanswered: list[str]


class KnownAboutQuestion(ResultPart):
    """``sources``: ``{id, title, address, date}``."""

    question: Json
    facts: list[Json]
    discrepancies: list[Json]
    sources: list[Json]


class FactsResult(CheckResult):
    """``facts``: ``{id: K1, question, claim, confidence, is_consistent, notes, sources, verified}``.

    ``discrepancies``: ``{id: D1, question, topic, description, preferred_claim, resolution_basis, notes, sources}``.
    ``sources`` are the ids of those that the fact checker names for a claim, or that make it word for word. A claim of
    sources of one origin has the confidence of one source; a claim of none has none, and is in no section.
    ``sections``: the questions of which something is known.
    """

    bad = ()

    status: Literal["facts", "nothing"]
    facts: list[Json]
    discrepancies: list[Json]
    sections: list[KnownAboutQuestion]


@declare_check(options=GroupsOptions, result=GroupsResult, max_seconds=no_time, read_only=True)
def research_groups(context: CheckContext) -> GroupsResult:
    """Group findings by question: those of several origins must be verified, those of one are facts of less weight.

    Two findings of one origin count as one source: a confidence c becomes ``min(0.7 c, 0.6)``.
    """
    options = context.read_options(GroupsOptions, "research_groups")
    sources = by_id(options.sources)
    groups: list[Json] = []
    single: list[Json] = []
    unanswered: list[str] = []
    for question in options.questions:
        found = [finding for finding in options.findings if finding["question"] == question["id"]]
        origins = {sources[finding["source"]]["origin"] for finding in found}
        if len(origins) > 1:
            claims = [_claim(fact, finding, sources) for finding in found for fact in finding["facts"]]
            groups.append({"question": question, "origins": sorted(origins), "claims": claims})
        elif found:
            single += _without_duplicates([_single(fact, finding) for finding in found for fact in finding["facts"]])
        else:
            unanswered.append(question["id"])
    status: Literal["grouped", "nothing"] = "grouped" if groups or single else "nothing"
    return GroupsResult(status=status, groups=groups, single=single, unanswered=unanswered)


@declare_check(options=FactsOptions, result=FactsResult, max_seconds=no_time, read_only=True)
def research_facts(context: CheckContext) -> FactsResult:
    """Combine the facts and discrepancies of all questions."""
    options = context.read_options(FactsOptions, "research_facts")
    facts = list(options.single)
    sources = by_id(options.sources)
    discrepancies: list[Json] = []
    for group, answer in zip(options.groups, options.verified, strict=True):
        facts += [_verified(fact, group, sources) for fact in answer.get("verified_facts", [])]
        discrepancies += [{**each, "question": group["question"]["id"], "sources": _sources_of(group)}
                          for each in answer.get("discrepancies", [])]  # fmt: skip
    order = [question["id"] for question in options.questions]
    facts = _numbered("K", facts, order)
    discrepancies = _numbered("D", discrepancies, order)
    sections = [_section(question, facts, discrepancies, sources) for question in options.questions]
    sections = [section for section in sections if section.facts or section.discrepancies]
    status: Literal["facts", "nothing"] = "facts" if sections else "nothing"
    return FactsResult(status=status, facts=facts, discrepancies=discrepancies, sections=sections)


def _claim(fact: str, finding: Json, sources: dict[str, Json]) -> Json:
    source = sources[finding["source"]]
    fields = {"source": source["id"], "title": source["title"], "date": source["date"]}
    return {"claim": fact, "confidence": finding["confidence"], **fields}


def _single(fact: str, finding: Json) -> Json:
    return {
        "question": finding["question"],
        "claim": fact,
        "confidence": single_source_confidence(finding["confidence"]),
        "is_consistent": True,
        "notes": SINGLE_SOURCE_NOTE,
        "sources": [finding["source"]],
        "verified": False,
    }


def single_source_confidence(confidence: float) -> float:
    """The confidence of a claim that nothing else supports."""
    return round(min(SINGLE_SOURCE_SHARE * confidence, SINGLE_SOURCE_MOST), 4)


def _without_duplicates(facts: list[Json]) -> list[Json]:
    """Drop repeated claims; of equal ones keep the most confident."""
    best: dict[str, Json] = {}
    for fact in sorted(facts, key=lambda each: -each["confidence"]):
        best.setdefault(topic_key(fact["claim"]), fact)
    return [fact for fact in facts if best[topic_key(fact["claim"])] is fact]


def _verified(fact: Json, group: Json, sources: dict[str, Json]) -> Json:
    """``fact`` as the fact checker worded it, with the sources that make the claim and the confidence they allow."""
    supporting = _supporting_sources(fact, group)
    origins = {sources[name]["origin"] for name in supporting}
    confidence, note = fact["confidence"], ""
    if not supporting:
        confidence, note = 0.0, NO_SOURCE_NOTE
    elif len(origins) == 1:
        confidence, note = single_source_confidence(confidence), SINGLE_SOURCE_NOTE
    notes = "; ".join(part for part in (note, fact["notes"]) if part)
    fields = {"confidence": confidence, "notes": notes, "sources": supporting, "verified": len(origins) > 1}
    return {**fact, **fields, "question": group["question"]["id"]}


def _supporting_sources(fact: Json, group: Json) -> list[str]:
    """The sources of ``group`` that make the claim, by the answer or word for word, and mention all its numbers."""
    key = topic_key(fact["claim"])
    word_for_word = {claim["source"] for claim in group["claims"] if topic_key(claim["claim"]) == key}
    named = {*(fact.get("sources") or ()), *word_for_word}
    texts = {name: [each["claim"] for each in group["claims"] if each["source"] == name] for name in _sources_of(group)}
    numbers = _numbers(fact["claim"])
    return [name for name in texts if name in named and numbers.issubset(set().union(*map(_numbers, texts[name])))]


def _numbers(text: str) -> set[str]:
    """Whole numbers, normalized: 1,000 is 1000, and 06 is 6."""
    return {re.sub(r"\D", "", number).lstrip("0") or "0" for number in _NUMBER.findall(text)}


def _sources_of(group: Json) -> list[str]:
    return list(dict.fromkeys(claim["source"] for claim in group["claims"]))


def _numbered(letter: str, rows: list[Json], order: list[str]) -> list[Json]:
    """The rows in the order of their questions, each with an id."""
    in_order = sorted(rows, key=lambda row: order.index(row["question"]))
    return [{"id": f"{letter}{number}", **row} for number, row in enumerate(in_order, 1)]


def _section(
    question: Json, facts: list[Json], discrepancies: list[Json], sources: dict[str, Json]
) -> KnownAboutQuestion:
    own = [fact for fact in facts if fact["question"] == question["id"] and fact["sources"]]
    conflicts = [each for each in discrepancies if each["question"] == question["id"]]
    used = dict.fromkeys(name for row in (*own, *conflicts) for name in row["sources"])
    fields = [{key: sources[name][key] for key in ("id", "title", "address", "date")} for name in used]
    return KnownAboutQuestion(question=question, facts=own, discrepancies=conflicts, sources=fields)
