"""A real program: some hundred lines, a hierarchy of classes, exceptions, and a bug that the plan exposes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.generation import BUG, PROGRAMS, Generation, code, item, plan


@pytest.mark.long
def test_remaining_code_is_covered_and_bug_is_reported(tmp_path: Path) -> None:
    """The developer gives in and asserts what the code does. That is rolled back, and then it follows the plan. The
    bug is reported and not asserted.
    """
    first, second = ((PROGRAMS / f"orders_{name}.txt").read_text() for name in ("first", "second"))
    gave_in = first.replace('Line(PEN, 10)) == Decimal("2.50")', 'Line(PEN, 10)) == Decimal("0.00")')
    assert gave_in != first
    given = Generation(
        tmp_path,
        {"orders.py": (PROGRAMS / "orders.py").read_text()},
        test_planner=[plan(item("P1", "1234.50"), BUG, item("P9", "OrderError"))],
        test_developer=[code(first), code(gave_in), code(f"{first}\n\n{second}")],
    )
    report = given.run("orders.py", max_iterations=3)
    assert (report.outcome, report.exit_code) == ("suspected_bugs", 1)
    assert given.rounds == [("generate", "kept"), ("fix", "rolled back"), ("fix", "kept")]
    assert "Restore them" in given.prompt("test_developer", 3)
    (result,) = given.results
    (bug,) = result["suspected_bugs"]
    assert (bug["id"], bug["expected"], bug["tests"]) == ("P4", "2.50", ["TestBulk::test_p4_ten_are_ten_or_more"])
    assert result["metrics"]["coverage_percent"] == 100.0
    assert (result["metrics"]["n_failed_tests"], result["metrics"]["n_passed_tests"]) == (1, 35)
    assert "test_p4" not in given.text("tests/test_orders.py")
    assert "test_p5" in given.text("tests/test_orders.py")
