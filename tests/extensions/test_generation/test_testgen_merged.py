"""Recorded candidates of duels over real programs: what is left is never below the better of the two.

Neither in coverage nor in mutation score, on the same mutants. A suite that is not green has no score: a candidate is
measured without its failing tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.extensions.measuring.coverage import measure_coverage
from codex_multi_role.extensions.test_generation.mutation import judge_mutants
from codex_multi_role.extensions.test_generation.prune_tests import prune_tests
from tests.extensions.test_generation.programs.candidates import CARELESS, HAPPY, STRICT
from tests.support.checks import MakeContext, make_context
from tests.support.generation import BUG, PROGRAMS, Generation, code, item, plan

pytest.importorskip("libcst", reason="the extra [mutation] is not installed")
__all__ = ["make_context"]

CHECKED = Path(__file__).parent / "test_generation" / "programs"
FIRST, SECOND = ((PROGRAMS / f"orders_{name}.txt").read_text() for name in ("first", "second"))
NAMES = FIRST[: FIRST.index("@pytest.mark.parametrize")].split("def test_p1_an_amount")[0]
HALF = FIRST[: FIRST.index("def test_p7_")]
PLAN = plan(item("P1", "1234.50"), BUG)
# program, first candidate, second candidate
PAIRS = {
    "most and the rest": (PROGRAMS / "orders.py", FIRST, NAMES + SECOND),
    "a part and all": (PROGRAMS / "orders.py", HALF, f"{FIRST}\n\n{SECOND}"),
    "two parts": (PROGRAMS / "orders.py", NAMES + SECOND, HALF),
    "happy and strict": (CHECKED / "ledger.py", HAPPY, STRICT),
    "strict and careless": (CHECKED / "ledger.py", STRICT, CARELESS),
    "the same twice": (CHECKED / "ledger.py", STRICT, STRICT),
}
MUTANTS = 4


@pytest.mark.long
@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_merged_is_never_below_the_better_of_the_two(
    tmp_path: Path, make_context: MakeContext, pair: str
) -> None:
    program, first, second = PAIRS[pair]
    given = Generation(
        tmp_path / "duel",
        {program.name: program.read_text()},
        test_planner=[PLAN],
        test_developer=[code(first)],
        test_developer_2=[code(second)],
    )
    given.run(program.name, flow="testgen-duel", mutation=True, max_mutants=MUTANTS, max_iterations=1)
    (result,) = given.results
    assert result["rounds"][0]["chosen"]["winner"] == "both", result["rounds"]
    mutation, metrics = result["mutation"], result["metrics"]
    survivors = {each["id"] for each in mutation["survivors"]}
    for candidate in (first, second):
        coverage, missed = _alone(make_context, program, candidate, mutation["ids"])
        assert metrics["coverage_percent"] >= coverage
        assert survivors <= missed
        score = 100 * (1 - len(missed) / len(mutation["ids"]))
        assert metrics["mutation_score_percent"] >= round(score, 2)


def _alone(make_context: MakeContext, program: Path, candidate: str, ids: list[str]) -> tuple[float, set[str]]:
    """Coverage, and the mutants that survive, of what is green of a candidate; by checks that merge nothing."""
    files = [{"path": "tests/test_alone.py", "content": candidate}]
    prune_tests(make_context({program.name: program.read_text()}, target=program.name, files=files, runs=1))
    both = {"target": program.name, "tests": "tests/test_alone.py"}
    covered: dict[str, Any] = measure_coverage(make_context({}, **both))
    judged: dict[str, Any] = judge_mutants(make_context({}, **both, mutants=ids))
    assert (judged["status"], judged["mutants"]) == ("ok", len(ids))
    return covered["coverage"], {each["id"] for each in judged["survivors"]}
