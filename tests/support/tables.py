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
def functions_of(*files: str) -> set[str]:
    """The names of the functions in the ``files``, which are named from the folder ``tests``."""
    trees = (ast.parse((TESTS / file).read_text(encoding="utf-8")) for file in files)
    return {node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


def load_test(test: str) -> Callable[..., Any]:
    """The function that ``file.py::function`` names from the folder ``tests``, with its marks, loaded as pytest does.

    Raises `AssertionError` if the file has no such function.
    """
    file, _, name = test.partition("::")
    module = importlib.import_module("tests." + file.removesuffix(".py").replace("/", "."))
    function: Callable[..., Any] | None = getattr(module, name, None)
    assert function is not None, f"{test} does not exist"
    return function
