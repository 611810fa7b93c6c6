"""The flow ``testgen-duel`` on the real binary: both developers at once, the better one is taken, the other kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.systems.generated import ABOVE, BELOW, IMPORT, P1, P2, SIGN, Generation, code, plan
from tests.teams import Record

WHOLE = IMPORT + BELOW + ABOVE
HALF = IMPORT + BELOW
CRASHES = "import nowhere\n"
FAILS = WHOLE.replace("sign(4)", "sign(-4)") + "\n\ndef test_p2_again():\n    assert sign(4) == 1\n"


def duel(folder: Path, first: list[Record], second: list[Record], plans: list[Record] | None = None) -> Generation:
    plans = plans or [plan(P1, P2)]
    return Generation(folder, {"sign.py": SIGN}, test_planner=plans, test_developer=first, test_developer_2=second)


@pytest.mark.parametrize(
    ("first", "second", "winner", "why"),
    [
        (CRASHES, WHOLE, "test_developer_2", "crashed is false"),
        (HALF, WHOLE, "test_developer_2", "coverage is 100.0, the next best has 66.67"),
        (FAILS, WHOLE, "test_developer_2", "failed is 0, the next best has 1"),
        (WHOLE, WHOLE, "test_developer", "equal in every key"),
    ],
)
def test_the_better_one_wins(tmp_path: Path, first: str, second: str, winner: str, why: str) -> None:
    given = duel(tmp_path, [code(first)], [code(second)])
    report = given.run("sign.py", flow="testgen-duel")
    assert (report.outcome, report.exit_code) == ("success", 0)
    (round_,) = given.results[0]["rounds"]
    assert round_["chosen"]["winner"] == winner
    assert why in round_["chosen"]["reason"]
    assert given.text() == WHOLE
    kept = [path.read_text() for path in (report.folder / "worktrees").rglob("test_sign.py")]
    assert sorted(kept) == sorted([first, second])
    assert given.metrics()["total_tokens"] == report.totals["input_tokens"] + report.totals["output_tokens"]


def test_both_are_asked_again_when_the_better_one_fails(tmp_path: Path) -> None:
    given = duel(tmp_path, [code(CRASHES), code(HALF)], [code(FAILS), code(WHOLE)])
    assert given.run("sign.py", flow="testgen-duel").outcome == "success"
    assert given.rounds == [("generate", "kept"), ("fix", "kept")]
    assert sorted(given.asked) == ["test_developer"] * 2 + ["test_developer_2"] * 2 + ["test_planner"]
    for role in ("test_developer", "test_developer_2"):
        assert "assert -1 == 1" in given.prompt(role, 2)
        assert "MODE: fix" in given.prompt(role, 2)


def test_the_planner_is_asked_again_while_too_little_is_reached(tmp_path: Path) -> None:
    given = duel(tmp_path, [code(HALF), code(ABOVE)], [code(HALF), code("x = 1\n")], [plan(P1), plan(P2)])
    assert given.run("sign.py", flow="testgen-duel").outcome == "success"
    assert given.rounds == [("generate", "kept"), ("append", "kept")]
    assert "TESTS SO FAR" in given.prompt("test_planner", 2)
    assert given.text() == f"{HALF}\n\n{ABOVE}"


def test_it_ends_when_no_iteration_is_left(tmp_path: Path) -> None:
    given = duel(tmp_path, [code(CRASHES)], [code(HALF)])
    report = given.run("sign.py", flow="testgen-duel", max_iterations=1)
    assert (report.outcome, report.exit_code) == ("timeout", 1)
    assert given.metrics()["coverage_percent"] == 66.67


def test_a_developer_that_fails_for_good_has_lost(tmp_path: Path) -> None:
    given = duel(tmp_path, [{"text": "no", "repairs": [{"text": "no"}, {"text": "no"}]}], [code(WHOLE)])
    assert given.run("sign.py", flow="testgen-duel").outcome == "success"
    chosen = given.results[0]["rounds"][0]["chosen"]
    assert chosen == {"winner": "test_developer_2", "reason": "the only candidate that was not rejected"}


def test_without_any_candidate_there_is_no_success(tmp_path: Path) -> None:
    given = duel(tmp_path, [], [])
    report = given.run("sign.py", flow="testgen-duel")
    assert (report.outcome, report.exit_code) == ("incomplete", 1)
    assert given.results[0]["status"] == "no_candidate"
    assert "none of the developers" in given.results[0]["reason"]
