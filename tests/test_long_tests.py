"""A long test names the shorter ones that protect its promise in the gate: ``pytest.mark.long("file.py::test", …)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tables import TESTS, functions_of, is_long

MODULE = """
import pytest

@pytest.mark.long("a.py::test_a")
@pytest.mark.parametrize("n", [1])
def test_whole(): ...

@pytest.mark.parametrize(("n", "word"), [(1, "a"), pytest.param(2, "b", marks=pytest.mark.long("a.py::test_b"))])
def test_some(): ...
"""


def named_tests(file: Path) -> Iterator[str]:
    """What the long tests of ``file`` name."""
    text = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "mark.long(" in text else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.long":
            yield from map(ast.literal_eval, node.args)


@pytest.mark.extensions  # some name tests of them
def test_named_tests_exist_and_are_not_long() -> None:
    named = {test: file.name for file in TESTS.rglob("test_*.py") for test in named_tests(file)}
    assert named
    for test, place in named.items():
        file, _, name = test.partition("::")
        assert name.partition("[")[0] in functions_of(file), f"{place}: {test} does not exist"
        assert not is_long(test), f"{place}: {test} is long as well"


def test_long_mark_of_module_function_or_case_is_found(tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(MODULE)
    marks = "[pytest.mark.long, pytest.mark.extensions]"
    (other := tmp_path / "test_other.py").write_text(f"{MODULE}\npytestmark = {marks}")
    assert set(named_tests(file)) == {"a.py::test_a", "a.py::test_b"}
    long = {
        name: is_long(f"{file}::{name}") for name in ("test_whole", "test_some", "test_some[1-a]", "test_some[2-b]")
    }
    assert long == {"test_whole": True, "test_some": False, "test_some[1-a]": False, "test_some[2-b]": True}
    assert is_long(f"{other}::test_some[1-a]")
