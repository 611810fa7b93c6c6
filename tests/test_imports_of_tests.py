"""Test modules import helpers from `tests.support` and from nowhere else, so that each can be changed and run alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
FOLDERS = ("tests", "benchmarks")
IN_QUESTION = re.compile(r"^[ \t]*(from|import)\b(\\\n|[^\n(])*?(\(([^)#]|#.*)*?)?\b(test_|conftest)", re.MULTILINE)
"""What every import of a test module matches, so that hundreds of other modules need not be parsed."""
HINT = "move what it imports to tests/support/"


def imported_names(source: str, package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The dotted name of everything that ``source``, a module of ``package``, imports; relative imports resolved."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (tuple(each.name.split(".")) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = tuple(node.module.split(".")) if node.module else ()
            yield from ((*base, *module, each.name) for each in node.names)


def imported_test_modules(source: str, package: tuple[str, ...]) -> list[str]:
    """The test modules and conftests among what ``source`` imports."""
    if not IN_QUESTION.search(source):
        return []
    names = (name for name in imported_names(source, package) if name[0] in FOLDERS)
    prefixes = {name[:length] for name in names for length in range(2, len(name) + 1)}
    found = {name for name in prefixes if name[-1].startswith("test_") or name[-1] == "conftest"}
    return sorted(".".join(name) for name in found if TOP.joinpath(*name).with_suffix(".py").is_file())


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import tests.engine.test_flows", ["tests.engine.test_flows"]),
        ("def late():\n    from tests.engine.test_flows import x", ["tests.engine.test_flows"]),
        (
            "from tests.engine import test_flows as flows, test_fork",
            ["tests.engine.test_flows", "tests.engine.test_fork"],
        ),
        ("from .test_flows import x", ["tests.engine.test_flows"]),
        ("from . import test_flows", ["tests.engine.test_flows"]),
        ("from ..cli.test_main import x", ["tests.cli.test_main"]),
        (
            "from ..cli import (  # (all)\n    test_output,\n    test_main,\n)",
            ["tests.cli.test_main", "tests.cli.test_output"],
        ),
        ("from ..cli import \\\n    test_main", ["tests.cli.test_main"]),
        ("from ... import tests", []),
        ("from ..conftest import x", ["tests.conftest"]),
        ("from tests.support.teams import TeamFolder, test_no_such_module", []),
        ("from codex_multi_role.extensions.test_generation.test_files import x", []),
    ],
)
def test_import_of_test_module_is_found(source: str, found: list[str]) -> None:
    assert imported_test_modules(source, ("tests", "engine")) == found


def test_no_module_imports_a_test_module() -> None:
    found = {}
    for path in (path for folder in FOLDERS for path in sorted((TOP / folder).rglob("*.py"))):
        place = path.relative_to(TOP)
        if names := imported_test_modules(path.read_text(encoding="utf-8"), place.parent.parts):
            found[place.as_posix()] = names
    assert found == {}, HINT
