"""Bad results of steps of test generation, which only measure: the last step judges, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.reading.json_types import Json
from tests.support.paths import shipped_team
from tests.support.scripted import Script, Walked

FILE: Json = {"file": "a.py", "module": "a", "tests": "tests/test_a.py", "problem": ""}
RED: Json = {"status": "failed", "reason": "1 failed", "files": []}
RESULTS: Json = {"status": "incomplete", "reason": "a.py: incomplete", "bugs": [], "results": []}
CHECKS: dict[str, list[Json]] = {
    "files": [{"status": "found", "reason": "", "files": [FILE, FILE]}],
    "rounds/source": [{"status": "read", "content": ""}],
    "rounds/merge_plan": [{"status": "planned", "next": "no_plan", "state": {}}],
    "finish": [RED],
    "mutants": [{"status": "timed out", "reason": ""}],
    "results": [RESULTS],
}
WHOLE = ["files", "rounds", "finish", "mutants", "results"]


def walk(folder: Path, **checks: Json) -> Walked:
    script = Script(
        folder, {"test_planner": [{"plan": []}]}, {**CHECKS, **{name: [each] for name, each in checks.items()}}
    )
    return script.walk_loaded("testgen", *shipped_team("testgen"), {"target": "a.py"})


@pytest.mark.parametrize(
    ("verdict", "outcome", "exit_code"),
    [("incomplete", "incomplete", 1), ("suspected bugs", "suspected_bugs", 1), ("success", "success", 0)],
)
def test_rounds_red_tests_and_mutants_out_of_time_are_judged_at_the_end(
    tmp_path: Path, verdict: str, outcome: str, exit_code: int
) -> None:
    walked = walk(tmp_path, results={**RESULTS, "status": verdict})
    assert [step for step in walked.path if "/" not in step] == WHOLE
    assert (walked.ending.outcome, walked.ending.exit_code) == (outcome, exit_code), walked.ending


def test_no_candidate_of_a_duel_can_be_used(tmp_path: Path) -> None:
    """Both candidates are red, and the check that compares them finds none."""
    planned = {
        "status": "planned",
        "next": "develop",
        "state": {"before": "", "others": [], "plan": [], "mode": "generate", "best": None},
    }
    compared = {"status": "compared", "next": "no_candidate", "winner": 0, "state": {}}
    written = {"status": "written", "content": "", "path": "tests/test_a.py"}
    script = Script(
        tmp_path,
        {"test_planner": [{"plan": []}], "test_developer": [{"code": ""}], "test_developer_2": [{"code": ""}]},
        {
            **CHECKS,
            "rounds/merge_plan": [planned],
            "rounds/candidates/source": [{"status": "read", "content": ""}],
            "rounds/candidates/write": [written],
            "rounds/candidates/execute": [RED],
            "rounds/compare": [compared],
        },
    )
    walked = script.walk_loaded(
        "testgen", *shipped_team("testgen"), {"target": "a.py", "duel": True, "mutation": False}
    )
    assert walked.ending.outcome == "incomplete", walked.ending
    rounds = walked.state.steps["rounds"].output["results"]
    assert [(each["outcome"], each["bad"]) for each in rounds] == [("no_candidate", True)] * 2
