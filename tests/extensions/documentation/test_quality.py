"""What documents are found to be worth, part by part, and which of them need refinement."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.checks import CheckContext
from codex_multi_role.errors import CheckFailed, RunInterrupted, UsageError
from codex_multi_role.extensions.documentation.code_graph import read_code_graph
from codex_multi_role.extensions.documentation.document_paths import marked, page_of
from codex_multi_role.extensions.documentation.mermaid import NOT_JUDGED, OWN_PARSER, judge_diagrams
from codex_multi_role.extensions.documentation.quality import measure_documents
from tests.support.checks import MakeContext
from tests.support.workspaces import write_files

SOURCES = {
    "shop/orders.py": "import requests\nMOST = 3\nclass Order:\n    def add(self, item_name): ...\n",
    "shop/store.py": "from shop.orders import Order\ndef save(order): ...\n",
}
SECTIONS = {"OVERVIEW": ["Purpose"], "CONCEPTS": ["Terms"]}
OVERVIEW = """# Shop

## Purpose
It keeps `Order` objects, see [orders](files/shop/orders.py.md#shoporderspy) and `save()` in `shop/store.py`.

```mermaid
flowchart TD
    store --> orders
```
"""


class Documented:
    """A repository with documents that are all right, until a test spoils them."""

    def __init__(self, make: MakeContext) -> None:
        self.context = make(SOURCES)
        self.graph = dict[str, Any](read_code_graph(self.context))
        self.write("docs/OVERVIEW.md", OVERVIEW)
        self.write("docs/CONCEPTS.md", "# Concepts\n\n## Terms\nAn [order](OVERVIEW.md#purpose) is a list of items.\n")
        for file in self.graph["files"]:
            name = file["functions"][0].split(".")[-1]
            text = f"# {file['path']}\n\nAbout {name} in it, [from](../../../{file['path']}).\n"
            self.write(page_of("docs", file["path"]), marked(file["path"], file["sha256"], text))

    def write(self, path: str, text: str) -> None:
        write_files(self.context.workspace.root, {path: text})

    def measure(self, **options: object) -> dict[str, Any]:
        given = {"graph": self.graph, "sections": SECTIONS, **options}
        return measure_documents(replace(self.context, options=given))

    def part(self, name: str, **options: object) -> dict[str, Any]:
        (part,) = [each for each in self.measure(**options)["parts"] if each["name"] == name]
        return dict(part)


@pytest.fixture
def documented(make_context: MakeContext) -> Documented:
    return Documented(make_context)


@pytest.mark.usefixtures("mermaid_parser")
def test_documents_without_a_fault_have_the_full_score(documented: Documented) -> None:
    result = documented.measure()
    assert (result["status"], result["score"], result["refine"]) == ("passed", 1.0, [])
    assert {part["name"]: (part["good"], part["of"]) for part in result["parts"]} == {
        "files": (2, 2),
        "pages": (2, 2),
        "mermaid": (1, 1),
        "links": (4, 4),
        "sections": (2, 2),
        "claims": (3, 3),
    }


def test_no_documents_are_worth_nothing(documented: Documented) -> None:
    shutil.rmtree(documented.context.workspace.root / "docs")
    result = documented.measure()
    assert (result["status"], result["score"]) == ("below", 0.0)
    assert sum(part["costs"] for part in result["parts"]) == pytest.approx(1.0)


@pytest.mark.usefixtures("mermaid_parser")
def test_page_about_an_older_state_of_its_file_covers_it_no_more(documented: Documented) -> None:
    documented.write("docs/files/shop/store.py.md", marked("shop/store.py", "0" * 64, "# shop/store.py\n\nOld."))
    part = documented.part("files")
    assert (part["good"], part["of"], part["costs"]) == (1, 2, 0.1)
    (item,) = documented.measure()["refine"]
    assert (item["path"], item["source"]) == ("docs/files/shop/store.py.md", "shop/store.py")
    assert item["problems"] == ["it is about another state of shop/store.py"]


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("nowhere.md", "leads nowhere"),
        ("x" * 300, "leads nowhere"),
        ("nul%00", "leads nowhere"),
        ("CONCEPTS.md#none", "refers to a heading that CONCEPTS.md does not have"),
        ("#none", "refers to a heading that OVERVIEW.md does not have"),
        ("../../secret.md", "leads outside the workspace"),
        ("/etc/passwd", "leads outside the workspace"),
    ],
)
def test_link_that_leads_nowhere_costs(documented: Documented, link: str, problem: str) -> None:
    documented.write("docs/OVERVIEW.md", f"{OVERVIEW}\n[x]({link}) and [y](https://example.org/no)\n")
    part = documented.part("links")
    assert (part["good"], part["of"]) == (4, 5)
    assert part["problems"] == [{"document": "docs/OVERVIEW.md", "problem": f"the link {link} {problem}"}]


@pytest.mark.parametrize(
    ("code", "real"),
    [
        ("Order.add", True),
        ("Order.add()", True),
        ("shop.orders.Order", True),
        ("item_name", True),
        ("MOST", True),
        ("save", True),
        ("orders.py", True),
        ("shop/", True),
        ("requests.get()", None),
        ("click", None),
        ("pip install shop", None),
        ("ValueError", None),
        ("config.toml/x", None),
        ("Order.remove()", False),
        ("delete_order", False),
        ("Basket", False),
        ("shop/basket.py", False),
        ("cart/", False),
        ("remove()", False),
    ],
)
def test_name_in_code_font_is_one_that_the_code_knows(documented: Documented, code: str, real: bool | None) -> None:
    documented.write("docs/CONCEPTS.md", f"## Terms\nAn order may be called `{code}`\n")
    part = documented.part("claims")
    assert (part["good"], part["of"]) == (3 + (real is True), 3 + (real is not None))
    assert bool(part["problems"]) == (real is False)


@pytest.mark.usefixtures("mermaid_parser")
def test_missing_section_and_invalid_diagram_are_reported(documented: Documented) -> None:
    """The result also shows how much they cost in the score."""
    documented.write("docs/CONCEPTS.md", "# Concepts\n```mermaid\nflowchart TD\n a[x --> b\n```\n[o](OVERVIEW.md)\n")
    result = documented.measure(threshold=0.9)
    assert (result["status"], result["score"]) == ("below", 0.825)
    (item,) = result["refine"]
    assert (item["path"], item["costs"]) == ("docs/CONCEPTS.md", 0.175)
    diagram, section = item["problems"]
    assert diagram.startswith("a diagram (flowchart TD) does not parse: ")
    assert section == "the section 'Terms' is missing"


def test_diagrams_without_node_are_not_judged(documented: Documented) -> None:
    """They neither count as good nor as wrong: the part has no score and no weight."""
    documented.context = replace(documented.context, environment={"PATH": ""})
    documented.write("docs/OVERVIEW.md", OVERVIEW.replace("store --> orders", "store [-> orders"))
    result = documented.measure()
    (part,) = [each for each in result["parts"] if each["name"] == "mermaid"]
    assert (part["score"], part["weight"], part["of"], part["problems"]) == (None, 0, 0, [])
    assert (result["status"], result["score"], result["not_judged"]) == ("passed", 1.0, 1)
    assert result["mermaid_judged_by"] == "not judged: Node is not installed"


def test_without_a_diagram_the_overview_is_to_get_one(documented: Documented) -> None:
    documented.write("docs/OVERVIEW.md", OVERVIEW.replace("```mermaid", "```text"))
    (item,) = documented.measure()["refine"]
    assert (item["path"], item["problems"]) == ("docs/OVERVIEW.md", ["no document has a Mermaid diagram"])


def test_it_ends_with_its_deadline_and_with_the_run(documented: Documented) -> None:
    documented.context = replace(documented.context, deadline_seconds=0)
    with pytest.raises(CheckFailed, match="check document_quality: took longer than 0 s"):
        documented.measure()
    documented.context.stopping.set()
    with pytest.raises(RunInterrupted):
        documented.measure()


def test_document_folder_outside_the_workspace_is_refused(documented: Documented) -> None:
    with pytest.raises(UsageError, match="check document_quality: out: unsafe path"):
        documented.measure(out="../docs")


def _with_mermaid(context: CheckContext) -> CheckContext:
    return replace(context, environment={**context.environment, "NODE_PATH": os.environ.get("NODE_PATH", "")})


@pytest.mark.real
def test_mermaids_own_parser_is_asked_where_it_is(documented: Documented) -> None:
    diagrams = ["flowchart TD\n a-->b", "flowchart TD\n a[x-->b", "sequenceDiagram\n A->>B: hi", "pie\n nonsense"]
    judged = judge_diagrams(_with_mermaid(documented.context), diagrams)
    if judged.by != OWN_PARSER:
        assert judged.by.startswith(NOT_JUDGED)
        pytest.skip(judged.by)
    assert [bool(judged.verdicts[each]) for each in diagrams] == [False, True, False, True]


@pytest.mark.real
def test_package_of_that_name_that_fails_judges_nothing(documented: Documented, tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("there is no Node")
    package = tmp_path / "work/node_modules/mermaid"
    write_files(package, {"package.json": '{"name": "mermaid", "main": "broken.js"}'})
    judged = judge_diagrams(documented.context, ["flowchart TD\n a-->b"])
    assert judged.verdicts == {}
    assert judged.by.startswith(f"{NOT_JUDGED}: {OWN_PARSER} failed: ")
