"""Find test functions that check nothing."""

from __future__ import annotations

import ast
from collections.abc import Collection

from codex_multi_role.reading.python_source import NotPython, syntax_tree
from codex_multi_role.systems.test_generation.tests_source import Function, functions_in

CHECKING_CALLS = frozenset({"raises", "warns", "deprecated_call", "fail", "expect", "xfail"})
"""Functions that check something, besides all that begin with ``assert``: pytest's, unittest's and mock's."""
CHECKING_DECORATORS = frozenset({"given"})
"""Hypothesis checks that no input raises."""


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
    if any(argument.arg in checking for argument in function.args.args):
        return True
    if any(_name(each) in CHECKING_DECORATORS for each in function.decorator_list):
        return True
    return any(_is_check(node, checking) for node in ast.walk(function))


def _is_check(node: ast.AST, checking: Collection[str]) -> bool:
    if isinstance(node, ast.Assert):
        return any(isinstance(part, ast.Name | ast.Attribute | ast.Call) for part in ast.walk(node.test))
    if isinstance(node, ast.Raise):
        return node.exc is not None and _name(node.exc) == "AssertionError"
    name = _name(node) if isinstance(node, ast.Call) else ""
    return name.startswith("assert") or name in CHECKING_CALLS or name in checking


def _name(node: ast.AST) -> str:
    """The name of a node, or of a call's function, without the object that it belongs to."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
