from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.extensions.measuring.coverage import measure_coverage
from codex_multi_role.extensions.test_generation.merge_tests import merge_tests
from codex_multi_role.extensions.test_generation.mutation import judge_mutants
from tests.extensions.test_generation.programs.candidates import CARELESS, HAPPY, PAIRS
from tests.support.checks import MakeContext, run_check
from tests.support.generation import item, judged
from tests.support.suites_here import suites_here

pytest.importorskip("libcst", reason="the extra [mutation] is not installed")

__all__ = ["suites_here"]
here = pytest.mark.usefixtures("suites_here")
LEDGER = (Path(__file__).parent / "programs" / "ledger.py").read_text()
GRADE = "def grade(points):\n    if points < 50:\n        return 'failed'\n    return 'passed'\n"


def _merge(make_context: MakeContext, *codes: str, target: str = LEDGER, **options: object) -> dict[str, Any]:
    candidates = [{"code": code} for code in codes]
    context = make_context({"ledger.py": target}, target="ledger.py", candidates=candidates, **options)
    result = run_check(merge_tests, context)
    written = {path.relative_to(context.workspace.root).as_posix() for path in context.workspace.root.rglob("*.py")}
    assert written == {"ledger.py", *(file["path"] for file in result["files"])}
    return result


ALONE: dict[str, tuple[float, set[str]]] = {}
"""What a candidate is worth alone; the mutants are the same in all pairs."""


def _measured(make_context: MakeContext, files: Mapping[str, str], ids: list[str]) -> tuple[float, set[str]]:
    """Coverage and killed mutants of a suite on its own, by the checks that measure nothing else."""
    for path in (root := make_context({}).workspace.root / "alone").glob("*"):
        path.unlink()
    texts = {f"alone/{Path(path).name}": text for path, text in files.items()}
    both = {"target": "ledger.py", "tests": "alone"}
    covered = measure_coverage(make_context({"ledger.py": LEDGER, **texts}, **both))
    assert root.is_dir()
    judged: dict[str, Any] = judge_mutants(make_context({}, **both, mutants=ids))
    if judged["status"] != "ok":  # a suite that is not green has no score
        return 0.0, set()
    return float(str(covered["coverage"])), set(ids) - {survivor["id"] for survivor in judged["survivors"]}


@pytest.mark.long
@pytest.mark.parametrize("pair", PAIRS)
def test_merged_tests_are_never_below_the_better_candidate(make_context: MakeContext, pair: str) -> None:
    """Only here each suite is measured by checks that merge nothing, in real processes."""
    result = _merge(make_context, *PAIRS[pair], max_mutants=6, runs=1)
    assert result["status"] == "merged", result["reason"]
    merged_files = {file["path"]: file["content"] for file in result["files"]}
    coverage, killed = _measured(make_context, merged_files, result["ids"])
    assert (coverage, len(killed)) == (result["coverage"], result["merged"]["killed"])
    for code in PAIRS[pair]:
        if code not in ALONE:
            ALONE[code] = _measured(make_context, {"test_alone.py": code}, result["ids"])
        alone, kills = ALONE[code]
        assert coverage >= alone
        assert killed >= kills


def _survivors(result: dict[str, Any]) -> set[str]:
    return {each["id"] for each in result["survivors"]}


@here
def test_merge_of_plain_candidates_loses_nothing(make_context: MakeContext) -> None:
    """What either comes to alone: half of the careless ones' tests fail."""
    wanted: dict[str, Any] = {"max_mutants": 12, "runs": 1}
    merged, *alone = (_merge(make_context, *codes, **wanted) for codes in ((HAPPY, CARELESS), (HAPPY,), (CARELESS,)))
    for each in alone:
        assert merged["coverage"] >= each["coverage"] > 0
        assert _survivors(merged) <= _survivors(each) < set(each["ids"])


@here
def test_first_of_equivalent_tests_is_kept(make_context: MakeContext) -> None:
    """Of two tests with the same effect the first is kept. Tests that reach and kill nothing more are dropped."""
    code = "from ledger import grade\ndef test_edge(): assert grade(50) == 'passed'\n"
    more = f"{code}def test_far(): assert grade(10) == 'failed'\ndef test_again(): assert grade(9) == 'failed'\n"
    result = _merge(make_context, code, more, target=GRADE, runs=1)
    assert result["kept"] == ["tests.test_ledger::test_edge", "tests.test_ledger__2::test_far"]
    assert [file["path"] for file in result["files"]] == ["tests/test_ledger.py", "tests/test_ledger__2.py"]
    assert "test_edge" not in result["files"][1]["content"]
    assert (result["coverage"], result["score_percent"], result["survivors"]) == (100.0, 100.0, [])
    why = "other tests cover and kill the same"
    assert {"test": "tests.test_ledger__2::test_again", "reason": why} in result["dropped"]
    assert [candidate["tests"] for candidate in result["candidates"]] == [1, 3]


