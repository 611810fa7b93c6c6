"""The check ``target_facts``: what is known of a file before tests are planned: who calls, documents and tests it."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, declare_check, no_time
from codex_multi_role.checks.data_file import read_document
from codex_multi_role.errors import CheckFailed
from codex_multi_role.extensions.measuring.imports import module_name
from codex_multi_role.extensions.measuring.python_targets import is_test_file
from codex_multi_role.extensions.measuring.workspace_copies import is_left_out
from codex_multi_role.extensions.test_generation.plan_items import target_module
from codex_multi_role.extensions.test_generation.tests_source import Function, functions_in
from codex_multi_role.reading.python_source import NotPython, syntax_tree

MAX_FILES, MAX_BYTES = 2_000, 400_000
"""Of the workspace that are read to find who imports a file, and of each of them."""
MAX_README, MAX_CALLERS, MAX_EXAMPLE, MAX_NAMES = 4_000, 4_000, 4_000, 80
AROUND = 2
"""Lines shown before and after a call."""
HEADING = re.compile(r"^(?=#{1,6} )|^(?=[^\n]+\n[=~^\"'-]{3,}$)", re.MULTILINE)


class TargetFactsOptions(CheckOptions):
    path: str = Field(min_length=1, description="a Python file of the workspace")
    module: str = Field(min_length=1, description="the name by which it is imported")


class TargetFactsResult(CheckResult):
    """``content`` of the file, the sections of the ``readme`` that name it, and how other files use it (``callers``).

    ``tests``: the project's test files that import it, ``test_names`` what is in them, ``example``: one of them.
    """

    bad = ()

    status: Literal["read"]
    content: str
    docstrings: str
    readme: str
    callers: str
    tests: list[str]
    test_names: list[str]
    example: str


@declare_check(options=TargetFactsOptions, result=TargetFactsResult, max_seconds=no_time, read_only=True)
def target_facts(context: CheckContext) -> TargetFactsResult:
    """Read them. Raises UsageError, CheckFailed if the file is not a text of at most 1 MB."""
    options = context.read_options(TargetFactsOptions, "target_facts")
    root = context.workspace.root
    try:
        content = read_document(context.workspace, options.path, "check target_facts: path")
        names = target_module(content, options.module).defined
    except ValueError as error:
        raise CheckFailed(str(error)) from error
    known = context.python.folders if context.python else ()
    users = users_of(imports_in(root, known), options.module, root / options.path)
    tests = [path for path in users if holds_tests(path)]
    texts, named = {path: _text(path) for path in users}, {path: path.relative_to(root).as_posix() for path in users}
    words = {options.module.rpartition(".")[2], *(each for each in names if not each.startswith("_"))}
    return TargetFactsResult(
        status="read",
        content=content,
        docstrings=docstrings(content),
        readme=_readme(root, words),
        callers=_callers({named[path]: texts[path] for path in users if path not in tests}, words),
        tests=[named[path] for path in tests],
        test_names=[each.name for path in tests for each in functions_in(texts[path])][:MAX_NAMES],
        example=texts[tests[0]][:MAX_EXAMPLE] if tests else "",
    )


def docstrings(source: str) -> str:
    """Those of the module, its classes and functions."""
    kinds = ast.Module | ast.ClassDef | Function
    found = (ast.get_docstring(node) for node in ast.walk(syntax_tree(source)) if isinstance(node, kinds))
    return "\n".join(filter(None, found))


def imports_in(root: Path, known: Sequence[Path] = ()) -> dict[Path, frozenset[str]]:
    """What each Python file below ``root`` imports, as dotted names; ``known`` as in `module_name`."""
    return {path: frozenset(_imported(path, root, known)) for path in islice(python_in(root), MAX_FILES)}


def users_of(imports: Mapping[Path, Collection[str]], module: str, target: Path) -> list[Path]:
    """The files that import ``module``, or something of it; those named after it first."""
    users = [path for path, names in imports.items() if path != target and module in names]
    stem, own = target.stem, (f"test_{target.stem}", f"{target.stem}_test")
    return sorted(users, key=lambda path: (path.stem not in own, stem not in path.stem, path))


def has_tests(root: Path) -> bool:
    """Whether the project has a file of tests."""
    return any(map(holds_tests, islice(python_in(root), MAX_FILES)))


def holds_tests(path: Path) -> bool:
    return is_test_file(path.name) and path.name != "conftest.py"


def python_in(folder: Path) -> Iterator[Path]:
    """The Python files below ``folder``, sorted, without hidden ones and what copies leave out."""
    for place, folders, names in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(each for each in folders if not each.startswith(".") and not is_left_out(here / each))
        python = (here / name for name in sorted(names) if name.endswith(".py") and not name.startswith("."))
        yield from (path for path in python if path.is_file())


def _imported(path: Path, root: Path, known: Sequence[Path]) -> Iterator[str]:
    try:
        nodes = ast.walk(syntax_tree(_text(path)))
    except NotPython:
        return
    own = module_name(root, path.relative_to(root), known).split(".")
    package = own if path.name == "__init__.py" else own[:-1]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*above, *filter(None, [node.module])])
            yield start
            yield from (f"{start}.{each.name}".lstrip(".") for each in node.names)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""


def _readme(root: Path, words: Collection[str]) -> str:
    """The sections of the project's README with one of the ``words``."""
    files = sorted(path for path in root.glob("[Rr][Ee][Aa][Dd][Mm][Ee]*") if path.is_file() and not path.is_symlink())
    sections = [each for path in files[:2] for each in HEADING.split(_text(path))]
    return "\n".join(each.strip() for each in sections if _names(each, words))[:MAX_README]


def _names(text: str, words: Collection[str]) -> bool:
    return bool(words) and re.search(rf"\b({'|'.join(map(re.escape, words))})\b", text) is not None


def _callers(texts: Mapping[str, str], words: Collection[str]) -> str:
    """The lines that use one of the ``words``, each with those around it."""
    parts = []
    for path, text in texts.items():
        lines = text.splitlines()
        uses = [number for number, line in enumerate(lines) if _names(line, words)]
        near = {each for number in uses for each in range(number - AROUND, number + AROUND + 1)}
        shown = [lines[number] for number in sorted(near) if 0 <= number < len(lines)]
        parts += [f"# {path}", *shown] if shown else []
    return "\n".join(parts)[:MAX_CALLERS]
