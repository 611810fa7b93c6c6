"""What is found before any goal starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError, ExitCode, UsageError
from codex_multi_role.extensions.machines.batches.goal_results import GoalResult
from codex_multi_role.extensions.machines.batches.planned_runs import PlannedRun, plan_runs
from codex_multi_role.extensions.machines.batches.team_readiness import completed, require_known_costs, require_limits
from tests.support.batches import defaults, goals
from tests.support.console import console
from tests.support.teams import Record

PLAYBOOK = "name: mine\ngoal: Write it\ncycles: 2\ndefault: {json: {summary: fine}}\n"


def planned(folder: Path, *lines: Record) -> list[PlannedRun]:
    common = defaults(folder, roles=None)
    return plan_runs(goals(*lines), common, "night", folder / "clones")


def test_playbook_suggests_what_a_line_leaves_open(tmp_path: Path) -> None:
    (tmp_path / "play.yaml").write_text(PLAYBOOK)
    lines: list[Record] = [{"playbook": "play.yaml"}, {"playbook": "play.yaml", "goal": "Other", "cycles": 7}]
    runs = completed(planned(tmp_path, *lines))
    assert [run.options.goal for run in runs] == ["Write it", "Other"]
    assert [run.options.cycles for run in runs] == [2, 7]


def test_problems_of_teams_goals_inputs_and_folders_are_found(tmp_path: Path) -> None:
    lines: list[Record] = [
        {"goal": "x", "flow": "cylces"},
        {"goal": ""},
        {"goal": "x", "inputs": {"no": 1}, "workspace": "missing"},
        {"goal": "x", "flow": "cylces"},
    ]
    with pytest.raises(DefinitionError) as caught:
        completed(planned(tmp_path, *lines))
    assert [str(each) for each in caught.value.problems] == [
        'goals.jsonl:1: unknown flow "cylces"; did you mean "cycles"?',
        "goals.jsonl:2: missing goal",
        'goals.jsonl:3: flow cycles: unknown input "no"',
        f"goals.jsonl:3: the workspace {tmp_path / 'missing'} does not exist or is not a folder",
    ]


def test_total_needs_a_limit_for_each_goal(tmp_path: Path) -> None:
    runs = planned(tmp_path, {"goal": "x", "max_turns": 3}, {"goal": "y"})
    require_limits(runs[:1], {"turns": 9})
    with pytest.raises(DefinitionError, match=r"goals.jsonl:2: --total-max-turns needs a limit for each goal"):
        require_limits(runs, {"turns": 9})


def test_total_cost_needs_the_price_of_what_goals_have_used() -> None:
    """A goal of an earlier version recorded no cost; one that has not started has used nothing."""
    fine = GoalResult("a", 1, "night-a", "/runs", totals={"turns": 1, "cost": 0.5, "unpriced_turns": 0})
    require_known_costs([fine, GoalResult("b", 2, "night-b", "/runs")])
    with pytest.raises(UsageError, match="2 turns of run night-c have no price"):
        require_known_costs([fine, GoalResult("c", 3, "night-c", "/runs", totals={"turns": 2})])


@pytest.mark.long
@pytest.mark.parametrize("place", ["workspace", "repository"])
def test_missing_login_is_found_before_anything_starts(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only here `batch` asks Codex for its login."""
    (tmp_path / "home").mkdir()
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "goals.jsonl").write_text(f'{{"goal": "x", "{place}": "home"}}\n')
    done = console("batch", "goals.jsonl", folder=tmp_path, variables={"HOME": str(tmp_path / "home")})
    assert done.returncode == ExitCode.WRONG_USAGE
    assert "Codex is not logged in" in done.stderr
    assert not (tmp_path / "runs").exists()
