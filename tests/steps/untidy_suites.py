"""Test suites as people have them, and what a run must say of four changes to each; written before it was tried.

The changes: *right* keeps the code right, *wrong* breaks it, *none* adds a line to the README, and *deleted* breaks the
code and deletes all tests. What is special about a suite or about its changes is in `SUITES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from codex_multi_role.checks.session_report import EXIT_STATUS, OWN_FAILURE

KINDS = ("right", "wrong", "none", "deleted")
EXPECTED = """
                                    right        wrong        none         deleted
module that raises                  0 passed     1 failed     0 passed     1 gone*
optional dependency missing         0 passed*    1 failed     0 passed     1 gone
coverage threshold missed           0 passed     1 failed     0 passed*    1 gone
threshold beside old failure        0 passed     1 failed*    0 passed     1 failed
hook beside old failure             0 passed     1 failed     0 passed     1 gone
own command beside old failure      0 passed     0 passed*    0 passed     1 gone
session hook                        0 passed     1 failed     0 passed     1 gone
id with uuid                        0 passed*    1 failed     0 passed     1 gone
id with version                     0 passed     1 failed     0 passed     1 gone
id in order of a set                0 passed     1 failed     0 passed     1 gone
test moved                          0 passed*    1 failed     0 passed     1 gone
test file renamed                   0 passed     1 failed     0 passed     1 gone
test renamed                        0 passed     1 failed     0 passed     1 gone
test parametrised                   0 passed     1 gone*      0 passed     1 gone
test deleted                        0 passed     1 gone       0 passed     1 gone
litter tracked                      0 passed     1 failed     0 passed     1 gone
litter untracked                    0 passed     1 failed     0 passed     1 gone
litter outside                      0 passed     1 failed     0 passed     1 gone
flaky once in ten                   0 passed     1 failed     0 passed     1 gone
flaky twice in a row                0 passed*    1 failed     0 passed     1 gone
flaky every second time             0 passed     1 failed*    0 passed     1 gone
time limit                          0 passed     1 failed     1 timed_out  1 gone*
stops at first failure              0 passed     1 failed     0 passed     1 gone
parallel                            0 passed     1 failed     0 passed     1 gone
random order                        0 passed     1 failed     0 passed     1 gone
last failed                         0 passed     1 failed     0 passed*    1 gone
doctests                            0 passed     1 failed     0 passed     1 gone
unittest                            0 passed     1 failed     0 passed     1 gone
ignores everything                  0 no_tests   1 failed     0 no_tests   1 gone
no baseline                         0 passed     1 failed     0 passed     1 gone*
role edits pytest.ini               0 passed     1 gone       0 passed     1 gone
role edits conftest.py              0 passed     1 gone       0 passed     1 gone
role adds sitecustomize             0 passed     1 failed     0 passed     1 gone
role marks xfail                    0 passed     1 failed*    0 passed     1 gone
role marks skip                     0 passed     1 failed     0 passed     1 gone
"""
"""The exit code and the verdict. *Failed*: a test, a module or a session fails that did not; *gone*: what passed before
no longer exists, and does not stand elsewhere; *no tests*: none ran before, and all test files are still there.
The cells with an asterisk are tried in the gate."""

CODE, TEST, OLD, NEW = "code_of.py", "test_one.py", "test_old.py", "test_new.py"
GOOD = "def one():\n    return 1\n"
RIGHT, WRONG = "def one():\n    return 1 + 0\n", "def one():\n    return 2\n"
ONE = "from code_of import one\n\n\ndef test_one():\n    assert one() == 1\n"
OTHER = "\n\ndef test_other():\n    assert True\n"
RED = "def test_old():\n    assert False\n"
ID = "test_one.py::test_one"
EACH = """\
{imports}

import pytest
from code_of import one


@pytest.mark.parametrize("given", {given}{ids})
def test_one(given):
    assert one() == 1
"""
LITTER = """

def test_litter():
{lines}
"""
COUNTS = """

def test_flaky():
    counter = Path("counter.txt")
    number = int(counter.read_text()) + 1 if counter.exists() else 1
    counter.write_text(str(number))
    assert {condition}
