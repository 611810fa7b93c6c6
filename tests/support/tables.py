"""Tables that name tests: whether each test exists."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]


@cache
def _statements(file: str) -> list[ast.stmt]:
    return ast.parse((TESTS / file).read_text(encoding="utf-8")).body


@cache
def functions_of(*files: str) -> set[str]:
    """The names of the functions in the ``files``, which are named from the folder ``tests``."""
    return {node.name for file in files for node in _statements(file) if isinstance(node, ast.FunctionDef)}


def is_long(test: str) -> bool:
    """Whether ``file.py::function[case]`` is deselected by default: by a mark of its module, function or case.

    The case may be left out, and is looked for only where its values are written out in a `pytest.param`.
    """
    file, _, name = test.partition("::")
    function, _, case = name.partition("[")
    for node in _statements(file):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark" and _names_long(node.value):
            return True
    decorators = (
        decorator
        for node in _statements(file)
        if isinstance(node, ast.FunctionDef) and node.name == function
        for decorator in node.decorator_list
    )
    return any(_is_long_by(each, case.removesuffix("]")) for each in decorators)


def _is_long_by(decorator: ast.expr, case: str) -> bool:
    if not ast.unparse(decorator).startswith("pytest.mark.parametrize("):
        return _names_long(decorator)
    return case != "" and any(
        case == "-".join(str(value.value) for value in call.args if isinstance(value, ast.Constant))
        for call in ast.walk(decorator)
        if isinstance(call, ast.Call) and any(_names_long(word.value) for word in call.keywords if word.arg == "marks")
    )


def _names_long(node: ast.expr) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == "long" for each in ast.walk(node))


def load_test(test: str) -> Callable[..., Any]:
    """The function that ``file.py::function`` names from the folder ``tests``, with its marks, loaded as pytest does.

    Raises `AssertionError` if the file has no such function.
    """
    file, _, name = test.partition("::")
    module = importlib.import_module("tests." + file.removesuffix(".py").replace("/", "."))
    function: Callable[..., Any] | None = getattr(module, name, None)
    assert function is not None, f"{test} does not exist"
    return function
