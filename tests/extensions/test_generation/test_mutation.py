"""Mutants of a file, and which of them tests find.

Costs: mutants are judged by tests that run in processes.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.measuring.suite import END_SECONDS, Suite
from codex_multi_role.extensions.test_generation.kill_matrix import Judge
from codex_multi_role.extensions.test_generation.mutated_file import MutatedFile
from codex_multi_role.extensions.test_generation.mutation import judge_mutants
from codex_multi_role.workspace.commands import Sandbox
from tests.support.checks import ESCAPES, FOO_CALC, FOO_TESTS, MakeContext, run_check, shadowed_package
from tests.support.long_run import by_default
from tests.support.suites_here import suites_here

pytest.importorskip("libcst", reason="the extra [mutation] is not installed")

__all__ = ["suites_here"]
here = pytest.mark.usefixtures("suites_here")
LEDGER = (Path(__file__).parent / "programs" / "ledger.py").read_text()
GRADE = "def grade(points):\n    if points < 50:\n        return 'failed'\n    return 'passed'\n"
EDGE = "from grade import grade\ndef test_edge(): assert grade(50) == 'passed'\n"
FAR = "def test_far(): assert grade(10) == 'failed'\n"


_judge = partial(run_check, judge_mutants)


def _of(make_context: MakeContext, source: str, tests: str, **options: object) -> dict[str, Any]:
    return _judge(make_context({"grade.py": source, "tests/test_grade.py": tests}, target="grade.py", **options))


@here
def test_it_says_which_test_kills_which_mutant(make_context: MakeContext) -> None:
    mutants = {mutant.id: mutant.diff for mutant in MutatedFile(GRADE).sample(100, seed=0)}
    changed = {each: diff.splitlines()[1].strip("+ ") for each, diff in mutants.items()}
    assert changed == {
        "2.1": "if points <= 50:",
        "2.2": "if points < 51:",
        "3.1": "return 'XXfailedXX'",
        "3.2": "return 'FAILED'",
        "4.1": "return 'XXpassedXX'",
        "4.2": "return 'PASSED'",
    }
    result = _of(make_context, GRADE, EDGE + FAR)
    assert (result["status"], result["mutants"], result["killed"], result["score_percent"]) == ("ok", 6, 6, 100.0)
    assert result["matrix"] == {
        "tests.test_grade::test_edge": ["2.1", "2.2", "4.1", "4.2"],
        "tests.test_grade::test_far": ["3.1", "3.2"],
    }


@here
def test_survivor_is_shown_as_the_line_it_changes(make_context: MakeContext) -> None:
    far = f"from grade import grade\n{FAR}"
    result = _of(make_context, GRADE, far, mutants=["2.1", "3.1"])
    assert (result["ids"], result["survived"], result["score_percent"]) == (["2.1", "3.1"], 1, 50.0)
    diff = "-    if points < 50:\n+    if points <= 50:"
    assert result["survivors"] == [{"id": "2.1", "line": 2, "operator": "swap_op", "diff": diff}]


def test_sample_is_the_same_for_the_same_seed() -> None:
    first, again, other = ([each.id for each in MutatedFile(LEDGER).sample(8, seed)] for seed in (0, 0, 1))
    assert first == again != other
    assert len({each.partition(".")[0] for each in first}) == 8  # no line twice while there are others


def test_every_mutant_is_python_and_changes_something() -> None:
    mutants = MutatedFile(LEDGER).sample(60, seed=3)
    assert len({mutant.text for mutant in mutants} | {LEDGER}) == len(mutants) + 1 > 50
    for mutant in mutants:
        compile(mutant.text, mutant.id, "exec")


def test_mutants_that_python_refuses_are_left_out() -> None:
    """A ``return`` in a class and the same key twice, each in a statement between others."""
    source = """
LIMIT = 1
def f(value):
    class Inner:
        for each in value:
            break
    match value:
        case {1: one, 2: two}:
            return one + two