"""
Files = Mapping[str, str | None]
"""Texts by path; None: no such file."""


@dataclass(frozen=True)
class Suite:
    """``files`` beside `CODE` and `TEST`, unless they replace them; ``right``, ``wrong``: the changes.

    ``given``: options of the run; ``right_given``: further ones with the right change. ``told``: ids without their
    parameters that the last test result has, by the kind of change and the field.
    ``words``: in what a person reads at the end of a run, by the kind of change.
    """

    files: Files = field(default_factory=dict)
    right: Files = field(default_factory=dict)
    wrong: Files = field(default_factory=dict)
    deleted: Files = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    right_given: Mapping[str, Any] = field(default_factory=dict)
    told: Mapping[str, Mapping[str, list[str]]] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    def before(self) -> Files:
        return {CODE: GOOD, TEST: ONE, "README.md": "Read me.\n", **self.files}

    def change(self, kind: str) -> Files:
        """What the role writes and deletes."""
        tests = {path: None for path in self.before() if path.startswith("test_")}
        changes: Mapping[str, Files] = {
            "right": {CODE: RIGHT, **self.right},
            "wrong": {CODE: WRONG, **self.wrong},
            "none": {"README.md": "Read me.\nTwice.\n"},
            "deleted": {CODE: WRONG, **tests, **self.deleted},
        }
        return changes[kind]

    def options(self, kind: str) -> dict[str, Any]:
        return {**self.given, **(self.right_given if kind == "right" else {})}


def _each(given: str, imports: str = "", ids: str = "", **more: Any) -> Suite:
    """Cases of one function, whose ids change by themselves."""
    return Suite({TEST: EACH.format(given=given, imports=imports, ids=ids and f", ids={ids}")}, **more)


def _litters(*lines: str, imports: str = "from pathlib import Path\n", **files: str) -> Suite:
    test = LITTER.format(lines="\n".join(f"    {line}" for line in lines))
    return Suite({TEST: f"{imports}{ONE}{test}", **files})


def _flaky(condition: str, told: Mapping[str, Mapping[str, list[str]]]) -> Suite:
    test = f"from pathlib import Path\n\n{ONE}{COUNTS.format(condition=condition)}"
    return Suite({TEST: test, ".gitignore": "counter.txt\n"}, told=told)


FLAKY = [f"{TEST}::test_flaky"]
SEEN_AS_FLAKY: Mapping[str, Mapping[str, list[str]]] = {
    **{kind: {"flaky_tests": FLAKY, "new_failures_tests": []} for kind in ("right", "none")},
    "wrong": {"flaky_tests": FLAKY, "new_failures_tests": [ID]},
    "deleted": {"removed_tests": [*FLAKY, ID]},
}
FAILED = {"wrong": {"new_failures_tests": [ID]}}
GONE = {"deleted": {"removed_tests": [ID]}}
BROKEN = {"right": {"still_failing_tests": ["test_broken.py"]}, "none": {"still_failing_tests": ["test_broken.py"]}}
HOOK = """\
import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    import code_of

    if code_of.one.__doc__ is None:
        session.exitstatus = 1
"""
DOCUMENTED = 'def one():\n    """One."""\n    return 1 {}\n'
EXAMPLE = 'def one():\n    """One.\n\n    >>> one()\n    1\n    """\n    return {}\n'
UNITTEST = """\
import unittest

from code_of import one


