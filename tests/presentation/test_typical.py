"""What earlier runs of a flow took."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.cli.flows import typical_runs
from tests.support.recorded_runs import make_run


def took(turns: int, seconds: float, **more: float) -> dict[str, float]:
    return {"turns": turns, "seconds": seconds, **more}


def test_cost_is_that_of_runs_which_have_one(tmp_path: Path) -> None:
    for number, cost in enumerate([{}, {"cost": 0.5}, {"cost": 0.25}, {"cost": 4.0}]):
        make_run(tmp_path, f"run{number}", totals=took(2, 60.0, **cost))
    [known] = typical_runs(tmp_path).values()
    assert known.in_words == "typically 2 turns in 1 min 00 s for $0.50 (known for 3 runs), the median of 4 runs"


def test_figures_are_the_medians_of_runs_that_ended_with_a_model(tmp_path: Path) -> None:
    for number, (turns, seconds) in enumerate([(4, 60.0), (8, 200.0), (30, 4000.0)]):
        make_run(tmp_path, f"run{number}", totals=took(turns, seconds))
    make_run(tmp_path, "played", totals=took(99, 1.0), playbook="roman-numerals")
    make_run(tmp_path, "parked", totals=took(99, 1.0), exit_code=5)
    make_run(tmp_path, "forked", totals=took(99, 1.0), forked_from={"run_id": "run0"})
    make_run(tmp_path, "other", flow="testgen", totals=took(1, 12.0))
    found = typical_runs(tmp_path)
    assert {flow: each.in_words for flow, each in found.items()} == {
        "cycles": "typically 8 turns in 3 min 20 s, the median of 3 runs",
        "testgen": "typically 1 turn in 12.0 s, as in the only run so far",
    }


def test_nothing_is_typical_before_the_first_run(tmp_path: Path) -> None:
    assert typical_runs(tmp_path / "nowhere") == {}
