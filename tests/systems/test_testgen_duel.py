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
