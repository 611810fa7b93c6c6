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


@pytest.fixture
def package(make_context: MakeContext) -> Package:
    return Package(make_context({}), "json")


def each_document(package: Package, change: Callable[[str], str]) -> None:
    for path in package.docs.rglob("*.md"):
        path.write_text(change(path.read_text()))


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


def invent_names(package: Package) -> None:
    each_document(package, lambda text: _CODE.sub("`InventedName.made_up()`", text))


def delete_documents(package: Package) -> None:
    for name in SECTIONS:
        (package.docs / f"{name}.md").unlink()


def empty_one_document(package: Package) -> None:
    (package.docs / "CONCEPTS.md").write_text("")


def break_links(package: Package) -> None:
    each_document(package, lambda text: _LINK.sub("](no/such/place.md)", text))


def break_diagrams(package: Package) -> None:
    each_document(package, lambda text: text.replace("flowchart TD", "flowchart TD\n    a[(((b --> ]]"))


def put_diagrams_in_one_broken_block(package: Package) -> None:
    each_document(package, lambda text: _FENCE.sub("(see the overview)", text))
    with (package.docs / "OVERVIEW.md").open("a") as overview:
        overview.write("\n```mermaid\nflowchart TD\n    a --> b\nflowchart TD\n    c --> [d\n```\n")


def keep_headings_only(package: Package) -> None:
    each_document(package, lambda text: skeleton(text, lambda _: ""))


def keep_headings_with_comments(package: Package) -> None:
    each_document(package, lambda text: skeleton(text, lambda _: f"<!-- {LOREM} -->"))


def write_placeholders(package: Package) -> None:
    each_document(package, lambda text: skeleton(text, lambda _: "TBD"))


def copy_one_paragraph_everywhere(package: Package) -> None:
    each_document(package, lambda text: skeleton(text, lambda _: f"{LOREM} See `{package.files[0]['path']}`."))


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


MUTILATIONS: list[tuple[Callable[[Package], None], str]] = [
    (invent_names, "claims"),
    (delete_documents, "sections"),
    (empty_one_document, "sections"),
    (break_links, "links"),
    (break_diagrams, "mermaid"),
    (put_diagrams_in_one_broken_block, "mermaid"),
    (keep_headings_only, "files"),
    (keep_headings_only, "sections"),
    (keep_headings_with_comments, "sections"),
    (write_placeholders, "sections"),
    (copy_one_paragraph_everywhere, "sections"),
    (copy_one_paragraph_everywhere, "pages"),
    (copy_one_section, "sections"),
    (write_filler_in_documents, "sections"),
    (write_filler_in_pages, "pages"),
    (delete_one_page, "files"),
    (empty_one_page, "files"),
    (swap_pages, "files"),
    (swap_texts_below_marks, "pages"),
    (swap_texts_below_titles, "pages"),
]


def test_honest_documentation_of_a_package_passes(package: Package) -> None:
    result = package.measure()
    assert result["below"] == []
    assert result["status"] == "passed"


@pytest.mark.parametrize(("mutilate", "part"), MUTILATIONS, ids=lambda each: getattr(each, "__name__", each))
def test_mutilated_documentation_fails_with_its_part_named(
    package: Package, mutilate: Callable[[Package], None], part: str
) -> None:
    mutilate(package)
    result = package.measure()
    assert result["status"] == "below"
    assert part in [each["part"] for each in result["below"]]
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
