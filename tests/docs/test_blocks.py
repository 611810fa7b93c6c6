"""The YAML and the Python of the pages are right."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from codex_multi_role import RoleSpecCatalog
from codex_multi_role.playbook import load_playbook
from codex_multi_role.replies import read_reply
from tests.docs.pages import Block, blocks, page_names
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
