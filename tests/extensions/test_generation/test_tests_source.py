from __future__ import annotations

import ast
from typing import Any

import pytest

from codex_multi_role.extensions.test_generation.expectations import asserting
from codex_multi_role.extensions.test_generation.python_files import find_python_files
from codex_multi_role.extensions.test_generation.removed_tests import without
from codex_multi_role.extensions.test_generation.tests_source import functions_in
from tests.extensions.test_generation.programs import candidates
from tests.support.checks import FOO_CALC, MakeContext
from tests.support.generation import item, judged

SOURCE = '''\
import pytest


@pytest.mark.parametrize("n", [1, 2])
def test_p1_twice(n):
    """text with def test_p2_fake(): inside"""
    assert double(n) == 2 * n


class TestShape:
    def test_p2_area(self):
        assert area(3) == 9

    async def test_p3_later(self):
        with pytest.raises(ValueError):
            await later()  # kept


class TestOne:
    def test_p10_only(self):
        assert area(10) == pytest.approx(100.0)
'''
PROGRAM = "def double(n): ...\ndef area(n): ...\ndef later(): ...\ndef other(n): ...\n"
CALLS = {"P1": ("double", "1"), "P2": ("area", "3"), "P3": ("later", ""), "P4": ("other", "3"), "P10": ("area", "10")}


def test_functions_go_by_the_names_that_pytest_gives_them() -> None:
    names = [each.name for each in functions_in(SOURCE)]
    assert names == ["test_p1_twice", "TestShape::test_p2_area", "TestShape::test_p3_later", "TestOne::test_p10_only"]
    assert functions_in("def test_x(:") == []


@pytest.mark.parametrize(
    ("name", "expected", "found"),
    [
        ("P2", "9", True),
        ("P2", 9, True),
        ("P2", "3", False),  # that is the input
        ("P3", "ValueError", True),
        ("P3", "TypeError", False),
        ("P10", "100.0", True),
        ("P1", "2", True),
        ("P4", "9", False),  # it has no test
        ("P1", "True", False),  # not the same as 1
    ],
)
def test_whether_a_test_expects_what_the_plan_says(name: str, expected: object, found: bool) -> None:
    own = item(name, expected, *CALLS[name])
    assert bool(asserting(SOURCE, judged(own, PROGRAM, "one"))) is found


def test_taking_out_leaves_all_else_as_written() -> None:
    left = without(SOURCE, ["test_p1_twice", "TestShape::test_p2_area", "TestOne::test_p10_only"])
    assert [each.name for each in functions_in(left)] == ["TestShape::test_p3_later"]
    assert "await later()  # kept\n" in left
    assert "class TestOne" not in left
    assert "parametrize" not in left
    ast.parse(left)


def test_function_of_one_line_goes_alone() -> None:
    left = without("x = 1; y = 2\ndef test_a(): pass\ndef test_b(): pass\n", ["test_a"])
    assert left == "x = 1; y = 2\ndef test_b(): pass\n"


def test_line_breaks_unknown_to_python_do_not_shift_the_cut() -> None:
    """`str.splitlines` splits at U+2028 and form feed, but Python source does not."""
    kept = "x = 'a\u2028b'  # \x0c\n"
    assert without(f"{kept}def test_a():\n    pass\n\r\ny = 1\n", ["test_a"]) == f"{kept}\r\ny = 1\n"


def test_only_named_tests_are_removed_and_rest_is_unchanged() -> None:
    """A class that is left without tests is removed as well."""
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

class TestZ:
    class TestIn:
        def test_d(self): pass
"""
    expected = """\
import pytest  # why


class TestX:  # a class
    LIMIT = 3

    # this one stays
    def test_b(self): assert  self.LIMIT==3
"""
    assert without(source, {"test_a", "TestX::test_a", "TestY::test_c", "TestZ::TestIn::test_d", "no_such"}) == expected


@pytest.mark.parametrize("source", [candidates.HAPPY, candidates.STRICT, candidates.CARELESS])
def test_without_any_it_is_the_same_and_without_all_it_is_python(source: str) -> None:
    assert without(source, []) == source
    functions = [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    ast.parse(without(source, functions))


ROWS = """@pytest.mark.parametrize("given, expected", [
    (1, "a"),  # first
    (-2.5, None),
    ([3], ValueError),
    pytest.param(4, b"x", id="four"),
    ("é", True),
])
def test_it(given, expected):
    pass


class TestMany:
    @mark.parametrize("given", ["a", "b"])
    def test_it(self, given): pass

    @mark.parametrize("given", [("a"), "b"])
    def test_cut(self, given): pass
"""


@pytest.mark.parametrize(
    ("names", "gone"),
    [
        (["test_it[1-a]"], ['    (1, "a"),  # first\n']),
        (["test_it[-2.5-None]", "test_it[given2-ValueError]"], ["    (-2.5, None),\n", "    ([3], ValueError),\n"]),
        (["test_it[four]"], ['    pytest.param(4, b"x", id="four"),\n']),
        (["test_it[\\xe9-True]"], [',\n    ("é", True)']),
        (
            ["test_it[1-a]", "test_it[four]", "test_it[\\xe9-True]"],
            ['    (1, "a"),  # first\n', ',\n    pytest.param(4, b"x", id="four")', ',\n    ("é", True)'],
        ),
        (["TestMany::test_it[a]"], ['"a", ']),
    ],
)
def test_only_the_rows_of_failing_parameters_go(names: list[str], gone: list[str]) -> None:
    left = ROWS
    for text in gone:
        assert left.count(text) == 1
        left = left.replace(text, "")
    found = without(ROWS, names)
    assert found == left
    ast.parse(found)


@pytest.mark.parametrize(
    "names",
    [
        ["test_it"],
        ["test_it[unknown]"],
        ["test_it[1-a]", "test_it[unknown]"],
        ["test_it[1-a]", "test_it"],
        ["test_it[1-a]", "test_it[-2.5-None]", "test_it[given2-ValueError]", "test_it[four]", "test_it[\\xe9-True]"],
    ],
)
def test_rows_that_cannot_be_told_apart_cost_their_test(names: list[str]) -> None:
    assert "def test_it(given, expected)" not in without(ROWS, names)
    assert "def test_cut" not in without(ROWS, ["TestMany::test_cut[b]"])


def _files(result: dict[str, Any]) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = result["files"]
    return files


def test_module_is_named_as_tests_import_it(make_context: MakeContext) -> None:
    files = {"packages/foo/src/foo/__init__.py": "", "packages/foo/src/foo/calc.py": FOO_CALC}
    found = _files(find_python_files(make_context(files, target="packages/foo/src/foo")))
    assert [each["module"] for each in found] == ["foo.calc"]


def test_names_that_are_taken_are_left_alone(make_context: MakeContext) -> None:
    files = {"sign.py": FOO_CALC, "tests/test_sign.py": "mine = 1\n", "other/test_sign_2.py": "mine = 2\n"}
    found = _files(find_python_files(make_context(files, target=".")))
    assert [each["tests"] for each in found] == ["tests/test_sign_3.py"]


def test_environment_files_are_not_project_files(make_context: MakeContext) -> None:
    broken = {"venv/pyvenv.cfg": "", "venv/lib/x.py": "def", "node_modules/y.py": "def", "a.py": "x = 1\n"}
    found = _files(find_python_files(make_context(broken, target=".")))
    assert [each["file"] for each in found] == ["a.py"]
