"""The counts of the check ``tests`` are those of pytest's own last line.

Costs: each project is tried by a pytest of its own, one of them in two processes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from codex_multi_role.checks.tests import run_tests
from tests.support.checks import MakeContext

pytestmark = pytest.mark.real

MARKS = """
    import pytest, warnings

    def test_good(): warnings.warn("of no interest")
    def test_bad(): assert False
    def test_off(): pytest.skip()

    @pytest.mark.xfail
    def test_expected(): assert False

    @pytest.mark.xfail
    def test_better(): pass

    @pytest.mark.xfail(strict=True)
    def test_strict(): pass
"""
FIXTURES = """
    import pytest

    @pytest.fixture
    def breaks(): raise OSError

    @pytest.fixture
    def breaks_later():
        yield
        raise OSError

    def test_never(breaks): pass
    def test_passed_with_error(breaks_later): pass
    def test_failed_with_error(breaks_later): assert False
    def test_good(): pass
"""
PARTS = """
    def test_parts(subtests):
        for number in (1, 1, 2):
            with subtests.test(number=number):
                assert number == 1

    def test_good(subtests):
        with subtests.test("one"): pass
        with subtests.test("two"): pass
"""
UNITTEST = """
    import unittest

    class Ones(unittest.TestCase):
        def test_parts(self):
            for number in (1, 1, 2, 3):
                with self.subTest(number=number):
                    self.assertEqual(number, 1)

        def test_skips_one(self):
            for number in (1, 2):
                with self.subTest(number=number):
                    if number == 2:
                        self.skipTest("not this one")

        @unittest.expectedFailure
        def test_expected(self): self.fail()

        @unittest.skip("not now")
        def test_off(self): pass

        def test_good(self): pass

    class Broken(unittest.TestCase):
        @classmethod
        def setUpClass(cls): raise OSError
        def test_one(self): pass
        def test_two(self): pass
"""
DOCTESTS = """
    def one():
        '''
        >>> one()
        1
        '''
        return 1

    def two():
        '''
        >>> two()
        1
        '''
        return 2
"""
VERBOSE = "-o verbosity_subtests=1"
Projects = Mapping[str, tuple[Mapping[str, str], str]]
EVERY = {
    **{"test_a.py": MARKS, "test_b.py": FIXTURES, "test_c.py": UNITTEST, "test_d.py": PARTS, "a.py": DOCTESTS},
    "test_e.py": "import nothing_like_it",
    "test_f.py": "import pytest; pytest.skip(allow_module_level=True)",
}
PROJECTS: Projects = {
    "every kind": (EVERY, "--doctest-modules"),
    "every kind, with subtests counted": (EVERY, VERBOSE),
    "every kind, in processes": (EVERY, f"-p xdist.plugin -n 2 {VERBOSE}"),
    "unittest only": ({"test_a.py": UNITTEST}, ""),
    "modules that cannot be imported": ({"test_a.py": EVERY["test_e.py"], "test_b.py": MARKS}, ""),
    "deselected, quiet": ({"test_a.py": MARKS}, "-q -k good"),
    "first failure only": ({"test_a.py": MARKS}, "-x"),
    "nothing": ({"a.py": ""}, ""),
}
NOT_TESTS = ("warning", "warnings", "deselected")
FIELDS = {"error": "errors"}


def last_line(output: str) -> dict[str, int]:
    line = output.strip().splitlines()[-1]
    found = re.findall(r"(\d+) ([a-z]+(?: [a-z]+)?)(?=,| in )", line)
    return {FIELDS.get(name, name): int(number) for number, name in found if name not in NOT_TESTS}


def counts(result: Mapping[str, Any]) -> dict[str, int]:
    named = {name: result[name] for name in ("passed", "failed", "errors", "skipped") if result[name]}
    return {**named, **result["other_counts"]}


@pytest.mark.parametrize("name", PROJECTS)
def test_counts_are_those_of_pytests_last_line(make_context: MakeContext, name: str) -> None:
    files, options = PROJECTS[name]
    result = run_tests(make_context(files, pytest_cmd=f"{sys.executable} -m pytest {options}"))
    assert counts(result) == last_line(str(result["output_tail"])), result["output_tail"]
    assert bool(counts(result)) == (name != "nothing")


@pytest.mark.extensions
@pytest.mark.parametrize("name", ["unittest only", "modules that cannot be imported"])
def test_coverage_counts_them_as_well(make_context: MakeContext, name: str) -> None:
    from codex_multi_role.extensions.measuring.coverage import measure_coverage

    files = {f"tests/{path}": text for path, text in PROJECTS[name][0].items()}
    result = measure_coverage(make_context({"a.py": "", **files}, target="a.py"))
    assert counts(result) == last_line(str(result["output_tail"])), result["output_tail"]


def test_counts_without_the_last_line_are_of_the_report(make_context: MakeContext) -> None:
    result = run_tests(make_context({"test_a.py": MARKS}, pytest_cmd=f"{sys.executable} -m pytest -p no:terminal"))
    assert counts(result) == {"passed": 2, "failed": 2, "skipped": 2}
