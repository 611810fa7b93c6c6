"""The exercise of the page on extensions works as written, and ``examples/extension`` is what it results in."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codex_multi_role import plugins
from tests.docs.newcomer import give
from tests.docs.pages import EXTENSIONS, TOP, commands
from tests.support.examples import EXTENSION
from tests.support.workspaces import write_files

FILES: dict[str, str] = dict(
    re.findall(r"New file `([^`]+)`:\n\n```\w+\n(.*?)```", (TOP / EXTENSIONS).read_text(), re.DOTALL)
)
SNIPPET = re.compile(r"```python\n(from codex_multi_role import run\n.*?)```", re.DOTALL)
SECONDS = 60.0


def install(project: Path, folder: Path) -> None:
    """Install the package of ``project`` into ``folder`` without a network; uv has the backend that builds it."""
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-cache", "--no-config"]
    command = [*uv, "--no-deps", "--python", sys.executable, "--target", str(folder), str(project)]
    subprocess.run(command, check=True, timeout=SECONDS)


def test_example_is_what_the_page_writes() -> None:
    assert {path: (EXTENSION / path).read_text() for path in FILES} == FILES
    assert set(commands("examples/extension/README.md")) <= set(commands(EXTENSIONS))


def test_example_imports_only_public_modules() -> None:
    """And the page names every type of a part that it tells people to register."""
    tree = ast.parse(FILES["src/my_extension/__init__.py"])
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in modules if name and name.startswith("codex_")} == {"codex_multi_role.plugins"}
    groups = (TOP / EXTENSIONS).read_text().partition("## Exercise")[0]
    assert set(re.findall(r"`@?([A-Z]\w+|declare_check)`", groups)) - {"Placement"} <= set(plugins.__all__)
    assert all(hasattr(plugins, name) for name in plugins.__all__)


@pytest.mark.real
@pytest.mark.usefixtures("scripted_codex")
def test_exercise_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project := tmp_path / "project").mkdir()
    write_files(project, FILES)
    first, *others = commands(EXTENSIONS)
    assert first == "pip install ."
    install(project, tmp_path / "installed")
    monkeypatch.syspath_prepend(tmp_path / "installed")
    monkeypatch.delitem(sys.modules, "my_extension", raising=False)
    said = {}
    for command in others:
        done = give(command, project)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        said[command] = done.stdout
    run = (project / "runs/latest").resolve().name
    assert re.fullmatch(rf"\S+ {run}: summarized The first one\.\n", said["codex-multi-role diary"])
    assert said["codex-multi-role flows limits"] == "8\n"
    assert [line for line in said["codex-multi-role show"].splitlines() if "summary.txt has 12 words" in line]
    assert "My-extension:\n  diary " in give("codex-multi-role --help", project).stdout
    monkeypatch.chdir(project)
    exec(SNIPPET.findall((TOP / EXTENSIONS).read_text())[0])
    assert give("codex-multi-role diary", project).stdout.endswith(": summarized From Python.\n")
