"""What is documented, and in which batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.documentation.code_graph import read_code_graph
from codex_multi_role.extensions.documentation.document_paths import marked, page_of
from codex_multi_role.extensions.documentation.document_plan import plan_documents
from tests.support.checks import MakeContext
from tests.support.workspaces import write_files

SOURCES = {f"low{number}.py": "" for number in range(4)} | {
    "middle.py": "import low0\n",
    "top.py": "import middle, low3\n",
    "left.py": "import right\n",
    "right.py": "import left\n",
}


class Planned:
    def __init__(self, make: MakeContext) -> None:
        self.context = make(SOURCES)

    def document(self, *paths: str) -> None:
        """Pages about these files as they are."""
        for file in self.graph()["files"]:
            if file["path"] in paths:
                self.write(page_of("docs", file["path"]), marked(file["path"], file["sha256"], "# x\n\nKnown."))

    def write(self, path: str, text: str) -> None:
        write_files(self.context.workspace.root, {path: text})

    def graph(self) -> dict[str, Any]:
        return read_code_graph(replace(self.context, options={}))

    def plan(self, **options: object) -> dict[str, Any]:
        return plan_documents(replace(self.context, options={"graph": self.graph(), **options}))

    def batches(self, **options: object) -> list[tuple[str, list[str], list[str]]]:
        batches = self.plan(**options)["batches"]
        return [(each["id"], [file["path"] for file in each["files"]], each["needs"]) for each in batches]


@pytest.fixture
def planned(make_context: MakeContext) -> Planned:
    return Planned(make_context)


def test_by_layers_in_threes_each_batch_after_those_it_needs(planned: Planned) -> None:
    assert planned.batches() == [
        ("B1", ["left.py", "low0.py", "low1.py"], []),
        ("B2", ["low2.py", "low3.py", "right.py"], ["B1"]),
        ("B3", ["middle.py"], ["B1"]),
        ("B4", ["top.py"], ["B2", "B3"]),
    ]


def test_only_what_changed_by_content_is_planned(planned: Planned) -> None:
    planned.document(*SOURCES)
    assert planned.plan()["status"] == "up to date"
    planned.write("middle.py", "import low0, low1\n")
    result = planned.plan()
    assert (result["changed"], result["unchanged"]) == (["middle.py"], 7)
    assert planned.batches() == [("B1", ["middle.py"], [])]


def test_missing_documents_and_orphaned_pages_are_planned(planned: Planned) -> None:
    """An orphaned page is about a file that no longer exists. A page that a person wrote is left alone."""
    planned.document(*SOURCES)
    assert planned.plan(documents=["OVERVIEW"])["missing"] == ["OVERVIEW"]
    planned.write("docs/files/old.py.md", marked("old.py", "0" * 64, "# old.py"))
    planned.write("docs/files/notes.md", "# A person's own\n")
    result = planned.plan()
    assert (result["status"], result["gone"], result["batches"]) == ("planned", ["docs/files/old.py.md"], [])


def test_planners_groups_are_kept_where_they_can_be(planned: Planned) -> None:
    groups = [["top.py", "low0.py"], ["low0.py", "low1.py"], ["no.py"], [], "top.py", ["left.py", "right.py"]]
    result = planned.plan(groups=groups)
    assert (result["grouped_by"], result["put_back"]) == ("groups", ["low1.py", "low2.py", "low3.py", "middle.py"])
    assert [each["reason"] for each in result["dropped"]] == [
        "one of its files is already in another group",
        "no.py is not one of the files to document",
        "not a list of paths",
        "not a list of paths",
    ]
    assert [files for _, files, _ in planned.batches(groups=groups)] == [
        ["left.py", "right.py"],
        ["low1.py", "low2.py", "low3.py"],
        ["middle.py"],
        ["top.py", "low0.py"],
    ]


def test_groups_that_need_each_other_are_still_in_an_order(planned: Planned) -> None:
    batches = planned.batches(groups=[["top.py", "low0.py"], ["middle.py", "low3.py"]])
    assert batches[-2:] == [("B3", ["middle.py", "low3.py"], []), ("B4", ["top.py", "low0.py"], ["B3"])]


@pytest.mark.parametrize("groups", [None, [], "none", [["no.py"]]])
def test_without_a_group_that_can_be_used_it_is_by_layers(planned: Planned, groups: object) -> None:
    assert planned.plan(groups=groups)["grouped_by"] == "layers"
    assert planned.batches(groups=groups) == planned.batches()


def test_group_that_is_too_large_for_a_turn_is_parted(planned: Planned) -> None:
    sizes = [len(files) for _, files, _ in planned.batches(groups=[sorted(SOURCES)])]
    assert sorted(sizes) == [2, 6]


@pytest.mark.parametrize("option", ["planning", "synthesis"])
def test_unknown_planning_or_synthesis_mode_is_refused(planned: Planned, option: str) -> None:
    with pytest.raises(UsageError, match=f"check document_plan: {option}: "):
        planned.plan(**{option: "magic"})


def test_planner_sees_the_layers_and_what_most_depend_on(planned: Planned) -> None:
    planned.document("low1.py")
    result = planned.plan()
    assert "Layer 1:\n* middle.py: low0.py\n" in result["structure"]
    assert "\n  low1.py: -\n" in result["structure"]
    assert result["structure"].endswith("Circle: left.py, right.py")
    assert result["sample"] == ["left.py", "low0.py", "low3.py", "middle.py", "right.py"]
