"""The flow ``testgen`` in whole runs; `test_flow_ways.py` takes every way of its diagrams."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.flow import worst_case
from codex_multi_role.run_options import RunOptions
from codex_multi_role.steps.check_context import terms
from tests.support.generation import (
    ABOVE,
    BELOW,
    CONTRARY,
    IMPORT,
    P1,
    P2,
    SIGN,
    WRONG,
    ZERO,
    Generation,
    code,
    item,
    plan,
)
from tests.support.paths import shipped_team
from tests.support.suites_here import suites_here
from tests.support.teams import Record, read

pytestmark = pytest.mark.usefixtures("scripted_codex")

__all__ = ["suites_here"]

OFF = "disabled: the input mutation is false"


@pytest.mark.real
@pytest.mark.sample("test_generation")
def test_all_is_reached_at_once(tmp_path: Path) -> None:
    given = Generation(
        tmp_path, {"sign.py": SIGN}, test_planner=[plan(P1, P2)], test_developer=[code(IMPORT + BELOW + ABOVE)]
    )
    report = given.run("sign.py")
    assert (report.outcome, report.exit_code) == ("success", 0)
    assert given.asked == ["test_planner", "test_developer"]
    assert {event["role"] for event in given.team.of_type("role_started")} == {"test_planner", "test_developer"}
    assert given.rounds == [("generate", "kept")]
    prompt = given.prompt("test_planner", 1)
    assert "Plan from scratch" in prompt
    assert "TESTS SO FAR" not in prompt
    assert "result = sign(4)" in given.prompt("test_developer", 1)
    assert given.text() == IMPORT + BELOW + ABOVE
    tokens = report.totals["input_tokens"] + report.totals["output_tokens"]
    assert given.metrics() == {
        "coverage_percent": 100.0, "n_passed_tests": 2, "n_failed_tests": 0, "failed_tests": [], "iterations": 1,
        "total_tokens": tokens, "mutation_score_percent": None, "mutation_killed": None, "mutation_survived": None,
    }  # fmt: skip
    assert given.results[0]["mutation"] == {"status": "not judged", "reason": OFF}
    assert given.results[0]["flaky"] == {"runs": 0, "reason": "not looked for", "tests": {}}
    assert read(report.folder / "results.json")["python"] == given.team.of_type("run_started")[0]["python"]
    assert report.result == {
        "title": "Tests",
        "text": "sign.py: 2 new tests pass, coverage 100 %, mutants not judged\n  tests/test_sign.py",
        "file": "results.json",
        "format": "text",
        "figures": {"files": 1, "tests passed": 2, "lowest coverage": 100.0},
    }


def withdrawn(*ids: str) -> Record:
    return {"json": {"withdrawn": [{"id": each, "reason": "zero counts as positive"} for each in ids]}}


@pytest.mark.real
@pytest.mark.usefixtures("suites_here")
@pytest.mark.parametrize(
    ("planned", "answer", "ends"),
    [
        (WRONG, withdrawn(), "suspected_bugs"),
        (WRONG, withdrawn("P3"), "suspected_bugs"),
        (item("P3", "0", given="0"), withdrawn("P3"), "success"),
        (item("P3", "0", given="0"), withdrawn(), "suspected_bugs"),
        (item("P3", "0", given="0", source="observed"), None, "success"),
    ],
)
def test_planner_is_asked_once_about_an_item_that_does_not_hold(
    tmp_path: Path, planned: Record, answer: Record | None, ends: str
) -> None:
    """The developer asserts the contrary in its first answer, and all passes. Only the items are run for real."""
    plans = [plan(P1, P2, planned), *([answer] if answer else [])]
    tests = code(IMPORT + BELOW + ABOVE + CONTRARY)
    given = Generation(tmp_path, {"sign.py": ZERO}, test_planner=plans, test_developer=[tests])
    report = given.run("sign.py")
    assert (report.outcome, report.exit_code) == (ends, int(ends != "success")), report.reason
    assert given.asked == [*["test_planner"] * len(plans), "test_developer"]
    bugs = given.results[0]["suspected_bugs"]
    assert [each["id"] for each in bugs] == ["P3"] * (ends == "suspected_bugs")
    assert ("test_zero" in given.text()) is (not bugs)
    for bug in bugs:
        assert report.result is not None
        first, *paste = str(report.result["text"]).splitlines()[:9]
        assert first.startswith("Suspected bug in sign.py: sign(0): expected 0, got 1")
        assert (("that of zero is 0" in first), ("withdrawn it: zero" in first)) == (
            planned is WRONG,
            bool(bug["withdrawn"]),
        )
        assert "    def test_why_p3():" in paste
        assert "        assert result == 0" in paste


@pytest.mark.real
def test_plan_of_observed_items_alone_is_incomplete(tmp_path: Path) -> None:
    observed = [{**each, "source": "observed"} for each in (P1, P2)]
    given = Generation(
        tmp_path, {"sign.py": SIGN}, test_planner=[plan(*observed)], test_developer=[code(IMPORT + BELOW + ABOVE)]
    )
    assert given.run("sign.py").outcome == "incomplete"
    assert given.results[0]["reason"] == "the plan only has items observed from the code"


@pytest.mark.real
def test_only_what_the_own_tests_leave_is_asked_for(tmp_path: Path) -> None:
    """Their settings count, and their file stays byte for byte. Nothing left is a success without a turn."""
    extra = f"{SIGN}\n\ndef debug():  # nobody tests this\n    return 1\n"
    own = f"{IMPORT}def test_negative():\n    assert sign(-1) == -1\n\n\ndef test_red():\n    assert sign(-2) == 1\n"
    files = {
        "sign.py": extra,
        "tests/unit/test_sign.py": own,
        ".coveragerc": "[report]\nexclude_lines = nobody tests\n",
    }
    given = Generation(tmp_path, files, test_planner=[plan(P2)], test_developer=[code(IMPORT + ABOVE)])
    report = given.run("sign.py")
    assert (report.outcome, given.asked) == ("success", ["test_planner", "test_developer"]), report.reason
    assert "lines 4; branches 2->4" in given.prompt("test_planner", 1)
    assert "test_negative" in given.prompt("test_planner", 1)
    assert (given.results[0]["covered_before"], given.metrics()["coverage_percent"]) == (66.67, 100.0)
    assert given.results[0]["tests"] == ["tests/unit/test_sign_2.py"]
    assert given.text("tests/unit/test_sign.py") == own
    assert "failed before: tests.unit.test_sign::test_red" in str((report.result or {})["text"])
    again = Generation(tmp_path / "again", {**files, "tests/unit/test_sign_2.py": IMPORT + ABOVE})
    report = again.run("sign.py")
    assert (report.outcome, report.exit_code, again.asked) == ("success", 0, [])
    assert again.metrics()["coverage_percent"] == 100.0


@pytest.mark.long
def test_crashing_test_costs_only_itself(tmp_path: Path) -> None:
    """Only here a test of several ends its process, while all of them are measured."""
    crash = "def test_crash():\n    import os\n    assert os._exit(3) == sign(3)\n"
    whole = code(IMPORT + BELOW + ABOVE + crash)
    given = Generation(
        tmp_path, {"sign.py": SIGN}, test_planner=[plan(P1, P2, item("P3", "1"))], test_developer=[whole]
    )
    assert given.run("sign.py", max_iterations=1, runs=2).outcome == "timeout"
    (result,) = given.results
    assert result["metrics"]["failed_tests"] == ["tests.test_sign::test_crash"]
    assert (result["metrics"]["n_passed_tests"], result["metrics"]["coverage_percent"]) == (2, 100.0)
    assert result["flaky"]["runs"] == 2
    assert "test_crash" not in given.text()


def test_what_only_the_duel_needs_is_not_counted() -> None:
    flows, catalog = shipped_team("testgen")
    given = terms(RunOptions())
    most = worst_case(flows, "testgen", catalog, given)
    assert (most.turns, most.processes) == (200 * 6 * 3, 2)
    most = worst_case(flows, "testgen", catalog, given, {"duel": True})
    assert (most.turns, most.processes) == (200 * 6 * 6, 5)
