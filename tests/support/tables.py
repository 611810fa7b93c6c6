"""Tables that name tests: whether each test exists, and the edges of diagrams that a test is to walk."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
Edge = tuple[str, ...]


def edges_of(system: str) -> set[Edge]:
    """The edges of the diagrams that a system was described by, one per line of ``tests/systems/edges/<system>.txt``.

    The first line names the columns; an edge with fewer of them ends with empty texts.
    """
    text = (TESTS / f"systems/edges/{system}.txt").read_text(encoding="utf-8")
    heading, *lines = text.splitlines()
    columns = heading.count("|") + 1
    found = [tuple(part.strip() for part in line.split("|")) for line in lines]
    return {(*edge, *[""] * (columns - len(edge))) for edge in found}


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
