"""System E, the documentation graph: every way it can take."""

from __future__ import annotations

import importlib.util
import shutil
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import RunReport
from codex_multi_role.errors import UsageError
from tests.support.documentation import PLAYS, TOP, YES, Documentation
from tests.support.teams import Record, read

pytestmark = pytest.mark.usefixtures("scripted_codex")

NODES = ["static_analysis", "planning", "human_review", "batch_execution", "synthesis", "quality_gate"]
PAGES = [f"files/shop/{name}.py.md" for name in ("cli", "money", "orders")]
DOCUMENTS = sorted([*(f"{name}.md" for name in TOP), *PAGES])


def only_about(path: str, answer: Record) -> list[Record]:
    """The analyst answers so where it reads ``path``, and otherwise as in the playbook."""
    return [{"choose": [{"when": f"'FILE {path} ' in prompt", **answer}, *PLAYS["analyst"]]}]


def ending(report: RunReport) -> tuple[int, str]:
    return report.exit_code, report.outcome


def score_of(told: Any) -> dict[str, float | None]:
    return {part["name"]: part["score"] for part in told["quality"]["parts"]}


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Documentation:
    """A repository whose plan a person is asked about, with an approval."""
    shop = Documentation(tmp_path_factory.mktemp("documented"))
    assert ending(shop.run({}, concurrency=1)) == (4, "waiting_for_review")
    question = read(shop.report.folder / "reviews/human_review.1.json")
    assert question["question"] == "Document 3 files in 3 batches?"
    assert "\nB2: shop/orders.py\n" in question["show"]
    assert (shop.steps, shop.asked) == (NODES[:3], [])
    assert shop.team.resume().exit_code == 4
    assert shop.documents == []
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
    scores = score_of(shop.told)
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
    """Each turn receives the results of the turns before it."""
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


@pytest.mark.long(
    "extensions/documentation/test_document_plan.py::test_only_what_changed_by_content_is_planned",
    "extensions/documentation/test_document_paths.py::test_document_takes_the_path",
)
def test_second_run_documents_what_changed_and_says_so(documented: Documentation, tmp_path: Path) -> None:
    shop = Documentation(tmp_path)
    shutil.copytree(documented.team.workspace / "docs", shop.team.workspace / "docs")
    before = shop.page("shop/cli.py")
    assert ending(shop.run({})) == (0, "up_to_date")
    assert (shop.steps, shop.asked) == (["static_analysis", "planning", "quality_gate"], [])
    assert (shop.told["changed"], shop.told["unchanged"]) == ([], 3)
    shop.write("shop/orders.py", "from shop.money import RATE\n\n\nclass Basket:\n    pass\n")
    assert ending(shop.run()) == (0, "success")
    assert (shop.told["changed"], shop.told["unchanged"]) == (["shop/orders.py"], 2)
    assert shop.asked.count("analyst") == 1
    # What it depends on has not changed: the page about it tells.
    assert "shop/money.py: The file money.py has 5 lines." in shop.prompt("batch_execution.1.0/analyse.1")
    assert "`Basket`" in shop.page("shop/orders.py")
    assert shop.page("shop/cli.py") == before


@pytest.mark.long
def test_failed_batch_is_retried_and_reported(tmp_path: Path) -> None:
    """Its page is left to the refiner."""
    page: Record = {"json": {"markdown": "# shop/orders.py\n\nIt has `Order`.\n"}}
    shop = Documentation(
        tmp_path,
        analyst=only_about("shop/orders.py", {"text": "I would rather not."}),
        refiner=[{"choose": [{"when": "'(missing)' in prompt", **page}, *PLAYS["refiner"]]}],
    )
    report = shop.run({"yes": True, "repair_attempts": 0}, threshold=0.99)
    assert ending(report) == (1, "batches_failed")
    assert sum(status == "invalid_reply" for _, _, status in shop.team.turns()) == 2
    assert [each["status"] for each in shop.told["batches"]] == ["done", "failed", "done"]
    assert "no valid reply" in shop.told["batches"][1]["reason"]
    measured = read(report.folder / "checks/quality_gate.1/result.json")["parts"][0]
    assert (measured["good"], measured["of"]) == (2, 3)
    assert "SOURCE:\nfrom shop.money import convert\n" in shop.prompt("refine.1.0/rewrite.1")
    assert shop.page("shop/orders.py").startswith("<!-- source: shop/orders.py sha256: ")
    assert shop.documents == DOCUMENTS


