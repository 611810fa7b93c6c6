"""Every path through research and the flow it calls, without any process. docs/reference/flows has its drawing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codex_multi_role.reading.json_types import Json
from tests.support.paths import Case, System
from tests.support.scripted import FAILS

TOPIC = {"text": "When was it built?", "asked": "When was it built?"}
SOURCE = {"id": "S1"}
PLANNED: Json = {"status": "planned", "topics": [TOPIC], "questions": [TOPIC], "problems": []}
TOO_FEW: Json = {**PLANNED, "status": "too few", "problems": ["1 different questions, 3 to 5 are required"]}
COLLECTED: Json = {"sources": [SOURCE], "read": [], "log": []}
COLLECTED["items"] = [{"topic": TOPIC, "source": SOURCE, "text": "It was built in 1887."}]
FOUND: Json = {"status": "done", "topics": [], "visited": [], "findings": [{}], "skipped": [], "failed": []}
MORE: Json = {**FOUND, "status": "more", "topics": [TOPIC]}
GROUPED: Json = {"status": "grouped", "groups": [{"question": TOPIC, "claims": []}], "single": [], "unanswered": []}
SECTION: Json = {"question": TOPIC, "facts": [], "discrepancies": [], "sources": [SOURCE]}
FACTS: Json = {"status": "facts", "facts": [], "discrepancies": [], "sections": [SECTION]}
FITS: Json = {"status": "fits", "problems": []}
UNFIT: Json = {"status": "unfit", "problems": ["it has 9 words, at least 300 are required"]}
NOTHING: Json = {"status": "nothing"}

PLAN, ROUND = "ready plan questions", "search collect extract findings"
FIRST, LAST = f"{PLAN} {ROUND} group", "sections report"
WRITTEN = f"{FIRST} verify facts summarize measure"
ONE_SECTION: Json = {**SECTION, "question": TOPIC["text"]}


def whole(path: str, outcome: str = "completed", exit_code: int = 0, **checks: Json | list[Json]) -> Case:
    given = {step: results if isinstance(results, list) else [results] for step, results in checks.items()}
    return Case("research", path, outcome, exit_code, given, inputs={"concurrency": 1})


def section(path: str, outcome: str, exit_code: int, *measured: Json) -> Case:
    return Case("research-section", path, outcome, exit_code, {"measure": measured}, inputs=ONE_SECTION)


CASES = {
    "answered": whole(f"{WRITTEN} {LAST}"),
    "plan too short once": whole(
        f"ready plan questions plan questions {ROUND} group verify facts summarize measure {LAST}",
        questions=[TOO_FEW, PLANNED],
    ),
    "plan too short at the limit": whole(f"ready {'plan questions ' * 3}", "planning_error", 1, questions=TOO_FEW),
    "web searched": whole(
        f"{PLAN} search web collect extract findings group verify facts summarize measure {LAST}",
        search={"ask_web": True},
    ),
    "topics followed": whole(
        f"{PLAN} {ROUND} {ROUND} group verify facts summarize measure {LAST}", findings=[MORE, FOUND]
    ),
    "topics followed up to the limit": whole(
        f"{PLAN} {f'{ROUND} ' * 4} group verify facts summarize measure {LAST}", findings=MORE
    ),
    "nothing found": whole(f"{FIRST} report", "nothing_found", 1, group={**GROUPED, **NOTHING}, report=NOTHING),
    "nothing verified": whole(f"{FIRST} verify facts report", "nothing_found", 1, facts=NOTHING, report=NOTHING),
    "summary unfit once": whole(f"{WRITTEN} summarize measure {LAST}", measure=[UNFIT, FITS]),
    "summary unfit at the limit": whole(f"{WRITTEN} {'summarize measure ' * 2} {LAST}", measure=UNFIT),
    "citations unresolved": whole(f"{WRITTEN} {LAST}", "citations_unresolved", 1, report={"status": "unresolved"}),
    "no page found on the web, none read": replace(
        whole(
            f"{PLAN} search web collect extract findings group report",
            "nothing_found",
            1,
            search={"ask_web": True},
            group={**GROUPED, **NOTHING},
            report=NOTHING,
        ),
        plays={"web_searcher": [FAILS]},
    ),
    "no section fits": replace(whole(f"{WRITTEN} {LAST}"), checks={"sections/measure": [UNFIT]}),
    "section fits": section("write measure", "success", 0, FITS),
    "section unfit once": section("write measure write measure", "success", 0, UNFIT, FITS),
    "section unfit at the limit": section("write measure " * 3, "unfit", 1, UNFIT),
}
RESEARCH = System(
    "research",
    checks={
        "research": {
            "ready": [{}],
            "questions": [PLANNED],
            "search": [{"ask_web": False}],
            "collect": [COLLECTED],
            "findings": [FOUND],
            "group": [GROUPED],
            "facts": [FACTS],
            "measure": [FITS],
            "report": [{"status": "complete"}],
        },
        "research-section": {"measure": [FITS]},
    },
    plays={
        "research_planner": [{"sub_questions": []}],
        "web_searcher": [{"results": []}],
        "researcher": [{"extracted_facts": []}],
        "fact_checker": [{"verified_facts": [], "discrepancies": []}],
        "synthesizer": [{"summary": "", "title": "", "body": ""}],
    },
    cases=CASES,
)


@pytest.mark.parametrize("name", CASES)
def test_research_takes_the_path(tmp_path: Path, name: str) -> None:
    RESEARCH.check(name, tmp_path)


def test_every_route_of_research_has_a_case(tmp_path: Path) -> None:
    assert RESEARCH.unwalked(tmp_path) == set()
