"""The site is built strictly, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import OPERATION, TOP

pytestmark = pytest.mark.extensions
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
LOADED = re.compile(r'<(?:script|img|iframe|source)[^>]*\ssrc="?(?:https?:)?//|<link[^>]*\shref="?(?:https?:)?//')
LOADED_BY_STYLE = re.compile(r"(?:@import|url\()\s*[\"']?(?:https?:)?//")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the sources of the site."""
    shutil.copytree(TOP / "docs", tmp_path / "docs")
    shutil.copy(TOP / "mkdocs.yml", tmp_path)
    return tmp_path


def build(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.real
def test_site_builds_and_loads_nothing_from_elsewhere(project: Path) -> None:
    built = build(project)
    assert built.returncode == 0, built.stdout + built.stderr
    pages = list((project / "site").rglob("*.html"))
    assert len(pages) >= len(list((project / "docs").rglob("*.md")))
    assert [page.name for page in pages if LOADED.search(page.read_text())] == []
    assert [file.name for file in (project / "site").rglob("*.css") if LOADED_BY_STYLE.search(file.read_text())] == []


@pytest.mark.long
def test_broken_links_stop_the_build(project: Path) -> None:
    """To no page, and to no part of one."""
    with (project / "docs/index.md").open("a") as file:
        file.write("\n[page](nowhere.md) and [part](glossary.md#nothing)\n")
    built = build(project)
    assert built.returncode != 0
    assert {"page does not exist", "anchor does not exist"} <= set(
        re.findall("[a-z]+ does not exist", built.stdout + built.stderr)
    )


def test_every_page_is_in_the_navigation() -> None:
    listed = set(_leaves(yaml.safe_load((TOP / "mkdocs.yml").read_text())["nav"]))
    assert listed == {page.relative_to(TOP / "docs").as_posix() for page in (TOP / "docs").rglob("*.md")}


@pytest.mark.parametrize("overview", ["docs/index.md", "docs/llms.txt"])
def test_overview_leads_to_every_page(overview: str) -> None:
    linked = set(LINK.findall((TOP / overview).read_text()))
    pages = {page.relative_to(TOP / "docs").as_posix() for page in (TOP / "docs").rglob("*.md")} - {"index.md"}
    of_commands = {each for each in pages if each.startswith("reference/commands/")}
    assert pages - of_commands <= linked
    assert of_commands == {
        f"reference/{link}" for link in LINK.findall((TOP / "docs/reference/command-line.md").read_text())
    }


def _leaves(part: object) -> list[str]:
    if isinstance(part, str):
        return [part]
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
    return [leaf for each in inner for leaf in _leaves(each)]


def test_tests_that_show_a_guarantee_exist() -> None:
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", (TOP / OPERATION).read_text())
    assert len(named) > 10
    assert [each for file, each in named if f"def {each}(" not in (TOP / file).read_text()] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/llms.txt", "examples/README.md"])
def test_links_outside_the_site_lead_to_files(name: str) -> None:
    source = TOP / name
    local = [link for link in LINK.findall(source.read_text()) if not link.startswith(("http://", "https://"))]
    assert [link for link in local if not (source.parent / link).exists()] == []
