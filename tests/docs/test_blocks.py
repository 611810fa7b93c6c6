"""The YAML and the Python of the pages are right; the site is built strictly, and loads nothing from elsewhere."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from codex_multi_role import RoleSpecCatalog
from codex_multi_role.playbook import load_playbook
from codex_multi_role.replies import read_reply
from tests.docs.pages import OPERATION, TOP, Block, blocks, page_names
from tests.support.console import console
from tests.support.examples import EXTENSION
from tests.support.paths import shipped_team

pytestmark = pytest.mark.extensions
PAGES = [name for name in page_names() if not name.startswith("examples/")]
FILES = [(page, block) for page in PAGES for block in blocks(page) if block.title]
PYTHON = [(page, block) for page in PAGES for block in blocks(page) if block.language == "python"]


@pytest.mark.parametrize(("page", "block"), FILES, ids=[f"{page}:{block.title}" for page, block in FILES])
def test_file_of_page_is_valid(page: str, block: Block, tmp_path: Path) -> None:
    """A catalog, a flow or settings, in a project with a team and the prompts that a page names."""
    assert console("init", "--for", "coding", folder=tmp_path).returncode == 0
    (tmp_path / "roles/prompts").mkdir()
    (tmp_path / "roles/prompts/implementer.md").write_text("Write it.")
    (file := tmp_path / block.title).parent.mkdir(parents=True, exist_ok=True)
    file.write_text(block.text)
    kind = ["flows", "validate", file.stem] if file.parent.name == "flows" else ["roles", "validate"]
    done = console(*kind, folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_team_of_readme_is_a_catalog(tmp_path: Path) -> None:
    [team] = [block for block in blocks("README.md") if block.language == "yaml"]
    (tmp_path / "catalog.yaml").write_text(team.text)
    assert [role.name for role in RoleSpecCatalog.load(tmp_path).roles] == ["planner", "implementer", "reviewer"]
    assert len(team.text.splitlines()) <= 15


@pytest.mark.parametrize(("page", "block"), PYTHON, ids=[page for page, _ in PYTHON])
def test_python_of_page_compiles_and_imports(page: str, block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without running what needs a model."""
    monkeypatch.syspath_prepend(EXTENSION / "src")
    imports: list[ast.stmt] = [
        node for node in ast.parse(block.text, page).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    exec(compile(ast.Module(imports, []), page, "exec"), {})


@pytest.mark.long
def test_python_of_reference_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No short test executes the Python of the reference."""
    [block] = [block for block in blocks("docs/reference/python-api.md") if block.language == "python"]
    monkeypatch.chdir(tmp_path)
    exec(block.text, {})
    assert capsys.readouterr().out.startswith("done 0 ")


@pytest.mark.parametrize("name", ["testgen", "testgen-duel"])
def test_playbook_of_flow_has_valid_answers(name: str) -> None:
    """The others are played by tests of their systems."""
    catalog = shipped_team(name).catalog
    for role, visits in load_playbook(name).roles.items():
        for visit in visits:
            reply = read_reply(json.dumps(visit.payload), catalog.role(role).output_schema)
            assert reply.handoff == visit.payload, role


def test_readme_has_at_most_150_lines() -> None:
    readme = Path(__file__).parents[2] / "README.md"
    assert len(readme.read_text(encoding="utf-8").splitlines()) <= 150


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