@here
def test_what_others_need_is_not_removed(make_context: MakeContext) -> None:
    code = (
        "from ledger import grade\ndef test_far(): assert grade(10) == 'failed'\n"
        "def test_both():\n    test_far()\n    assert grade(50) == 'passed'\n"
    )
    result = _merge(make_context, code, target=GRADE, runs=1)
    assert result["kept"] == ["tests.test_ledger::test_far", "tests.test_ledger::test_both"]
    assert result["reason"].startswith("nothing more is removed: ")
    assert result["score_percent"] == 100.0


@here
def test_failing_and_flaky_tests_are_dropped_and_said(make_context: MakeContext, tmp_path: Path) -> None:
    turns = (
        f"    with open({str(tmp_path / 'turns')!r}, 'a+') as f:\n        f.write('x')\n        assert f.tell() % 2\n"
    )
    code = f"from ledger import grade\ndef test_turns():\n{turns}def test_wrong(): assert grade(0) == 'passed'\n"
    code += "def test_p3_bug(): assert grade(1) == 'passed'\ndef test_far(): assert grade(0) == 'failed'\n"
    bug = judged(item("P3", "'passed'", target="grade", given="1"), GRADE, "ledger", "cannot be evaluated")
    result = _merge(make_context, code, target=GRADE, mutants=["3.1"], plan=[bug])
    assert result["flaky"] == {"tests.test_ledger::test_turns": ["passed", "failed", "passed"]}
    assert result["dropped"] == [
        {"test": "tests.test_ledger::test_wrong", "reason": "it fails"},
        {"test": "tests.test_ledger::test_turns", "reason": "its outcome changes"},
    ]
    assert result["kept"] == ["tests.test_ledger::test_far"]
    assert "test_p3_bug" in result["files"][0]["content"], "it is the bug that the plan expects"


@here
def test_files_of_somebody_else_are_left_alone(make_context: MakeContext) -> None:
    code = "from ledger import grade\ndef test_edge(): assert grade(50) == 'passed'\n"
    more = "from ledger import grade\ndef test_far(): assert grade(10) == 'failed'\n"
    theirs = {f"tests/test_ledger{end}.py": f"mine = '{end}'\n" for end in ("", "__3")}
    own = {"tests/mine.py": "def test_old(): pass\n", "tests/mine__2.py": "x = 1\n"}
    given: dict[str, Any] = {"target": "ledger.py", "candidates": [{"code": code}, {"code": more}], "runs": 1}
    context = make_context({"ledger.py": GRADE, **theirs, **own}, **given, mutants=["3.1"])
    for _ in range(2):  # what was cut short after the files were written comes to the same
        result: dict[str, Any] = merge_tests(context)
        assert [file["path"] for file in result["files"]] == ["tests/test_ledger__2.py", "tests/test_ledger__4.py"]
    others = [{"path": "tests/mine__2.py", "content": "from ledger import grade\ndef test_x(): grade(1)\n"}]
    context = make_context({}, **{**given, "candidates": [{"code": code}]}, tests="tests/mine.py", others=others)
    merge_tests(context)
    root = context.workspace.root
    assert {name: (root / name).read_text() for name in theirs} == theirs


@here
def test_each_item_of_the_plan_keeps_a_test(make_context: MakeContext) -> None:
    same = (
        "def test_edge(): assert grade(50) == 'passed'",
        *(f"def test_{name}(): assert grade(60) == 'passed'" for name in "ab"),
    )
    more = "\n".join(["from ledger import grade", *same, ""])
    item_ = judged(item("P2", "'passed'", "grade", "60"), GRADE, "ledger", "holds")
    result = _merge(make_context, more, target=GRADE, runs=1, mutants=["3.1"], plan=[item_])
    assert [name.rpartition("::")[2] for name in result["kept"]] in (["test_edge", "test_a"], ["test_a"])


def test_candidate_that_is_not_python_is_reported(make_context: MakeContext) -> None:
    result = _merge(make_context, HAPPY, "def test_x(:\n")
    assert (result["status"], result["files"]) == ("could not run", [])
    assert result["reason"] == "candidate 2: line 1: invalid syntax"