class Ones(unittest.TestCase):
    def test_one(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertEqual(one(), 1)

    def test_other(self):
        self.assertTrue(one)
"""
PARAMETRISED = """\
import pytest
from code_of import one


@pytest.mark.parametrize("number", [1, 2])
def test_one(number):
    {}
"""
SHUFFLES = """\
import random


def pytest_collection_modifyitems(items):
    random.shuffle(items)
"""
MARKED = "import pytest\n{}".format(ONE.replace("def test_one", "@pytest.mark.{}\ndef test_one"))
MARKED_OLD = "import pytest\n\n\n@pytest.mark.{}\ndef test_old():\n    assert False\n"
COVERED = "-p pytest_cov.plugin --cov=. --cov-fail-under=90"
UNCOVERED = "\n\ndef two():\n    one()\n    one()\n    return 2\n"
OLD_ID = f"{OLD}::test_old"
SUITES: Mapping[str, Suite] = {
    "module that raises": Suite({"test_broken.py": "raise RuntimeError\n"}, told={**BROKEN, **FAILED, **GONE}),
    "optional dependency missing": Suite(
        {"test_broken.py": f"import nothing_like_it\n\n{RED}"},
        told={**BROKEN, "none": {"lacks": ["test_broken.py"], **BROKEN["none"]}, **FAILED, **GONE},
    ),
    "coverage threshold missed": Suite(
        {"code_of_more.py": "def two():\n    return 2\n\n\ndef three():\n    return 3\n"},
        given={"pytest_cmd": "pytest -p pytest_cov.plugin --cov=. --cov-fail-under=99"},
        told={**FAILED, **GONE},
    ),
    "threshold beside old failure": Suite(  # pytest counts one failure more than tests failed
        {OLD: RED, ".gitignore": ".coverage\n"},
        wrong={CODE: f"{RIGHT}{UNCOVERED}"},
        given={"pytest_cmd": f"pytest {COVERED}"},
        told={"wrong": {"new_failures_tests": [OWN_FAILURE]}, "none": {"still_failing_tests": [OLD_ID]}, **GONE},
    ),
    "hook beside old failure": Suite(  # the hook sets the exit status that pytest has set
        {OLD: RED, CODE: DOCUMENTED.format(""), "conftest.py": HOOK},
        right={CODE: DOCUMENTED.format("+ 0")},
        wrong={CODE: RIGHT},
        deleted={CODE: DOCUMENTED.format("+ 1")},
        told={"wrong": {"new_failures_tests": [EXIT_STATUS]}, "none": {"still_failing_tests": [OLD_ID]}, **GONE},
    ),
    "own command beside old failure": Suite(  # nothing but its exit code and its JUnit report
        {OLD: RED, ".gitignore": ".coverage\n"},
        wrong={CODE: f"{RIGHT}{UNCOVERED}"},
        given={"pytest_cmd": f"sh -c 'python -m pytest {COVERED}'"},
        told={"wrong": {"new_failures_tests": []}, "none": {"still_failing_tests": [OLD_ID]}, **GONE},
        words=dict.fromkeys(("right", "wrong", "none"), "not seen: failures of the session itself"),
    ),
    "session hook": Suite(
        {CODE: DOCUMENTED.format(""), "conftest.py": HOOK},
        right={CODE: DOCUMENTED.format("+ 0")},
        wrong={CODE: RIGHT},
        deleted={CODE: DOCUMENTED.format("+ 1")},
        told=GONE,
    ),
    "id with uuid": _each("[uuid4(), uuid4()]", "from uuid import uuid4", "str", told={**FAILED, **GONE}),
    "id with version": Suite(
        {
            CODE: f'VERSION = "1.0"\n\n\n{GOOD}',
            TEST: EACH.format(imports="from code_of import VERSION", given="[VERSION]", ids=""),
        },
        right={CODE: f'VERSION = "1.1"\n\n\n{RIGHT}'},
        wrong={CODE: f'VERSION = "1.1"\n\n\n{WRONG}'},
        told={**FAILED, **GONE},
    ),
    "id in order of a set": _each(
        "[f'{number}-{word}' for number, word in enumerate({*'abcdefgh'})]", told={**FAILED, **GONE}
    ),
    "test moved": Suite(
        {TEST: f"{ONE}{OTHER}"},
        right={TEST: OTHER, NEW: ONE},
        wrong={TEST: OTHER, NEW: ONE},
        told={
            "right": {"moved_tests": [ID], "removed_tests": []},
            "wrong": {"new_failures_tests": [f"{NEW}::test_one"]},
            "deleted": {"removed_tests": [ID, f"{TEST}::test_other"]},
        },
    ),
    "test file renamed": Suite(
        right={TEST: None, NEW: ONE},
        wrong={TEST: None, NEW: ONE},
        told={
            "right": {"moved_tests": [ID], "removed_tests": []},
            "wrong": {"new_failures_tests": [f"{NEW}::test_one"]},
            **GONE,
        },
    ),
    "test renamed": Suite(
        right={TEST: ONE.replace("test_one", "test_uno")},
        wrong={TEST: ONE.replace("test_one", "test_uno")},
        told={
            "right": {"moved_tests": [ID], "removed_tests": []},
            "wrong": {"new_failures_tests": [f"{TEST}::test_uno"]},
            **GONE,
        },
    ),
    "test parametrised": Suite(
        right={TEST: PARAMETRISED.format("assert one() == 1")},
        wrong={TEST: PARAMETRISED.format("one()")},
        told={"right": {"moved_tests": [ID], "removed_tests": []}, "wrong": {"removed_tests": [ID]}, **GONE},
    ),
    "test deleted": Suite(
        {TEST: f"{ONE}{OTHER}"},
        right={TEST: OTHER},
        wrong={TEST: OTHER},
        right_given={"allow_removed_tests": (ID,)},
        told={"right": {"removed_tests": [ID]}, "wrong": {"removed_tests": [ID], "new_failures_tests": []}},
        words={"wrong": "1 test is gone"},
    ),
    "litter tracked": _litters(
        "with open('record.txt', 'a') as file:", "    file.write('again')", **{"record.txt": "as it was\n"}
    ),
    "litter untracked": _litters(
        "Path('made').mkdir(exist_ok=True)",
        "Path(f'made/{uuid4()}.txt').write_text('new')",
        imports="from pathlib import Path\nfrom uuid import uuid4\n",
    ),
    "litter outside": _litters(
        "Path(mkdtemp(), 'made.txt').write_text('new')",
        "Path(f'ignored-{uuid4()}.txt').write_text('new')",
        imports="from pathlib import Path\nfrom tempfile import mkdtemp\nfrom uuid import uuid4\n",
        **{".gitignore": "ignored-*\n"},
    ),
    "flaky once in ten": _flaky(
        "number % 10 != 2",  # not in the first run, and not in the second look
        SEEN_AS_FLAKY,
    ),
    "flaky twice in a row": _flaky(
        "number % 10 not in (2, 3)",  # and not in the second look
        SEEN_AS_FLAKY,
    ),
    "flaky every second time": _flaky(
        "number % 2 == 0",  # fails before, passes after the change, and fails in a second look
        {"wrong": {"flaky_tests": FLAKY, "new_failures_tests": [ID]}, **GONE},
    ),
    "time limit": Suite(
        {"test_slow.py": "import time\n\n\ndef test_slow():\n    time.sleep(60)\n"},
        right={"test_slow.py": "def test_slow():\n    pass\n"},
        wrong={"test_slow.py": "def test_slow():\n    pass\n"},
        given={"test_seconds": 8},
        told={"wrong": {"new_failures_tests": [ID]}, "deleted": {"removed_tests": [ID, "test_slow.py::test_slow"]}},
        words={"deleted": "timed out"},
    ),
    "stops at first failure": Suite(
        {"test_middle.py": RED, TEST: OTHER, "test_first.py": ONE},
        right={"test_middle.py": "def test_old():\n    pass\n"},
        given={"pytest_cmd": "pytest -x"},
        told={
            "right": {"fixed_tests": ["test_middle.py::test_old"]},
            "wrong": {"new_failures_tests": ["test_first.py::test_one"], "removed_tests": []},
            "deleted": {"removed_tests": ["test_first.py::test_one"]},
        },
    ),
    "parallel": Suite(
        {TEST: f"{ONE}{OTHER}", "test_more.py": OTHER},
        given={"pytest_cmd": "pytest -p xdist.plugin -n auto"},
        told={**FAILED, "deleted": {"removed_tests": ["test_more.py::test_other", ID, f"{TEST}::test_other"]}},
    ),
    "random order": Suite({TEST: f"{ONE}{OTHER}", "conftest.py": SHUFFLES}, told=FAILED),
    "last failed": Suite(
        {OLD: f"from code_of import one\n\n\n{RED}", ".gitignore": ".pytest_cache\n"},
        wrong={CODE: "def renamed():\n    return 1\n"},
        given={"pytest_cmd": "pytest --lf"},
        told={
            "right": {"new_failures_tests": [], "removed_tests": []},
            "none": {"new_failures_tests": [], "removed_tests": []},
            "wrong": {"new_failures_tests": [OLD, TEST]},  # pytest skips no file before one that it could import
            **GONE,
        },
    ),
    "doctests": Suite(
        {CODE: EXAMPLE.format("1"), TEST: None},
        right={CODE: EXAMPLE.format("1 + 0")},
        wrong={CODE: EXAMPLE.format("2")},
        given={"pytest_cmd": "pytest --doctest-modules"},
        told={
            "wrong": {"new_failures_tests": ["code_of.py::code_of.one"]},
            "deleted": {"removed_tests": ["code_of.py::code_of.one"]},
        },
    ),
    "unittest": Suite(
        {TEST: UNITTEST},
        told={
            "wrong": {"new_failures_tests": [f"{TEST}::Ones::test_one"]},
            "deleted": {"removed_tests": [f"{TEST}::Ones::test_one", f"{TEST}::Ones::test_other"]},
        },
    ),
    "ignores everything": Suite(
        {"conftest.py": 'collect_ignore_glob = ["*"]\n'},
        wrong={"conftest.py": None},
        told={**FAILED, **GONE},
    ),
    "no baseline": Suite(given={"baseline": False}, told={**FAILED, **GONE}),
    "role edits pytest.ini": Suite(
        {"pytest.ini": "[pytest]\n"},
        right={"pytest.ini": "[pytest]\nmarkers = own: of this project\n"},
        wrong={"pytest.ini": "[pytest]\naddopts = --ignore=test_one.py\n"},
        told={"wrong": {"removed_tests": [ID]}, **GONE},
    ),
    "role edits conftest.py": Suite(
        {"conftest.py": "", TEST: f"{ONE}{OTHER}"},
        right={"conftest.py": "import pytest\n\n\n@pytest.fixture\ndef own():\n    return 1\n"},
        wrong={"conftest.py": "def pytest_collection_modifyitems(items):\n    items[:] = items[1:]\n"},
        told={"wrong": {"removed_tests": [ID]}},
    ),
    "role adds sitecustomize": Suite(
        right={"sitecustomize.py": "import os\n"},
        wrong={"sitecustomize.py": "import os\n\nos._exit(0)\n"},
        told={**FAILED, **GONE},
    ),
    "role marks xfail": Suite(
        {OLD: RED},
        right={OLD: MARKED_OLD.format("xfail")},
        wrong={TEST: MARKED.format("xfail")},
        told={"right": {"removed_tests": []}, **FAILED, **GONE},
    ),
    "role marks skip": Suite(
        {OLD: RED},
        right={OLD: MARKED_OLD.format("skip")},
        wrong={TEST: MARKED.format("skip")},
        told={"right": {"removed_tests": []}, **FAILED, **GONE},
    ),
}


@dataclass(frozen=True)
class Cell:
    """``suite`` after the change ``kind``; ``in_gate``: whether it is tried there."""

    name: str
    kind: str
    exit_code: int
    verdict: str
    in_gate: bool

    def __str__(self) -> str:
        return f"{self.name} {self.kind}".replace(" ", "-")

    @property
    def suite(self) -> Suite:
        return SUITES[self.name]

    @property
    def changed(self) -> list[str]:
        """What the run changed: what its role did, without what the tests left."""
        return sorted(
            path for path, text in self.suite.change(self.kind).items() if self.suite.before().get(path) != text
        )


def cells() -> Iterator[Cell]:
    for line in EXPECTED.strip("\n").splitlines()[1:]:
        name, words = line[:36].strip(), line[36:].split()
        for kind, code, verdict in zip(KINDS, words[::2], words[1::2], strict=True):
            yield Cell(name, kind, int(code), verdict.strip("*").replace("_", " "), verdict.endswith("*"))
