"""The flow ``testgen`` in whole runs; `test_flow_ways.py` takes every way of its diagrams."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.flow import worst_case
from codex_multi_role.run_options import RunOptions
from codex_multi_role.steps.check_context import terms
from tests.support.generation import ABOVE, BELOW, IMPORT, P1, P2, SIGN, Generation, code, item, plan
from tests.support.paths import shipped_team
from tests.support.teams import read

pytestmark = pytest.mark.usefixtures("scripted_codex")

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
