"""What the code imports is what the package declares: the core's packages always, an extension's with its extra.

Costs: every module is parsed, and the packages are asked for what they bring.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TOP = Path(__file__).parents[1]
PACKAGE, EXTENSIONS = TOP / "codex_multi_role", TOP / "codex_multi_role/extensions"
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
OF_EXTENSION = {
    "documentation": ("document",),
    "machines": ("machines", "s3"),
    "research": ("research",),
    "telemetry": ("otel",),
    "test_generation": ("mutation",),
    "pages": ("web",),
}
"""The extras that may be missing while the rest of the package works."""
OF_CORE = ("7z", "patterns")
"""Those of single features of the core, which say so where they are missing."""
PUBLIC = {"markupsafe": "jinja2", "pydantic-core": "pydantic", "pygments": "rich", "referencing": "jsonschema"}
"""By package, the one that documents it as a part of its own interface, and brings it."""
brought_by = cache(packages_distributions)


def named(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(each).name) for each in requirements}


CORE = named(PROJECT["dependencies"])


def imported(file: Path) -> Iterator[str]:
    """The packages that ``file`` imports anywhere, by the names of their modules."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def undeclared(folder: Path, allowed: set[str]) -> set[tuple[str, str]]:
    """The imports below ``folder`` that nothing ``allowed`` brings: file and module."""
    found = set()
    for file in folder.rglob("*.py"):
        if EXTENSIONS in file.parents and EXTENSIONS not in (folder, *folder.parents):
            continue
        for module in imported(file):
            if module not in sys.stdlib_module_names and not module.startswith(PACKAGE.name):
                packages = {
                    PUBLIC.get(each, each) for each in map(canonicalize_name, brought_by().get(module, [module]))
                }
                if not packages & allowed:
                    found.add((str(file.relative_to(TOP)), module))
    return found


def test_core_imports_what_it_declares() -> None:
    assert undeclared(PACKAGE, CORE.union(*(named(EXTRAS[each]) for each in OF_CORE))) == set()


@pytest.mark.extensions
def test_extensions_import_what_they_declare() -> None:
    folders = sorted(each for each in EXTENSIONS.iterdir() if (each / "__init__.py").is_file())
    assert OF_EXTENSION.keys() <= {each.name for each in folders}
    for folder in folders:
        extras = (named(EXTRAS[extra]) for extra in OF_EXTENSION.get(folder.name, ()))
        assert undeclared(folder, CORE.union(*extras)) == set()


def test_every_extra_is_in_the_environment_of_developers() -> None:
    def whole(extra: str) -> set[str]:
        requirements = [*map(Requirement, EXTRAS[extra])]
        own = [inner for each in requirements if each.name == PROJECT["name"] for inner in each.extras]
        return {extra}.union(*map(whole, own))

    assert whole("dev") == EXTRAS.keys()


def test_extras_that_are_named_exist() -> None:
    """In hints, documents and templates."""
    files = [*PACKAGE.rglob("*.py"), *(TOP / "docs").rglob("*.md"), TOP / "README.md", TOP / "Dockerfile"]
    pattern = re.compile(r"""how_to_add\(["']([\w-]+)["']\)|(?:codex-multi-role|-e '\.)\[([\w,-]+)\]""")
    for file in files:
        for match in pattern.finditer(file.read_text()):
            assert {*(match[1] or match[2]).split(",")} <= EXTRAS.keys(), file
