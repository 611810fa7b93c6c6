"""Tables that name tests: the named ones, loaded as pytest does."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Marks = Iterable[pytest.Mark | pytest.MarkDecorator]
CASE = type(pytest.param())


def load_test(test: str) -> Callable[..., Any]:
    """The function of ``file.py::function[case]``, named from the folder ``tests``, with its marks.

    Raises `AssertionError` if the file has no such function.
    """
    function: Callable[..., Any] | None = getattr(_module(test), test.partition("::")[2].partition("[")[0], None)
    assert function is not None, f"{test} does not exist"
    return function


def is_long(test: str) -> bool:
    """Whether ``file.py::function[case]`` is deselected by default, by a mark of its module, function or case.

    The case may be left out.
    """
    case = test.partition("[")[2].removesuffix("]")
    marks = [mark for each in (_module(test), load_test(test)) for mark in _marks_of(each)]
    cases = (each for mark in marks if mark.name == "parametrize" for each in mark.args[1] if isinstance(each, CASE))
    return _has_long(marks) or any(
        _has_long(each.marks) for each in cases if case in (each.id, "-".join(map(str, each.values)))
    )


def _module(test: str) -> Any:
    return importlib.import_module("tests." + test.partition("::")[0].removesuffix(".py").replace("/", "."))


def _marks_of(thing: object) -> list[Any]:
    marks = getattr(thing, "pytestmark", [])
    return marks if isinstance(marks, list) else [marks]


def _has_long(marks: Marks) -> bool:
    return any(mark.name == "long" for mark in marks)
