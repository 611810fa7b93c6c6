"""The flow ``testgen-duel``: both developers at once; their tests are merged, or the
better ones are taken; what they wrote is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.extensions.test_generation.mutants import is_installed
from codex_multi_role.workspace.manifest import Manifest
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
from tests.support.suites_here import suites_here
from tests.support.teams import Record, read

pytestmark = pytest.mark.usefixtures("scripted_codex")

__all__ = ["suites_here"]
HALF = IMPORT + BELOW


def duel(folder: Path, first: list[Record], second: list[Record], plans: list[Record] | None = None) -> Generation:
    plans = plans or [plan(P1, P2)]
    return Generation(folder, {"sign.py": SIGN}, test_planner=plans, test_developer=first, test_developer_2=second)


needs_mutants = pytest.mark.skipif(not is_installed(), reason="the extra [mutation] is not installed")
OTHER = IMPORT + ABOVE


@pytest.mark.real
@pytest.mark.usefixtures("suites_here")
@pytest.mark.parametrize("winner", [0, 1])
def test_bug_is_found_whichever_developer_asserts_the_contrary(tmp_path: Path, winner: int) -> None:
    """The duel has the same oracle: both sets of tests pass, and the run ends with the bug."""
    answers = [code(IMPORT + BELOW), code(IMPORT + BELOW)]
    answers[winner] = code(IMPORT + BELOW + ABOVE + CONTRARY)
    plans = [plan(P1, P2, WRONG), {"json": {"withdrawn": []}}]
    roles = {"test_planner": plans, "test_developer": answers[:1], "test_developer_2": answers[1:]}
    given = Generation(tmp_path, {"sign.py": ZERO}, **roles)
    report = given.run("sign.py", flow="testgen-duel")
    assert (report.outcome, report.exit_code) == ("suspected_bugs", 1), report.reason
    assert sorted(given.asked) == ["test_developer", "test_developer_2", "test_planner", "test_planner"]
    (result,) = given.results
    assert [(each["id"], each["got"]) for each in result["suspected_bugs"]] == [("P3", "1")]
    assert str((report.result or {})["text"]).startswith("Suspected bug in sign.py: sign(0): expected 0, got 1")
    assert given.text() == IMPORT + BELOW + ABOVE
    assert result["metrics"]["failed_tests"] == ["tests.test_sign::test_zero"]
    assert result["rounds"][0]["chosen"]["winner"] == ("test_developer", "test_developer_2")[winner]
    assert read(report.folder / "run.json")["suggestion"] == "show RUN --result"


@pytest.mark.long
@needs_mutants
@pytest.mark.usefixtures("suites_here")
def test_tests_of_both_are_merged_into_the_fewest(tmp_path: Path) -> None:
    """Only here a whole duel is merged: with the copies of both developers, and what is left of their tests."""
    again = "def test_again():\n    assert sign(-4) == -1\n"
    given = duel(tmp_path, [code(HALF + again)], [code(OTHER)])
    report = given.run("sign.py", flow="testgen-duel", mutation=True, max_mutants=2)
    assert (report.outcome, report.exit_code, given.rounds) == ("success", 0, [("generate", "kept")])
    (result,) = given.results
    assert result["tests"] == ["tests/test_sign.py", "tests/test_sign__2.py"]
    assert (given.text(), given.text("tests/test_sign__2.py")) == (HALF, OTHER)
    chosen = result["rounds"][0]["chosen"]
    assert (chosen["winner"], [each["tests"] for each in chosen["candidates"]]) == ("both", [2, 1])
    assert [each["test"] for each in chosen["dropped"]] == ["tests.test_sign::test_again"]
    assert result["metrics"]["n_passed_tests"] == 2
    kept = [path.read_text() for path in Manifest(report.folder / "worktrees").place.rglob("test_sign.py")]
    assert sorted(kept) == sorted([HALF + again, OTHER])


@needs_mutants
@pytest.mark.long
def test_gaps_after_merge_are_appended_and_merged_again(tmp_path: Path) -> None:
    """Only here a duel has a second round: both append tests for the gaps, and the result is merged again."""
    branches = "    if n < 0:\n        return 'below'\n    if n == 0:\n        return 'none'\n    return 'some'\n"

    def test(number: int, given: int, expected: str) -> str:
        return f"def test_p{number}():\n    assert size({given}) == '{expected}'\n"

    names = "from size import size\n\n\n"
    below, none, some = test(1, -1, "below"), test(2, 0, "none"), test(3, 1, "some")
    given = Generation(
        tmp_path,
        {"size.py": f"def size(n):\n{branches}"},
        test_planner=[
            plan(item("P1", "below", "size", "-1"), item("P2", "none", "size", "0")),
            plan(item("P3", "some", "size", "1")),
        ],
        test_developer=[code(names + below), code("x = 1\n")],
        test_developer_2=[code(names + none), code(some)],
    )
    report = given.run("size.py", flow="testgen-duel", mutation=True, max_mutants=5, target_mutation_score=1)
    assert report.exit_code == 0, report.reason
    assert given.rounds == [("generate", "kept"), ("append", "kept")]
    assert "SURVIVING MUTANTS" in given.prompt("test_planner", 2)
    tests = "".join(given.text(path) for path in given.results[0]["tests"])
    assert [tests.count(each) for each in (below, none, some)] == [1, 1, 1]
    there = {path.relative_to(given.team.workspace).as_posix() for path in given.team.workspace.rglob("test_*.py")}
    assert there == set(given.results[0]["tests"])
