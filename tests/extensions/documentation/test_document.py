"""System E, the documentation graph: every way it can take.

Costs: each way is a whole run that documents a repository.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role import RunReport
from codex_multi_role.errors import UsageError
from tests.support.documentation import TOP, Documentation
from tests.support.teams import Record, read

pytestmark = pytest.mark.usefixtures("scripted_codex")

NODES = ["static_analysis", "planning", "human_review", "batch_execution", "synthesis", "quality_gate"]
PAGES = [f"files/shop/{name}.py.md" for name in ("cli", "money", "orders")]
DOCUMENTS = sorted([*(f"{name}.md" for name in TOP), *PAGES])


def ending(report: RunReport) -> tuple[int, str]:
    return report.exit_code, report.outcome


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Documentation:
    """A repository whose plan a person is asked about, with an approval."""
    shop = Documentation(tmp_path_factory.mktemp("documented"))
    assert ending(shop.run({}, concurrency=1)) == (4, "waiting_for_review")
    question = read(shop.report.folder / "reviews/human_review.1.json")
    assert question["question"] == "Document 3 files in 3 batches?"
    assert "\nB2: shop/orders.py\n" in question["show"]
    assert (shop.steps, shop.asked, shop.documents) == (NODES[:3], [], [])
    shop.answer(True)
    return shop


@pytest.mark.real
@pytest.mark.sample("documentation")
def test_repository_is_documented_after_plan_approval(documented: Documentation) -> None:
    shop = documented
    assert ending(shop.report) == (0, "success")
    assert shop.steps == NODES[2:]
    assert shop.asked == ["analyst"] * 3 + ["document_synthesizer"] * 4
    assert shop.documents == DOCUMENTS
    result = shop.report.result or {}
    assert (result["title"], result["file"], result["figures"]["score"]) == ("Documents", "docs/OVERVIEW.md", 1.0)
    assert "docs/OVERVIEW.md  +" in result["text"]
    scores = {part["name"]: part["score"] for part in shop.told["quality"]["parts"]}
    assert scores.pop("mermaid") == (None if "diagrams not judged: " in shop.report.reason else 1.0)
    assert set(scores.values()) == {1.0}
    assert shop.told["batches"][0] == {"id": "B1", "files": ["shop/money.py"], "status": "done", "reason": ""}
    # Each batch is told of what it depends on.
    assert "DEPENDENCIES:" not in shop.prompt("batch_execution.1.0/analyse.1")
    assert "    return amount * RATE\n" in shop.prompt("batch_execution.1.0/analyse.1")
    known = "DEPENDENCIES:\nshop/money.py: The file money.py has 5 lines.\n"
    assert known in shop.prompt("batch_execution.1.1/analyse.1")


@pytest.mark.long
def test_comment_on_a_rejected_plan_reaches_planning(tmp_path: Path) -> None:
    """Only here a person changes what is planned."""
    together: Record = {"json": {"groups": [["shop/money.py", "shop/orders.py"], ["shop/cli.py", "shop/none.py"]]}}
    shop = Documentation(tmp_path, document_planner=[together])
    shop.run({})
    assert shop.answer(False, "orders and money belong together").exit_code == 4
    assert shop.steps == ["human_review", "planning", "human_review"]
    prompt = shop.prompt("planning.2/semantic_grouping.1")
    assert "A PERSON REJECTED THE LAST PLAN WITH THIS COMMENT: orders and money belong together\n" in prompt
    assert "\nB1: shop/money.py\n" in prompt
    assert (
        "B1: shop/money.py, shop/orders.py\nB2: shop/cli.py\n"
        in (read(shop.report.folder / "reviews/human_review.2.json")["show"])
    )
    assert ending(shop.answer(False)) == (1, "plan_rejected")
    assert shop.documents == []


@pytest.mark.long
def test_agentic_planning_and_synthesis_build_on_earlier_turns(tmp_path: Path) -> None:
    """Only here all roles are asked with the shipped prompts: each turn receives the results of the turns before it."""
    shop = Documentation(tmp_path)
    assert ending(shop.run(planning="agentic", synthesis="agentic")) == (0, "success")
    turns = [step for step in shop.all_steps if step.startswith(("planning.1/", "synthesis.1/"))]
    assert [step.partition("/")[2] for step in turns] == [
        "by_layers",
        "sample",
        "analyze_structure",
        "identify_patterns",
        "semantic_grouping",
        "grouped",
        "generate_hints",
        "pages",
        "identify_patterns",
        "cross_compare",
        "generate_overview",
        "generate_architecture",
        "generate_getting_started",
        "generate_concepts",
        "write_all",
    ]
    said = "3 files to document in 3 layers."
    assert f"STRUCTURE:\n{said}\n" in shop.prompt("planning.1/identify_patterns.1")
    assert f"PATTERNS:\n{said}\n" in shop.prompt("planning.1/semantic_grouping.1")
    assert "B1: shop/money.py, shop/orders.py\n" in shop.prompt("planning.1/generate_hints.1")
    assert "Pay attention to: What connects shop/money.py, shop/orders.py" in shop.prompt(
        "batch_execution.1.0/analyse.1"
    )
    compared = "3 files, each with a note."
    assert f"PATTERNS:\n{compared}\n" in shop.prompt("synthesis.1/cross_compare.1")
    assert f"COMPARISON:\n{compared}\n" in shop.prompt("synthesis.1/generate_overview.1")
    assert '    n2["shop/money.py"]' in shop.prompt("synthesis.1/generate_architecture.1")
    assert "OVERVIEW:\n# Overview\n" in shop.prompt("synthesis.1/generate_getting_started.1")
    assert "CLASSES:\nshop/orders.py: Order\n" in shop.prompt("synthesis.1/generate_concepts.1")
    assert (shop.documents, shop.told["grouped_by"]) == (DOCUMENTS, "groups")


BARE: list[Record] = [{"json": {"markdown": "# Title\n\n[Shop](../shop) has `Order` and `Nonsense()`.\n"}}]


@pytest.mark.long
def test_low_quality_documents_are_refined(tmp_path: Path) -> None:
    """Only here a document is refined by the flow, which starts with the documents that cost most of the score."""
    shop = Documentation(tmp_path, document_synthesizer=BARE)
    assert ending(shop.run(threshold=0.9)) == (0, "success")
    assert shop.steps == [*NODES, "refine", "quality_gate"]
    assert shop.asked.count("refiner") == 4
    prompt = shop.prompt("refine.1.0/rewrite.1")
    assert "- the section 'Layers' is missing\n" in prompt
    assert "- sections: 0.0, required: at least 1.0\n" in prompt
    assert "- `Nonsense()` is not a name in the code\n" in prompt
    assert "CURRENT DOCUMENT:\n# Title\n" in prompt
    assert "## Layers\n" in (shop.team.workspace / "docs/ARCHITECTURE.md").read_text()


def test_what_cannot_be_documented_ends_before_anything_is_asked(tmp_path: Path) -> None:
    shop = Documentation(tmp_path, {"README.md": "Nothing but words.\n"})
    assert ending(shop.run()) == (1, "nothing_to_document")
    assert shop.asked == []
    with pytest.raises(UsageError):
        shop.run(concurrency="many")
