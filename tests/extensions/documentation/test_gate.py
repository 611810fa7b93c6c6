"""The quality gate: honest documentation of real packages passes, every mutilated one fails with its part named."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.checks import MakeContext
from tests.support.documentation import SECTIONS, Package

pytestmark = pytest.mark.usefixtures("mermaid_parser")

LOREM = (
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore "
    "magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo."
)
_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)]+)\)")
_FENCE = re.compile(r"```mermaid\n.*?```", re.DOTALL)
Mutilation = Callable[[Package], None]


@pytest.fixture
def package(make_context: MakeContext) -> Package:
    return Package(make_context({}), "json")


def each_document(change: Callable[[str], str]) -> Mutilation:
    """``change`` every document."""

    def mutilate(package: Package) -> None:
        for path in package.docs.rglob("*.md"):
            path.write_text(change(path.read_text()))

    return mutilate


def skeleton(text: str, paragraph: Callable[[int], str]) -> str:
    """The marks and headings of ``text``, each heading with a paragraph of its own below it."""
    kept = [line for line in text.splitlines() if line.startswith(("#", "<!--"))]
    return "\n".join(
        f"{line}\n\n{paragraph(number)}\n" if line.startswith("#") else line for number, line in enumerate(kept)
    )


def fill(path: Path) -> None:
    """Leave only headings, each with other filler below it."""
    words = LOREM.split()
    seed = zlib.crc32(path.as_posix().encode())

    def paragraph(number: int) -> str:
        return " ".join(random.Random(seed + number).sample(words, len(words)))

    path.write_text(skeleton(path.read_text(), paragraph))


def delete_documents(package: Package) -> None:
    for name in SECTIONS:
        (package.docs / f"{name}.md").unlink()


def empty_one_document(package: Package) -> None:
    (package.docs / "CONCEPTS.md").write_text("")


def put_diagrams_in_one_broken_block(package: Package) -> None:
    each_document(lambda text: _FENCE.sub("(see the overview)", text))(package)
    with (package.docs / "OVERVIEW.md").open("a") as overview:
        overview.write("\n```mermaid\nflowchart TD\n    a --> b\nflowchart TD\n    c --> [d\n```\n")


def copy_one_paragraph_everywhere(package: Package) -> None:
    paragraph = f"{LOREM} See `{package.files[0]['path']}`."
    each_document(lambda text: skeleton(text, lambda _: paragraph))(package)


def copy_one_section(package: Package) -> None:
    path = package.docs / "GETTING_STARTED.md"
    components = (package.docs / "OVERVIEW.md").read_text().partition("## Components\n")[2]
    head, heading, _ = path.read_text().partition("## First steps\n")
    path.write_text(f"{head}{heading}{components}")


def write_filler_in_documents(package: Package) -> None:
    for name in SECTIONS:
        fill(package.docs / f"{name}.md")


def write_filler_in_pages(package: Package) -> None:
    for path in package.pages.values():
        fill(path)


def delete_one_page(package: Package) -> None:
    package.pages[package.files[-1]["path"]].unlink()


def empty_one_page(package: Package) -> None:
    path = package.pages[package.files[-1]["path"]]
    path.write_text(path.read_text().splitlines()[0] + "\n")


def swap_pages(package: Package) -> None:
    """Every page is about the next file, mark and all."""
    texts = [path.read_text() for path in package.pages.values()]
    for path, text in zip(package.pages.values(), texts[1:] + texts[:1], strict=True):
        path.write_text(text)


def swap_texts_below_marks(package: Package) -> None:
    texts = [path.read_text().partition("\n") for path in package.pages.values()]
    for path, (mark, _, _), (_, _, text) in zip(package.pages.values(), texts, texts[1:] + texts[:1], strict=True):
        path.write_text(f"{mark}\n{text}")


def swap_texts_below_titles(package: Package) -> None:
    texts = [path.read_text().split("\n", 2) for path in package.pages.values()]
    for path, (mark, title, _), (_, _, text) in zip(package.pages.values(), texts, texts[1:] + texts[:1], strict=True):
        path.write_text(f"{mark}\n{title}\n{text}")


MUTILATIONS: dict[str, tuple[Mutilation, str]] = {
    "names invented": (each_document(lambda text: _CODE.sub("`InventedName.made_up()`", text)), "claims"),
    "documents deleted": (delete_documents, "sections"),
    "one document emptied": (empty_one_document, "sections"),
    "links broken": (each_document(lambda text: _LINK.sub("](no/such/place.md)", text)), "links"),
    "diagrams broken": (
        each_document(lambda text: text.replace("flowchart TD", "flowchart TD\n    a[(((b --> ]]")),
        "mermaid",
    ),
    "diagrams in one broken block": (put_diagrams_in_one_broken_block, "mermaid"),
    "headings only": (each_document(lambda text: skeleton(text, lambda _: "")), "files sections"),
    "headings with comments": (each_document(lambda text: skeleton(text, lambda _: f"<!-- {LOREM} -->")), "sections"),
    "placeholders": (each_document(lambda text: skeleton(text, lambda _: "TBD")), "sections"),
    "one paragraph everywhere": (copy_one_paragraph_everywhere, "sections pages"),
    "one section copied": (copy_one_section, "sections"),
    "filler in documents": (write_filler_in_documents, "sections"),
    "filler in pages": (write_filler_in_pages, "pages"),
    "one page deleted": (delete_one_page, "files"),
    "one page emptied": (empty_one_page, "files"),
    "pages swapped": (swap_pages, "files"),
    "texts swapped below marks": (swap_texts_below_marks, "pages"),
    "texts swapped below titles": (swap_texts_below_titles, "pages"),
}
"""What is done to honest documentation, and the parts that are below their threshold then."""


def test_honest_documentation_of_a_package_passes(package: Package) -> None:
    result = package.measure()
    assert (result["status"], result["below"]) == ("passed", [])


@pytest.mark.parametrize("name", MUTILATIONS)
def test_mutilated_documentation_fails_with_its_part_named(package: Package, name: str) -> None:
    mutilate, parts = MUTILATIONS[name]
    mutilate(package)
    result = package.measure()
    assert result["status"] == "below"
    assert {*parts.split()} <= {each["part"] for each in result["below"]}
    assert result["refine"], "the refiner is told what to do"


def test_no_threshold_makes_up_for_a_part_but_zero_only_measures(package: Package) -> None:
    delete_documents(package)
    assert package.measure(threshold=0.1)["status"] == "below"
    assert package.measure(threshold=0)["status"] == "passed"


def refined(package: Package, **texts: str) -> list[dict[str, str]]:
    """Overwrite documents with ``texts``; what the check gets of it."""
    before = []
    for name, text in texts.items():
        path = package.docs / f"{name}.md"
        before.append({"path": f"docs/{name}.md", "before": path.read_text()})
        path.write_text(text)
    return before


def text_of(package: Package, name: str) -> str:
    return Path(package.docs / f"{name}.md").read_text()


def test_refinement_that_lowers_the_score_is_undone(package: Package) -> None:
    whole = package.measure()["score"]
    concepts, overview = text_of(package, "CONCEPTS"), text_of(package, "OVERVIEW")
    better = overview.replace("## Purpose\n", f"## Purpose\n\nIt begins with `{package.files[0]['path']}`.\n")
    changed = refined(package, CONCEPTS="# Concepts\n\n## Terms\n\nI could not say.\n", OVERVIEW=f"{better}[x](no.md)")
    result = package.measure(refined=changed)
    assert result["score"] == whole
    assert {each["path"] for each in result["not_kept"]} == {"docs/CONCEPTS.md", "docs/OVERVIEW.md"}
    assert all(each["score"] < each["without"] for each in result["not_kept"])
    assert (text_of(package, "CONCEPTS"), text_of(package, "OVERVIEW")) == (concepts, overview)


def test_improving_refinement_is_kept_beside_a_worsening_one(package: Package) -> None:
    """A refinement that lowers the score is reverted without losing another one that raises it."""
    honest = text_of(package, "CONCEPTS")
    overview = text_of(package, "OVERVIEW")
    (package.docs / "CONCEPTS.md").write_text("# Concepts\n")
    score = package.measure()["score"]
    result = package.measure(refined=refined(package, CONCEPTS=honest, OVERVIEW="# Nothing\n"))
    assert result["score"] > score
    assert [each["path"] for each in result["not_kept"]] == ["docs/OVERVIEW.md"]
    assert (text_of(package, "CONCEPTS"), text_of(package, "OVERVIEW")) == (honest, overview)


def test_refinements_lowering_score_only_jointly_are_reverted(package: Package) -> None:
    """Each links to headings of the other, so reverting only one would lower the score even more."""
    honest = {name: text_of(package, name) for name in ("CONCEPTS", "GETTING_STARTED")}
    score = package.measure()["score"]
    headings = "".join(f"## N{number}\n" for number in range(300))
    links = {name: "".join(f"[x]({name}.md#n{number})\n" for number in range(300)) for name in honest}
    changed = refined(
        package, CONCEPTS=f"{links['GETTING_STARTED']}{headings}", GETTING_STARTED=f"{links['CONCEPTS']}{headings}"
    )
    result = package.measure(refined=changed)
    assert (result["score"], len(result["not_kept"])) == (score, 2)
    assert {name: text_of(package, name) for name in honest} == honest