LAST = 2
"""
    file = MutatedFile(source)
    mutants = file.sample(99, seed=0)
    for mutant in mutants:
        compile(mutant.text, mutant.id, "exec")
    refused = {place.id for place in file.places} - {mutant.id for mutant in mutants}
    assert refused == {"6.1", "8.1"}


def test_code_without_promised_behaviour_is_not_mutated() -> None:
    """Constants, decorators, annotations, docstrings and the text of exceptions are left unchanged."""
    source = """
LIMIT = 10
@register("x")
def f(a: "int" = 3) -> "int":
    "Words."
    if not isinstance(a, int) or len([1]) > 9:
        raise ValueError("words")
"""
    assert {place.line for place in MutatedFile(source).places} == {6}


@pytest.mark.real
def test_mutant_crashing_the_interpreter_is_unattributed(make_context: MakeContext) -> None:
    """It counts as killed, but not by any particular test."""
    source = "import os\ndef leave(n):\n    if n > 0:\n        os._exit(1)\n"
    tests = "from grade import leave\ndef test_stay(): leave(0)\n"
    result = _of(make_context, source, tests, mutants=["3.1"])
    assert (result["killed"], result["unattributed"], result["survivors"]) == (1, ["3.1"], [])


@pytest.mark.real
@pytest.mark.parametrize("importer", by_default(["tests/conftest.py"], ["tests/test_grade.py", "tests/conftest.py"]))
def test_mutant_breaking_an_import_is_killed_by_all_dependents(make_context: MakeContext, importer: str) -> None:
    """The dependents are all tests behind the import: those of the test module, or all tests for a conftest."""
    source = "def half(n):\n    return 4 // (n - 1)\nTWO = half(2)\n"
    files = {"grade.py": source, "tests/test_grade.py": "def test_a(): pass\ndef test_b(): pass\n"}
    files[importer] = f"import grade\n{files.get(importer, '')}"
    files["tests/test_other.py"] = "def test_c(): pass\n"
    mutants = {mutant.diff.splitlines()[1].strip("+ "): mutant.id for mutant in MutatedFile(source).sample(99, 0)}
    breaking = [mutants["return 4 // (n - 2)"]]
    result = _judge(make_context(files, target="grade.py", mutants=breaking))
    other = breaking if importer == "tests/conftest.py" else []
    assert result["matrix"] == {
        "tests.test_grade::test_a": breaking,
        "tests.test_grade::test_b": breaking,
        "tests.test_other::test_c": other,
    }


@pytest.mark.real
def test_mutant_leaves_nothing_for_the_next(make_context: MakeContext) -> None:
    tests = (
        "from pathlib import Path\nfrom grade import grade\ndef test_x():\n"
        "    assert not Path('mark').exists()\n    Path('mark').touch()\n    assert grade(0)\n"
    )
    assert _of(make_context, GRADE, tests, mutants=["2.1", "2.2"])["killed"] == 0


@here
def test_tests_that_fail_as_they_are_judge_nothing(make_context: MakeContext) -> None:
    result = _of(make_context, GRADE, EDGE + "def test_wrong(): assert grade(0) == 'passed'\n")
    assert (result["status"], result["mutants"]) == ("could not run", 0)
    assert result["reason"] == "a test fails without mutants: tests.test_grade::test_wrong"


@here
def test_tests_whose_outcome_changes_do_not_count(make_context: MakeContext, tmp_path: Path) -> None:
    turns = f"open({str(tmp_path / 'turns')!r}, 'a+')"
    flaky = f"def test_turns():\n    with {turns} as f:\n        f.write('x')\n        assert f.tell() % 2\n"
    result = _of(make_context, GRADE, EDGE + flaky, mutants=["2.2", "3.1"], runs=3)
    assert result["flaky"] == {"tests.test_grade::test_turns": ["passed", "failed", "passed"]}
    assert result["matrix"] == {"tests.test_grade::test_edge": ["2.2"]}


@pytest.mark.real
@pytest.mark.parametrize(
    ("source", "tests", "words"),
    [
        (GRADE, "x = 1\n", "pytest found no test"),
        (GRADE, "def test_x():\n    while True: pass\n", "the tests did not finish: no result after"),
        ("not one line of Python", EDGE, "grade.py: line 1: invalid syntax"),
    ],
)
def test_what_cannot_be_judged_says_why(make_context: MakeContext, source: str, tests: str, words: str) -> None:
    result = _of(make_context, source, tests, timeout_seconds=0.5 if "while" in tests else 60.0)
    assert result["status"] == "could not run"
    assert words in result["reason"]


@pytest.mark.usefixtures("suites_here")
def test_file_without_functions_has_no_mutants(make_context: MakeContext) -> None:
    assert _of(make_context, "LIMIT = 10\n", "def test_x(): pass\n")["status"] == "no mutants"


def test_without_the_extra_it_says_how_to_install_it(
    make_context: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "libcst", None)
    result = _of(make_context, GRADE, EDGE)
    assert result["status"] == "could not run"
    assert "pip install 'codex-multi-role[mutation]'" in result["reason"]


@here
def test_unknown_mutant_and_path_out_of_the_workspace_are_refused(make_context: MakeContext) -> None:
    with pytest.raises(UsageError, match=r"check mutation: mutants: no mutant '99\.1' of this file"):
        _of(make_context, GRADE, EDGE, mutants=["2.1", "99.1"])
    with pytest.raises(UsageError, match="check mutation: target: unsafe path"):
        _judge(make_context({"tests/test_a.py": ""}, target="../grade.py"))


@pytest.mark.real
def test_what_there_was_no_time_for_is_not_counted(make_context: MakeContext, tmp_path: Path) -> None:
    context = make_context({"grade.py": GRADE, "test_grade.py": EDGE})
    suite = Suite(context, ["test_grade.py"], tmp_path)
    matrix = Judge(suite, "grade.py", suite.run(60)).matrix(MutatedFile(GRADE).sample(9, 0), time.monotonic(), 2)
    assert (len(matrix.left), matrix.killers, matrix.killed) == (6, {}, 0)


def test_its_end_is_counted_into_its_time() -> None:
    assert judge_mutants.max_seconds({"timeout_seconds": 5}, 60) == 5 + END_SECONDS


@pytest.mark.long
def test_mutants_are_judged_inside_the_sandbox(make_context: MakeContext, codex_sandbox: Sandbox) -> None:
    """Only here mutants and the tests that notice them run in Codex's sandbox, which they try to leave."""
    source = "def one():\n    return 1\n"
    files = {"a.py": source, "tests/test_a.py": f"import a, pathlib\n{dedent(ESCAPES)}"}
    tests = files["tests/test_a.py"].replace(", HERE.parent", "") + "\ndef test_one(): assert a.one() == 1\n"
    context = make_context({**files, "tests/test_a.py": tests}, sandbox=codex_sandbox, target="a.py")
    result: dict[str, Any] = judge_mutants(context)
    assert (result["status"], result["killed"]) == ("ok", 1), result["reason"]
    assert {test: ids for test, ids in result["matrix"].items() if ids} == {"tests.test_a::test_one": ["2.1"]}
    assert {path.name for path in context.workspace.root.rglob("*")} == {"a.py", "tests", "test_a.py"}


@pytest.mark.real
def test_copy_is_judged_though_the_original_is_installed(make_context: MakeContext, tmp_path: Path) -> None:
    files = {"lib/foo/__init__.py": "", "lib/foo/calc.py": FOO_CALC, "tests/test_calc.py": FOO_TESTS}
    installed = {"PYTHONPATH": f"{tmp_path}/work/lib"}
    result = _judge(
        make_context(files, environment=installed, target="lib/foo/calc.py", tests="tests/test_calc.py", max_mutants=1)
    )
    assert (result["status"], result["score_percent"]) == ("ok", 100.0)


@pytest.mark.real
def test_original_gives_no_figure(make_context: MakeContext, tmp_path: Path) -> None:
    result = _judge(shadowed_package(make_context, f"{tmp_path}/work/lib"))
    assert f"from {tmp_path}/work/lib/foo/" in result["reason"]
    assert "not from the copy" in result["reason"]
    assert result["score_percent"] is None
