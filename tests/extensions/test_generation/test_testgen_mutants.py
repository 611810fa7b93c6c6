"""What the flow ``testgen`` makes of mutants and of flaky tests: in its results, in its next plan, and in its end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.generation import ABOVE, BELOW, IMPORT, P1, P2, SIGN, Generation, code, item, plan
from tests.support.suites_here import suites_here

pytestmark = pytest.mark.usefixtures("scripted_codex")

pytest.importorskip("libcst", reason="the extra [mutation] is not installed")
__all__ = ["suites_here"]

WHOLE = IMPORT + BELOW + ABOVE
P3 = item("P3", "1", given="0")
ZERO = "def test_p3_zero():\n    assert sign(0) == 1\n"
TO_ZERO = "-    if number < 0:\n+    if number <= 0:"


def once(folder: Path, text: str = WHOLE) -> Generation:
    return Generation(folder, {"sign.py": SIGN}, test_planner=[plan(P1, P2)], test_developer=[code(text)])


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
@pytest.mark.usefixtures("suites_here")
def test_results_have_the_score_the_survivors_and_who_kills_what(tmp_path: Path) -> None:
    given = once(tmp_path)
    assert given.run("sign.py", mutation=True).exit_code == 0
    metrics, mutation = given.metrics(), given.results[0]["mutation"]
    assert mutation["status"] == "judged"
    assert [each["diff"] for each in mutation["survivors"]] == [TO_ZERO, TO_ZERO.replace("<= 0", "< 1")]
    survivors = {each["id"] for each in mutation["survivors"]}
    below, above = (set(mutation["matrix"][f"tests.test_sign::test_{name}"]) for name in ("p1_below", "p2_above"))
    assert below
    assert above
    assert below | above == {*mutation["ids"]} - survivors
    killed = metrics["mutation_killed"]
    assert (killed, metrics["mutation_survived"]) == (len(below | above), 2)
    assert metrics["mutation_score_percent"] == round(100 * killed / (killed + 2), 2)


@pytest.mark.long
def test_of_many_mutants_a_sample_is_judged(tmp_path: Path) -> None:
    given = once(tmp_path)
    assert given.run("sign.py", mutation=True, max_mutants=2).exit_code == 0
    mutation = given.results[0]["mutation"]
    assert (mutation["mutants"], mutation["sampled"], mutation["found"] > 2) == (2, True, True)


@pytest.mark.long
def test_time_that_is_too_short_is_reported_and_work_continues(tmp_path: Path) -> None:
    given = once(tmp_path)
    assert given.run("sign.py", mutation=True, mutation_seconds=0.01).exit_code == 0
    mutation = given.results[0]["mutation"]
    assert mutation["status"] == "not judged"
    assert "the tests did not finish: no result after" in mutation["reason"]
    assert given.metrics()["mutation_score_percent"] is None


@pytest.mark.usefixtures("suites_here")
@pytest.mark.parametrize(("wanted", "exit_code"), [pytest.param(0, 0, marks=pytest.mark.long), (50, 1)])
def test_missing_extra_is_reported_and_fails_only_required_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: int, exit_code: int
) -> None:
    """Without libcst the run fails only if a mutation score is required."""
    monkeypatch.setitem(sys.modules, "libcst", None)
    given = once(tmp_path)
    assert given.run("sign.py", mutation=True, target_mutation_score=wanted).exit_code == exit_code
    (result,) = given.results
    assert (result["mutation"]["status"], result["metrics"]["mutation_score_percent"]) == ("not judged", None)
    assert "pip install 'codex-multi-role[mutation]'" in result["mutation"]["reason"]
    assert (result["status"], "50 % are required" in result["reason"]) == (
        ("incomplete", True) if wanted else ("success", False)
    )
    assert given.asked == ["test_planner", "test_developer"]


@pytest.mark.long
def test_file_with_nothing_to_change_misses_no_score(tmp_path: Path) -> None:
    text = "from one import ONE\n\n\ndef test_p1():\n    assert ONE == 1\n"
    given = Generation(
        tmp_path, {"one.py": "ONE = 1\n"}, test_planner=[plan(item("P1", 1))], test_developer=[code(text)]
    )
    assert given.run("one.py", mutation=True, target_mutation_score=100).exit_code == 0
    assert given.results[0]["mutation"]["reason"] == "its functions contain nothing to mutate"


@pytest.mark.long
def test_surviving_mutants_are_passed_to_next_plan(tmp_path: Path) -> None:
    given = Generation(
        tmp_path,
        {"sign.py": SIGN},
        test_planner=[plan(P1), plan(P2, P3)],
        test_developer=[code(IMPORT + BELOW), code(ABOVE + ZERO)],
    )
    assert given.run("sign.py", mutation=True).exit_code == 0
    replan = given.prompt("test_planner", 2)
    assert "sign.py: lines 4; branches 2->4" in replan
    assert "or for a mutant below that no test detects" in replan
    assert f"line 2:\n{TO_ZERO}" in replan
    assert "SURVIVING MUTANTS" not in given.prompt("test_planner", 1)
    first, second = (each["mutation_score"] for each in given.results[0]["rounds"])
    assert (0 < first < 100, second) == (True, None)  # the last was enough
    assert given.metrics()["mutation_score_percent"] == 100.0


@pytest.mark.long
def test_score_that_is_wanted_is_planned_for_when_all_is_reached(tmp_path: Path) -> None:
    given = Generation(
        tmp_path,
        {"sign.py": SIGN},
        test_planner=[plan(P1, P2), plan(P3)],
        test_developer=[code(WHOLE), code(ZERO)],
    )
    report = given.run("sign.py", mutation=True, target_mutation_score=100)
    assert (report.outcome, given.rounds) == ("success", [("generate", "kept"), ("append", "kept")])
    replan = given.prompt("test_planner", 2)
    assert "Coverage: 100.0 %" in replan
    assert "the target is 100.0 %):\n" in replan
    assert TO_ZERO in replan
    assert [each["mutation_score"] for each in given.results[0]["rounds"]][1] == 100.0
    assert given.text() == f"{WHOLE}\n\n{ZERO}"


@pytest.mark.long
def test_score_that_is_not_reached_in_time_is_not_a_success(tmp_path: Path) -> None:
    given = once(tmp_path)
    report = given.run("sign.py", mutation=True, target_mutation_score=90, max_iterations=1)
    assert (report.outcome, report.exit_code) == ("timeout", 1)
    score = given.metrics()["mutation_score_percent"]
    assert f"the mutation score is {score} %, 90 % are required" in given.results[0]["reason"]


@pytest.mark.long
def test_iteration_that_notices_less_is_rolled_back(tmp_path: Path) -> None:
    """The appended code hides what the function returns from all tests."""
    hidden = "seen = sign\n\n\ndef sign(number):\n    seen(number)\n    return -1 if number < 0 else 1\n\n\n"
    given = Generation(
        tmp_path,
        {"sign.py": SIGN},
        test_planner=[plan(P1, P2), plan(P3), plan(item("P4", "1", given="0"))],
        test_developer=[code(WHOLE), code(hidden + ZERO), code(ZERO + ZERO.replace("p3", "p4"))],
    )
    given.run("sign.py", mutation=True, target_mutation_score=100)
    assert given.rounds == [("generate", "kept"), ("append", "rolled back"), ("append", "kept")]
    assert "of the mutants, the best so far" in given.results[0]["rounds"][1]["reason"]


@pytest.mark.usefixtures("suites_here")
def test_flaky_tests_are_dropped_and_reported(tmp_path: Path) -> None:
    turns = (
        f"    with open({str(tmp_path / 'turns')!r}, 'a+') as f:\n        f.write('x')\n        assert f.tell() % 2\n"
    )
    given = once(tmp_path, f"{WHOLE}\n\ndef test_p2_turns():\n    assert sign(4) == 1\n{turns}")
    report = given.run("sign.py", runs=3)
    assert (report.outcome, report.exit_code) == ("success", 0)
    (result,) = given.results
    assert result["flaky"]["runs"] == 3
    assert result["flaky"]["tests"] == {"tests.test_sign::test_p2_turns": ["failed", "passed", "failed"]}
    assert (result["metrics"]["n_passed_tests"], result["metrics"]["n_failed_tests"]) == (2, 0)
    assert result["suspected_bugs"] == []
    assert "turns" not in given.text()


@pytest.mark.long
def test_what_only_a_flaky_test_reaches_is_not_reached(tmp_path: Path) -> None:
    turns = (
        f"    with open({str(tmp_path / 'turns')!r}, 'a+') as f:\n        f.write('x')\n        assert f.tell() % 2\n"
    )
    given = once(tmp_path, f"{IMPORT}{BELOW}\n\ndef test_p2_turns():\n    assert sign(4) == 1\n{turns}")
    report = given.run("sign.py", runs=3)
    assert (report.outcome, report.exit_code) == ("incomplete", 1)
    assert "1 tests are flaky and were removed; 66.67 % are reached" in given.results[0]["reason"]
