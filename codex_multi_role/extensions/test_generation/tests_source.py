"""Test functions in the source of a test file: their names, and whether they check anything."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import count
from typing import Any

from codex_multi_role.reading.python_source import NotPython, syntax_tree

Function = ast.FunctionDef | ast.AsyncFunctionDef
CHECKING_CALLS = frozenset({"raises", "warns", "deprecated_call", "fail", "expect", "xfail"})
"""Functions that check something, besides all that begin with ``assert``: pytest's, unittest's and mock's."""
CHECKING_DECORATORS = frozenset({"given"})
"""Hypothesis checks that no input raises."""


@dataclass(frozen=True)
class TestFunction:
    """``name`` is pytest's without parameters: ``TestShape::test_area``."""

    __test__ = False

    name: str
    node: Function


def functions_in(source: str) -> list[TestFunction]:
    """All test functions, in order; none if the source cannot be parsed."""
    try:
        return list(_test_functions(syntax_tree(source).body, ""))
    except NotPython:
        return []


def named_by_behaviour(source: str, ids: Collection[str]) -> str:
    """The source with test names that do not begin with the ``ids`` of a plan: ``test_below`` for ``test_p1_below``."""
    names = "|".join(map(re.escape, ids))
    return re.sub(rf"\b(def test)_(?:{names})_(?=[a-z])", r"\1_", source, flags=re.IGNORECASE) if names else source


def with_unique_names(source: str) -> str:
    """The source with one definition per test name, because pytest runs only the last of several.

    A later identical definition is removed, a different one gets a number. Unchanged if it cannot be parsed.
    """
    try:
        body = syntax_tree(source).body
    except NotPython:
        return source
    lines = StringIO(source, newline="").readlines()
    for node, name in _repeated(body):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
        if name:
            lines[node.lineno - 1] = re.sub(rf"\b{node.name}\b", name, lines[node.lineno - 1], count=1)
        else:
            lines[first : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - first)
    return "".join(lines)


def _repeated(body: list[ast.stmt]) -> Iterator[tuple[Function | ast.ClassDef, str]]:
    """Later definitions of the same name, each with its new name; empty if it is to be removed."""
    nodes = (node for node in body if isinstance(node, Function | ast.ClassDef))
    named = [node for node in nodes if node.name.lower().startswith("test")]
    taken = {node.name for node in named}
    kept: dict[str, list[str]] = {}
    for node in named:
        if isinstance(node, ast.ClassDef):
            yield from _repeated(node.body)
        text = ast.dump(node)
        if text in kept.setdefault(node.name, []):
            yield node, ""
        elif kept[node.name]:
            name = next(each for number in count(2) if (each := f"{node.name}_{number}") not in taken)
            taken.add(name)
            yield node, name
        kept[node.name].append(text)


def without_fence(text: str) -> str:
    """The text inside a Markdown fence if exactly one encloses all of ``text``; otherwise ``text`` unchanged."""
    lines = text.strip().splitlines(keepends=True)
    mark = re.match(r"(`{3,}|~{3,})[ \t]*[\w.+-]*[ \t]*$", lines[0].rstrip("\r\n")) if len(lines) > 1 else None
    ends = [number for number, line in enumerate(lines) if mark and line.lstrip(" ").startswith(mark[1])]
    return "".join(lines[1:-1]) if mark and ends[-1:] == [len(lines) - 1] and set(ends) <= {0, len(lines) - 1} else text


def _test_functions(body: list[ast.stmt], prefix: str) -> Iterator[TestFunction]:
    for node in body:
        if isinstance(node, Function) and node.name.startswith("test"):
            yield TestFunction(f"{prefix}{node.name}", node)
        elif isinstance(node, ast.ClassDef):
            yield from _test_functions(node.body, f"{prefix}{node.name}::")


def tests_without_assertion(source: str) -> list[str]:
    """The names, as in `functions_in`, of tests that neither check anything nor call a function that does.

    An assertion of literals alone, such as ``assert True``, checks nothing.
    """
    try:
        nodes = [node for node in ast.walk(syntax_tree(source)) if isinstance(node, Function)]
    except NotPython:
        return []
    checking: set[str] = set()
    while found := {node.name for node in nodes if node.name not in checking and _checks(node, checking)}:
        checking |= found
    return [test.name for test in functions_in(source) if not _checks(test.node, checking)]


def _checks(function: Function, checking: Collection[str]) -> bool:
    """Whether ``function`` checks something itself, or uses a function or fixture named in ``checking``."""
    is_given = any(name_of(each) in CHECKING_DECORATORS for each in function.decorator_list)
    uses_checking = any(argument.arg in checking for argument in function.args.args)
    return is_given or uses_checking or any(_is_check(node, checking) for node in ast.walk(function))


def _is_check(node: ast.AST, checking: Collection[str]) -> bool:
    if isinstance(node, ast.Assert):
        return any(isinstance(part, ast.Name | ast.Attribute | ast.Call) for part in ast.walk(node.test))
    if isinstance(node, ast.Raise):
        return node.exc is not None and name_of(node.exc) == "AssertionError"
    name = name_of(node) if isinstance(node, ast.Call) else ""
    return name.startswith("assert") or name in CHECKING_CALLS or name in checking


def name_of(node: ast.AST) -> str:
    """The name of a node, or of a call's function, without the object that it belongs to."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else str(getattr(node, "id", "")).rpartition(".")[2]


def literal(node: ast.AST | None) -> list[Any]:
    """The value of a literal, or nothing."""
    try:
        return [ast.literal_eval(node)] if isinstance(node, ast.expr) else []
    except (ValueError, RecursionError, MemoryError, TypeError):
        return []
