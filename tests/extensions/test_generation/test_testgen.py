"""The flow ``testgen`` in whole runs; `test_flow_ways.py` takes every way of its diagrams."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.flow import worst_case
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.reading.shipped import packaged_roles
from codex_multi_role.run_options import RunOptions
from codex_multi_role.steps.check_context import terms
from tests.support.generation import ABOVE, BELOW, IMPORT, P1, P2, SIGN, Generation, code, item, plan
from tests.support.teams import read

pytestmark = pytest.mark.usefixtures("scripted_codex")

OFF = "disabled: the input mutation is false"
IDLE = ABOVE.replace("    assert sign(4) == 1", "    sign(4)")


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
    assert '"id": "P2"' in given.prompt("test_developer", 1)
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
        "text": "sign.py: 2 tests pass, coverage 100 %, mutants not judged\n  tests/test_sign.py",
        "file": "results.json",
        "format": "text",
        "figures": {"files": 1, "tests passed": 2, "lowest coverage": 100.0},
    }


@pytest.mark.long
def test_iteration_that_reaches_less_is_rolled_back(tmp_path: Path) -> None:
    wrong, less = ABOVE.replace("== 1", "== 2"), "def test_p1_below():\n    assert int('-1') == -1\n"
    given = Generation(
        tmp_path,
        {"sign.py": SIGN},
        test_planner=[plan(P1, P2)],
        test_developer=[code(IMPORT + BELOW + wrong), code(IMPORT + less + ABOVE)],
    )
    assert given.run("sign.py", max_iterations=2).exit_code == 1
    assert given.rounds == [("generate", "kept"), ("fix", "rolled back")]
    assert given.results[0]["rounds"][1]["reason"] == "reaches 66.67 %, the best so far 100.0 %"


@pytest.mark.long
def test_what_is_appended_takes_no_name_that_is_taken(tmp_path: Path) -> None:
    """Nor does a Markdown fence around the code become part of it."""
    again = f"```python\n{BELOW}\n\n{BELOW.replace('-3', '-5')}\n\n{ABOVE}```\n"
    given = Generation(
        tmp_path,
        {"sign.py": SIGN},
        test_planner=[plan(P1), plan(P2)],
        test_developer=[code(IMPORT + BELOW), code(again)],
    )
    assert given.run("sign.py").exit_code == 0
    names = [line for line in given.text().splitlines() if line.startswith("def ")]
    assert names == ["def test_p1_below():", "def test_p1_below_2():", "def test_p2_above():"]
    assert given.metrics()["n_passed_tests"] == 3


@pytest.mark.long
def test_crashing_test_costs_only_itself(tmp_path: Path) -> None:
    crash = "def test_p3_crash():\n    import os\n    assert os._exit(3) == sign(3)\n"
    whole = code(IMPORT + BELOW + ABOVE + crash)
    given = Generation(
        tmp_path, {"sign.py": SIGN}, test_planner=[plan(P1, P2, item("P3", "1"))], test_developer=[whole]
    )
    assert given.run("sign.py", max_iterations=1, runs=2).outcome == "timeout"
    (result,) = given.results
    assert result["metrics"]["failed_tests"] == ["tests.test_sign::test_p3_crash"]
    assert (result["metrics"]["n_passed_tests"], result["metrics"]["coverage_percent"]) == (2, 100.0)
    assert result["flaky"]["runs"] == 2
    assert "test_p3_crash" not in given.text()


@pytest.mark.long(
    "extensions/test_generation/test_prune_tests.py::test_pruning_again_after_a_kill_gives_the_same_result",
    "extensions/test_generation/test_prune_tests.py::test_import_error_is_not_a_suspected_bug",
    "extensions/test_generation/test_flow_ways.py::test_results_decide_the_way",
)
def test_test_that_still_fails_is_removed_as_suspected_bug(tmp_path: Path) -> None:
    """The result reports the suspected bug with the expected value and the removed test, and what is missing."""
    zero = "\n@pytest.mark.parametrize('n', [0])\ndef test_p3_zero(n):\n    assert sign(n) == 0\n"
    tests = f"import pytest\n{IMPORT}{BELOW}{IDLE}{zero}"
    given = Generation(
        tmp_path,
        {"sign.py": SIGN},
        test_planner=[plan(P1, P2, item("P3", "0", given="0"), item("P4", "1"))],
        test_developer=[code(tests)],
    )
    report = given.run("sign.py", max_iterations=1)
    assert (report.outcome, report.exit_code) == ("suspected_bugs", 1)
    (result,) = given.results
    (bug,) = result["suspected_bugs"]
    assert (bug["id"], bug["expected"], bug["tests"]) == ("P3", "0", ["test_p3_zero"])
    assert (result["metrics"]["n_failed_tests"], result["metrics"]["n_passed_tests"]) == (1, 2)
    assert "test_p3_zero" not in given.text()
    assert BELOW in given.text()
    assert (result["untested_plan_items"], result["tests_without_assertion"]) == (["P4"], ["test_p2_above"])
    assert "items of the plan without a test: P4; tests without an assertion: test_p2_above" in result["reason"]
    told = "sign.py: test_p3_zero fails: sign should give 0 for 0"
    assert report.reason.startswith(f"{told}; sign.py: timeout: no iterations are left")
    assert report.result is not None
    assert report.result["text"].startswith(f"Suspected bug in {told}\nsign.py: 2 tests pass")


@pytest.mark.long
def test_what_the_plan_expects_is_not_asserted_away(tmp_path: Path) -> None:
    zero = "def test_p3_zero():\n    assert sign(0) == {}\n"
    given = Generation(
        tmp_path,
        {"sign.py": SIGN},
        test_planner=[plan(P1, P2, item("P3", "0", given="0"))],
        test_developer=[code(IMPORT + BELOW + ABOVE + zero.format(0)), code(IMPORT + BELOW + ABOVE + zero.format(1))],
    )
    assert given.run("sign.py", max_iterations=2).outcome == "suspected_bugs"
    assert given.rounds == [("generate", "kept"), ("fix", "rolled back")]
    assert (
        given.results[0]["rounds"][1]["reason"]
        == "changes what failing tests expect: test_p3_zero (assert sign(0) == 0)"
    )
    assert [bug["id"] for bug in given.results[0]["suspected_bugs"]] == ["P3"]


def test_what_only_the_duel_needs_is_not_counted() -> None:
    flows, catalog = load_team("testgen", packaged_roles())
    given = terms(RunOptions())
    most = worst_case(flows, "testgen", catalog, given)
    assert (most.turns, most.processes) == (200 * 6 * 2, 2)
    most = worst_case(flows, "testgen", catalog, given, {"duel": True})
    assert (most.turns, most.processes) == (200 * 6 * 5, 5)
