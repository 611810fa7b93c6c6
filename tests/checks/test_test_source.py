from __future__ import annotations

import ast

import pytest

from codex_multi_role.checks.test_source import without_tests
from tests.checks.programs import candidates

pytest.importorskip("libcst", reason="the extra [mutation] is not installed")


def test_only_the_named_tests_go_and_all_else_stays_as_it_was_written() -> None:
    source = """\
import pytest  # why

@pytest.mark.slow
def test_a():
    pass


class TestX:  # a class
    LIMIT = 3

    def test_a(self):
        def test_b(): ...

    # this one stays
    def test_b(self): assert  self.LIMIT==3

class TestY:
    def test_c(self): pass
"""
    expected = """\
import pytest  # why


class TestX:  # a class
    LIMIT = 3

    # this one stays
    def test_b(self): assert  self.LIMIT==3
"""
    assert without_tests(source, {"test_a", "TestX.test_a", "TestY.test_c", "no_such"}) == expected


@pytest.mark.parametrize("source", [candidates.HAPPY, candidates.STRICT, candidates.CARELESS])
def test_without_any_it_is_the_same_and_without_all_it_is_python(source: str) -> None:
    assert without_tests(source, []) == source
    functions = [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    ast.parse(without_tests(source, functions))
