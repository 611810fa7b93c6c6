"""The flow `testgen` in whole runs, and `testgen-duel`: both developers at once; their tests are merged, or the
better ones are taken; what they wrote is kept. `test_flow_ways.py` takes every way of the diagrams.

Costs: whole runs that generate tests, measured by tests that run in processes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.extensions.test_generation.mutants import is_installed
from codex_multi_role.flow import worst_case
from codex_multi_role.run_options import RunOptions
from codex_multi_role.steps.check_context import terms
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
        "text": "sign.py: new tests that pass: 2, coverage 100 %, mutants not judged\n  tests/test_sign.py",
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
    """Their settings count, and their file stays byte for byte. Nothing left is a success without a turn.

    The planner sees the README, callers and names of tests, and quotes them.
    """
    quotes = (("P2", "4", "readme", "gives 1 for a\npositive"), ("P3", "9", "caller", "sign(9)"))
    quoted = [item(name, "1", given=given, source=source, quote=quote) for name, given, source, quote in quotes]
    extra = f"{SIGN}\n\ndef debug():  # nobody tests this\n    return 1\n"
    own = f"{IMPORT}def test_negative():\n    assert sign(-1) == -1\n\n\ndef test_red():\n    assert sign(-2) == 1\n"
    files = {
        "sign.py": extra,
        "tests/unit/test_sign.py": own,
        ".coveragerc": "[report]\nexclude_lines = nobody tests\n",
        "README.md": "# Use\n\n`sign` gives 1 for a positive number.\n\n# License\n\nFree.\n",
        "app.py": "from sign import sign\n\n\ndef main():\n    return sign(9) > 0\n",
    }
    given = Generation(tmp_path, files, test_planner=[plan(*quoted)], test_developer=[code(IMPORT + ABOVE)])
    report = given.run("sign.py")
    assert (report.outcome, given.asked) == ("success", ["test_planner", "test_developer"]), report.reason
    assert "lines 4; branches 2->4" in given.prompt("test_planner", 1)
    shown = given.prompt("test_planner", 1)
    assert [word in shown for word in ("test_negative", "for a positive", "return sign(9)", "Free.")] == [1, 1, 1, 0]
    assert (given.results[0]["covered_before"], given.metrics()["coverage_percent"]) == (66.67, 100.0)
    assert given.results[0]["tests"] == ["tests/unit/test_sign_2.py"]
    assert given.text("tests/unit/test_sign.py") == own
    assert "failed before: tests.unit.test_sign::test_red" in str((report.result or {})["text"])
    again = Generation(tmp_path / "again", {**files, "tests/unit/test_sign_2.py": IMPORT + ABOVE})
    report = again.run("sign.py")
    assert (report.outcome, report.exit_code, again.asked) == ("success", 0, [])
    assert again.metrics()["coverage_percent"] == 100.0


def test_what_only_the_duel_needs_is_not_counted() -> None:
    flows, catalog = shipped_team("testgen")
    given = terms(RunOptions())
    most = worst_case(flows, "testgen", catalog, given)
    assert (most.turns, most.processes) == (200 * 6 * 3, 2)
    most = worst_case(flows, "testgen", catalog, given, {"duel": True})
    assert (most.turns, most.processes) == (200 * 6 * 4, 5)


HALF = IMPORT + BELOW


def duel(folder: Path, first: list[Record], second: list[Record]) -> Generation:
    plans = [plan(P1, P2)]
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
