"""The checks of the flow research by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codex_multi_role.errors import CheckFailed, UsageError
from codex_multi_role.extensions.research.facts import (
    NO_SOURCE_NOTE,
    SINGLE_SOURCE_NOTE,
    research_facts,
    research_groups,
    single_source_confidence,
)
from codex_multi_role.extensions.research.research_plan import research_plan, topic_key
from codex_multi_role.extensions.research.rounds import research_findings, research_sources
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.sketches import sketch
from tests.support.checks import MakeContext

NO_SKETCH = {"provider": "files", "language": "", "duplicates": [], "date": ""}


def topic(text: str, question: str = "Q1", depth: int = 0, priority: int = 1) -> Json:
    return {"question": question, "asked": f"{question}?", "text": text, "depth": depth, "priority": priority}


def result(address: str, text: str) -> Json:
    return {**NO_SKETCH, "title": address, "address": address, "text": text, "sketch": sketch(text)}


def searched(*results: Json, status: str = "ok") -> Json:
    told = {"name": "files", "kind": "files", "status": status, "reason": "" if status == "ok" else "down"}
    return {"status": "done", "results": list(results), "providers": [{**told, "found": len(results)}]}


def source(name: str, origin: str) -> Json:
    return {"id": name, "title": name, "address": origin, "origin": origin, "date": ""}


def finding(question: str, where: str, *facts: str, confidence: float = 0.9) -> Json:
    return {"question": question, "source": where, "facts": list(facts), "confidence": confidence}


QUESTIONS = [{"id": name, "text": f"{name}?", "priority": 1} for name in ("Q1", "Q2")]


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ([{"text": "b", "priority": 2}, {"text": "a", "priority": 1}], ["a", "b"]),
        ([{"text": "b", "priority": "low"}, {"text": "a", "priority": "High"}], ["a", "b"]),
        (
            [{"text": "a"}, {"text": " A! "}, {"text": "b", "priority": "9"}, "c", {"text": 1}, {"text": "?"}],
            ["b", "a"],
        ),
    ],
)
def test_plan_is_sorted_and_invalid_questions_are_dropped(
    make_context: MakeContext, given: list[object], texts: list[str]
) -> None:
    """Questions are sorted by priority."""
    planned: Any = research_plan(make_context({}, sub_questions=given, least=2, most=3))
    assert (planned["status"], [each["text"] for each in planned["questions"]]) == ("planned", texts)
    assert [each["id"] for each in planned["questions"]] == ["Q1", "Q2"]


def test_source_is_read_once_per_question_with_copies_merged(
    make_context: MakeContext,
) -> None:
    """A copy that is found in a later round is the same source."""
    text = "A sentence that is long enough to be told from others by its words."
    first: Any = research_sources(
        make_context(
            {},
            topics=[topic("x"), topic("y"), topic("z", "Q2")],
            searches=[
                searched(result("a.md", text)),
                searched(result("copy.md", text)),
                searched(result("a.md", text)),
            ],
        )
    )
    assert [(item["topic"]["text"], item["source"]["id"]) for item in first["items"]] == [("x", "S1"), ("z", "S1")]
    assert [each["duplicates"] for each in first["sources"]] == [["copy.md"]]
    again: Any = research_sources(
        make_context(
            {},
            topics=[topic("w", depth=1)],
            searches=[searched(result("copy.md", text), result("https://www.x.example/p?utm_a=1", "Something else."))],
            sources=first["sources"],
            read=first["read"],
        )
    )
    assert [(item["source"]["id"], item["source"]["address"]) for item in again["items"]] == [
        ("S2", "https://www.x.example/p?utm_a=1")
    ]
    assert again["sources"][1]["origin"] == "x.example"


def test_shortened_text_is_reported_to_role_and_in_findings(make_context: MakeContext) -> None:
    part = {**result("a.md", "One."), "shortened": "4 of 900 characters"}
    made: Any = research_sources(
        make_context({}, topics=[topic("T")], searches=[searched(part, result("b.md", "Two x."))])
    )
    assert [item["source"].get("shortened") for item in made["items"]] == ["4 of 900 characters", None]
    assert made["sources"][0]["shortened"] == "4 of 900 characters"
    extracted = [{"extracted_facts": ["a"], "confidence": 1, "new_topics_to_research": []}] * 2
    given = {"topics": [topic("T")], "items": made["items"], "extracted": extracted, "recursion": 1}
    found: Any = research_findings(make_context({}, **given))
    assert [each["shortened"] for each in found["findings"]] == ["4 of 900 characters", ""]


def test_unanswered_round_fails_but_empty_results_do_not(make_context: MakeContext) -> None:
    """A round fails if no search provider answers. It does not fail if the providers answer without results."""
    quiet: Any = research_sources(make_context({}, topics=[topic("x")], searches=[searched()]))
    assert (quiet["status"], quiet["log"][0]["event"]) == ("nothing", "no_search_results")
    web = {"status": "failed", "error": "no leave to search"}
    with pytest.raises(CheckFailed, match="no search provider answered: files: down; web: no leave to search"):
        research_sources(make_context({}, topics=[topic("x")], searches=[searched(status="failed")], web=[web]))


def test_excess_topics_are_cut_by_question_priority(make_context: MakeContext) -> None:
    """If there are too many topics, those of the most important questions are followed. The others are listed as
    skipped.
    """
    items = [{"topic": topic(f"t{n}", f"Q{n}", priority=9 - n), "source": {"id": "S1"}} for n in range(3)]
    extracted = [
        {"status": "done", "extracted_facts": [" a ", ""], "confidence": 5, "new_topics_to_research": [f"new {n}"]}
        for n in range(3)
    ]
    made: Any = research_findings(
        make_context(
            {}, topics=[item["topic"] for item in items], items=items, extracted=extracted, recursion=1, most=2
        )
    )
    assert [each["text"] for each in made["topics"]] == ["new 2", "new 1"]
    assert [(each["topic"], each["reason"]) for each in made["skipped"]] == [
        ("new 0", "more than 2 topics at this depth")
    ]
    assert (made["findings"][0]["facts"], made["findings"][0]["confidence"]) == (["a"], 1.0)


def test_several_findings_of_one_origin_are_one_source(make_context: MakeContext) -> None:
    sources = [source("S1", "x.example"), source("S2", "x.example"), source("S3", "y.example")]
    findings = [
        finding("Q1", "S1", "It is so."),
        finding("Q1", "S2", "It is SO!", "And so.", confidence=0.5),
        finding("Q2", "S1", "It is so."),
        finding("Q2", "S3", "It is not."),
    ]
    grouped: Any = research_groups(make_context({}, questions=QUESTIONS, findings=findings, sources=sources))
    assert [(fact["claim"], fact["confidence"]) for fact in grouped["single"]] == [
        ("It is so.", 0.6),
        ("And so.", 0.35),
    ]
    assert [(each["question"]["id"], each["origins"]) for each in grouped["groups"]] == [
        ("Q2", ["x.example", "y.example"])
    ]


def known_facts(make_context: MakeContext, *answers: Json, conflicts: Sequence[Json] = ()) -> Json:
    """What is known after the verifier gave ``answers`` on Q2, on which S1 and S2 of one site and S3 report."""
    sources = [source("S1", "x"), source("S2", "x"), source("S3", "y"), source("S4", "z")]
    findings = [
        finding("Q2", "S1", "It opened in 1887."),
        finding("Q2", "S2", "It opened in 1887.", "It cost 12,000 marks."),
        finding("Q2", "S3", "The opening was on 1887-06-01."),
        finding("Q1", "S4", "Alone."),
    ]
    given: Json = {"questions": QUESTIONS, "findings": findings, "sources": sources}
    grouped: Any = research_groups(make_context({}, **given))
    facts = [{"confidence": 0.9, "is_consistent": True, "notes": "", **each} for each in answers]
    verified = [{"status": "done", "verified_facts": facts, "discrepancies": [*conflicts]}]
    options = {**given, "groups": grouped["groups"], "single": grouped["single"], "verified": verified}
    return dict[str, Any](research_facts(make_context({}, **options)))


@pytest.mark.parametrize(
    ("claim", "named", "sources", "confidence", "verified"),
    [
        ("It opened in 1887.", ["S1", "S3"], ["S1", "S2", "S3"], 0.9, True),
        ("Its opening was in 1887.", ["S1", "S3"], ["S1", "S3"], 0.9, True),
        ("It opened in 1887.", ["S1"], ["S1", "S2"], 0.6, False),  # one site
        ("It cost 12000 marks.", ["S2"], ["S2"], 0.6, False),
        ("It cost 12000 marks.", ["S2", "S3"], ["S2"], 0.6, False),  # S3 says nothing of 12000
        ("It opened in 1887.", None, ["S1", "S2"], 0.6, False),  # an answer without the field
        ("It opened on 1 6 1887.", ["S3"], ["S3"], 0.6, False),
        ("It opened in 1700.", ["S1", "S3"], [], 0.0, False),
        ("It is made of gold.", [], [], 0.0, False),
        ("It is made of gold.", None, [], 0.0, False),
        ("It opened in 1887, they say.", ["S4", "S99", "example.org"], [], 0.0, False),  # none of this question
    ],
)
def test_claim_counts_as_much_as_the_sources_that_make_it(
    make_context: MakeContext,
    claim: str,
    named: list[str] | None,
    sources: list[str],
    confidence: float,
    verified: bool,
) -> None:
    answered = {"claim": claim} if named is None else {"claim": claim, "sources": named}
    (alone, fact) = known_facts(make_context, answered)["facts"]
    assert (alone["question"], alone["confidence"]) == ("Q1", 0.6)
    assert (fact["sources"], fact["confidence"], fact["verified"]) == (sources, confidence, verified)
    assert fact["notes"] == ("" if verified else SINGLE_SOURCE_NOTE if sources else NO_SOURCE_NOTE)


def test_no_section_is_written_about_a_claim_without_a_source(make_context: MakeContext) -> None:
    known = known_facts(make_context, {"claim": "It is made of gold.", "sources": []})
    assert [section["question"]["id"] for section in known["sections"]] == ["Q1"]


def test_discrepancy_names_all_sources_of_its_question(make_context: MakeContext) -> None:
    conflict = {"topic": "t", "description": "d", "preferred_claim": "p", "resolution_basis": "recency", "notes": ""}
    known = known_facts(make_context, conflicts=[conflict])
    assert known["discrepancies"][0]["sources"] == ["S1", "S2", "S3"]
    assert [section["question"]["id"] for section in known["sections"]] == ["Q1", "Q2"]


def test_wrong_option_is_named(make_context: MakeContext) -> None:
    with pytest.raises(UsageError, match=r"check research_plan: most: "):
        research_plan(make_context({}, sub_questions=[], least=1, most=0))


@given(st.floats(0, 1))
def test_single_source_confidence_is_limited(confidence: float) -> None:
    """It exceeds neither the confidence of the source nor the maximum for a single source."""
    assert single_source_confidence(confidence) <= min(0.6, confidence) + 1e-4


LEADS = st.lists(st.sampled_from(["a", "A!", "b", "c", "d", "", "!"]), max_size=3)


@settings(max_examples=settings().max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rounds=st.lists(st.lists(LEADS, max_size=4), min_size=1, max_size=5), recursion=st.integers(0, 3))
def test_topics_end_and_are_followed_at_most_once(
    make_context: MakeContext, rounds: list[list[list[str]]], recursion: int
) -> None:
    """This holds for any topics that the sources suggest."""
    topics, visited, followed = [topic("start")], list[str](), list[str]()
    for leads in rounds * 2:
        if not topics:
            break
        assert {each["depth"] for each in topics} <= set(range(recursion + 1))
        followed += [topic_key(each["text"]) for each in topics]
        items = [{"topic": topics[n % len(topics)], "source": {"id": "S1"}} for n in range(len(leads))]
        extracted = [{"extracted_facts": [], "confidence": 0, "new_topics_to_research": each} for each in leads]
        told: Json = {"topics": topics, "items": items, "extracted": extracted, "visited": visited}
        made: Any = research_findings(make_context({}, **told, recursion=recursion, most=3))
        topics, visited = made["topics"], made["visited"]
    assert len(followed) == len(set(followed))
