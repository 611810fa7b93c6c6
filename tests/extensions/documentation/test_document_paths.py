"""Every path through document and the flows it calls, without any process. docs/reference/flows has its drawing."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.reading.json_types import Json
from tests.support.paths import Case, System
from tests.support.scripted import FAILS

FILES = [{"path": "a.py"}, {"path": "b.py"}]
GRAPH: Json = {"repo": ".", "files": FILES, "cycles": [], "name": "x", "mermaid": "", "mermaid_of": "files"}
BATCHES = [{"id": "B1", "files": FILES[:1], "needs": []}, {"id": "B2", "files": FILES[1:], "needs": ["B1"]}]
PLANNED: Json = {"status": "planned", "batches": BATCHES, "changed": ["a.py", "b.py"], "unchanged": 0, "gone": []}
PLANNED |= {"structure": "", "sample": ["a.py"], "grouped_by": "groups"}
UP_TO_DATE: Json = {**PLANNED, "status": "up to date", "batches": [], "changed": []}
NOTED: Json = {"status": "complete", "missing": [], "notes": [{"path": "a.py"}], "reason": ""}
SILENT: Json = {"status": "incomplete", "missing": ["a.py"], "notes": [], "reason": "no note"}
GOOD: Json = {"status": "passed", "refine": [], "below": [], "not_kept": []}
BELOW: Json = {
    **GOOD, "status": "below", "refine": [{"path": "docs/OVERVIEW.md", "source": "", "sha256": "", "problems": []}]
}  # fmt: skip

START, REVIEWED = "static_analysis planning", "planning human_review"
REFINED = "refine quality_gate"
WRITTEN = "batch_execution synthesis quality_gate"
YES, NO, COMMENT = (True, ""), (False, ""), (False, "orders and money belong together")
BATCH: Json = {"repo": ".", "out": "docs", "batch": BATCHES[0]}
PLAN: Json = {"graph": GRAPH, "out": "docs", "documents": ["OVERVIEW"]}
SYNTHESIS: Json = {"graph": GRAPH, "out": "docs", "sections": {"OVERVIEW": [], "ARCHITECTURE": []}, "notes": []}
SYNTHESIS["sections"] |= {"GETTING_STARTED": [], "CONCEPTS": []}


def whole(path: str, outcome: str, exit_code: int = 1, **more: object) -> Case:
    given = {"inputs": {"concurrency": 1}, "answers": [YES], **more}
    return Case("document", path, outcome, exit_code, **given)  # type: ignore[arg-type]


CASES = {
    "plan approved": whole(f"{START} human_review {WRITTEN}", "success", 0),
    "plan waits": whole(f"{START} human_review", "waiting_for_review", 4, answers=[]),
    "plan rejected": whole(f"{START} human_review", "plan_rejected", answers=[NO]),
    "plan rejected with a comment": whole(
        f"static_analysis {REVIEWED} {REVIEWED} {WRITTEN}", "success", 0, answers=[COMMENT, YES]
    ),
    "plan rejected at the limit": whole(
        f"static_analysis {f'{REVIEWED} ' * 5}", "plan_rejected", answers=[COMMENT] * 5
    ),
    "nothing to document": whole(
        "static_analysis", "nothing_to_document", checks={"static_analysis": [{"status": "empty"}]}
    ),
    "up to date": whole(
        f"{START} quality_gate", "up_to_date", 0, checks={"planning/by_layers": [UP_TO_DATE]}
    ),
    "up to date, gate failed at the limit": whole(
        f"{START} quality_gate {f'{REFINED} ' * 3}", "quality_below",
        checks={"planning/by_layers": [UP_TO_DATE], "quality_gate": [BELOW]},
    ),
    "all batches failed": whole(
        f"{START} human_review batch_execution quality_gate", "batches_failed",
        checks={"batch_execution/judge": [SILENT], "quality_gate": [BELOW]},
    ),
    "one batch failed": whole(
        f"{START} human_review {WRITTEN}", "batches_failed", checks={"batch_execution/judge": [NOTED, SILENT]}
    ),
    "gate failed below the limit": whole(
        f"{START} human_review {WRITTEN} {REFINED}", "success", 0, checks={"quality_gate": [BELOW, GOOD]}
    ),
    "no document refined": whole(
        f"{START} human_review {WRITTEN} {REFINED}", "success", 0,
        checks={"quality_gate": [BELOW, GOOD]}, plays={"refiner": [FAILS]},
    ),
    "gate failed at the limit": whole(
        f"{START} human_review {WRITTEN} {f'{REFINED} ' * 3}", "quality_below", checks={"quality_gate": [BELOW]}
    ),
    "static planning": Case("document-planning", "by_layers", "planned", 0, inputs=PLAN),
    "static planning without files": Case(
        "document-planning", "by_layers", "planned", 0, {"by_layers": [UP_TO_DATE]},
        inputs={**PLAN, "planning": "agentic"},
    ),
    "static planning with a comment": Case(
        "document-planning", "by_layers semantic_grouping grouped", "planned", 0, inputs={**PLAN, "comment": "no"}
    ),
    "agentic planning": Case(
        "document-planning",
        "by_layers sample analyze_structure identify_patterns semantic_grouping grouped generate_hints",
        "planned", 0, inputs={**PLAN, "planning": "agentic"},
    ),
    "batch noted": Case("document-batch", "sources analyse judge", "done", 0, inputs=BATCH),
    "batch noted at the limit": Case(
        "document-batch", "sources analyse judge analyse judge", "done", 0, {"judge": [SILENT, NOTED]}, inputs=BATCH
    ),
    "batch failed at the limit": Case(
        "document-batch", "sources analyse judge analyse judge", "failed", 1, {"judge": [SILENT]}, inputs=BATCH
    ),
    "synthesis at once": Case("document-synthesis", "pages documents write", "written", 0, inputs=SYNTHESIS),
    "agentic synthesis": Case(
        "document-synthesis",
        "pages identify_patterns cross_compare generate_overview generate_architecture generate_getting_started "
        "generate_concepts write_all",
        "written", 0, inputs={**SYNTHESIS, "synthesis": "agentic"},
    ),
    "document refined": Case(
        "document-refine", "source before rewrite write", "success", 0,
        inputs={"repo": ".", "out": "docs", "document": BELOW["refine"][0], "files": [], "sections": {}},
    ),
}  # fmt: skip
DOCUMENT = System(
    "document",
    checks={
        "document": {"static_analysis": [GRAPH], "quality_gate": [GOOD]},
        "document-planning": {"by_layers": [PLANNED], "sample": [{"files": []}], "grouped": [PLANNED]},
        "document-batch": {"sources": [{"files": [], "context": []}], "judge": [NOTED]},
        "document-synthesis": {
            "pages": [dict.fromkeys(("digest", "classes", "functions", "entry_points", "project"), "")],
            "write": [{}],
            "write_all": [{}],
        },
        "document-refine": {"source": [{"files": []}], "before": [{"content": ""}], "write": [{}]},
    },
    plays={
        "document_planner": [{"text": "", "groups": [["a.py"], ["b.py"]], "hints": {}}],
        "analyst": [{"files": []}],
        "document_synthesizer": [{"text": "", "markdown": "# x"}],
        "refiner": [{"markdown": "# x"}],
    },
    cases=CASES,
)


@pytest.mark.parametrize("name", CASES)
def test_document_takes_the_path(tmp_path: Path, name: str) -> None:
    DOCUMENT.check(name, tmp_path)


def test_every_route_of_document_has_a_case(tmp_path: Path) -> None:
    assert DOCUMENT.unwalked(tmp_path) == set()