@pytest.mark.long
def test_analyst_that_leaves_a_file_out_is_asked_again(tmp_path: Path) -> None:
    left_out: Record = {"when": "'did not cover' not in prompt", "json": {"files": []}}
    shop = Documentation(tmp_path, analyst=[{"choose": [left_out, *PLAYS["analyst"]]}])
    assert ending(shop.run()) == (0, "success")
    assert shop.asked.count("analyst") == 6
    assert "Your last answer did not cover shop/cli.py." in shop.prompt("batch_execution.1.2/analyse.2")


BARE: list[Record] = [{"json": {"markdown": "# Title\n\n[Shop](../shop) has `Order` and `Nonsense()`.\n"}}]


@pytest.mark.long
def test_low_quality_documents_are_refined(tmp_path: Path) -> None:
    """Refining starts with the documents that cost most of the score."""
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


@pytest.mark.long
def test_refinement_that_lowers_the_score_leaves_the_better_text(tmp_path: Path) -> None:
    """After three rounds the run ends, with the documents and the score that were reached."""
    worse: Record = {"json": {"markdown": "# Title\n\nThe try number {{ visit }} has `Invented()`.\n"}}
    shop = Documentation(tmp_path, document_synthesizer=BARE, refiner=[worse])
    assert ending(shop.run(threshold=0.9)) == (1, "quality_below")
    assert shop.steps == [*NODES, *["refine", "quality_gate"] * 3]
    assert (shop.told["refined"], score_of(shop.told)["sections"]) == (3, 0.0)
    assert shop.documents == DOCUMENTS
    not_kept = shop.told["quality"]["not_kept"]
    assert len(not_kept) == 3 * 4
    assert {each["path"] for each in not_kept} == {f"docs/{name}.md" for name in TOP}
    for name in TOP:
        assert "[Shop](../shop)" in (shop.team.workspace / f"docs/{name}.md").read_text()


def test_what_cannot_be_documented_ends_before_anything_is_asked(tmp_path: Path) -> None:
    shop = Documentation(tmp_path, {"README.md": "Nothing but words.\n"})
    assert ending(shop.run()) == (1, "nothing_to_document")
    assert shop.asked == []
    with pytest.raises(UsageError):
        shop.run(concurrency="many")


@pytest.mark.long
def test_cycles_binaries_and_invalid_files_are_documented(tmp_path: Path) -> None:
    """Import cycles are reported. The page of a binary or of a file with invalid syntax gives the reason why it cannot
    be parsed.
    """
    files = {"a.py": "import b\n", "b.py": "import a\n", "c.py": "def (:\n"}
    shop = Documentation(tmp_path, files)
    (shop.team.workspace / "d.py").write_bytes(b"\x00\x01")
    assert ending(shop.run()) == (0, "success")
    assert shop.told["cycles"] == [["a.py", "b.py"]]
    assert "**Cannot be read as code:** line 1: invalid syntax." in shop.page("c.py")
    assert "**Cannot be read as code:** binary: it has a NUL byte." in shop.page("d.py")


def installed(name: str) -> Path:
    found = importlib.util.find_spec(name)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def check_library(tmp_path: Path, repo: Path, **inputs: str) -> Documentation:
    """Every file of it has a page, and all that can be measured is right."""
    library = Documentation(tmp_path, {})
    assert ending(library.run(YES, repo=repo, concurrency=4, **inputs)) == (0, "success")
    sources = {path.relative_to(repo).as_posix() for path in repo.rglob("*.py")}
    assert {name for name in library.documents if "/" in name} == {f"files/{source}.md" for source in sources}
    assert library.told["quality"]["score"] >= 0.95
    return library


@pytest.mark.long
def test_real_library(tmp_path: Path) -> None:
    check_library(tmp_path, installed("pluggy"))


@pytest.mark.long
@pytest.mark.parametrize("planning", ["static", "agentic"])
def test_library_of_more_than_five_thousand_lines(tmp_path: Path, planning: str) -> None:
    repo = Path(sysconfig.get_path("purelib")) / "click"
    assert sum(len(path.read_text().splitlines()) for path in repo.rglob("*.py")) > 5_000
    library = check_library(
        tmp_path, repo, planning=planning, synthesis="agentic" if planning == "agentic" else "batch"
    )
    assert library.told["cycles"]
