"""What the flow ``testgen`` makes of mutants and of flaky tests: in its results, and in its end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.generation import ABOVE, BELOW, IMPORT, P1, P2, SIGN, Generation, code, plan
from tests.support.suites_here import suites_here

pytestmark = pytest.mark.usefixtures("scripted_codex")

pytest.importorskip("libcst", reason="the extra [mutation] is not installed")
__all__ = ["suites_here"]

WHOLE = IMPORT + BELOW + ABOVE
TO_ZERO = "-    if number < 0:\n+    if number <= 0:"


def once(folder: Path, text: str = WHOLE) -> Generation:
    return Generation(folder, {"sign.py": SIGN}, test_planner=[plan(P1, P2)], test_developer=[code(text)])


@pytest.mark.usefixtures("suites_here")
def test_results_have_the_score_the_survivors_and_the_flaky_tests(tmp_path: Path) -> None:
    """Those are dropped before mutants are judged."""
    turns = (
        f"    with open({str(tmp_path / 'turns')!r}, 'a+') as f:\n        f.write('x')\n        assert f.tell() % 2\n"
    )
    given = once(tmp_path, f"{WHOLE}\n\ndef test_turns():\n    assert sign(4) == 1\n{turns}")
    report = given.run("sign.py", mutation=True, runs=3)
    assert (report.outcome, report.exit_code) == ("success", 0)
    (result,) = given.results
    assert result["flaky"]["runs"] == 3
    assert result["flaky"]["tests"] == {"tests.test_sign::test_turns": ["failed", "passed", "failed"]}
    assert (result["metrics"]["n_passed_tests"], result["metrics"]["n_failed_tests"]) == (2, 0)
    assert result["suspected_bugs"] == []
    assert "turns" not in given.text()
    metrics, mutation = result["metrics"], result["mutation"]
    assert mutation["status"] == "judged"
    assert [each["diff"] for each in mutation["survivors"]] == [TO_ZERO, TO_ZERO.replace("<= 0", "< 1")]
    survivors = {each["id"] for each in mutation["survivors"]}
    below, above = (set(mutation["matrix"][f"tests.test_sign::test_{name}"]) for name in ("below", "above"))
    assert below
    assert above
    assert below | above == {*mutation["ids"]} - survivors
    killed = metrics["mutation_killed"]
    assert (killed, metrics["mutation_survived"]) == (len(below | above), 2)
    assert metrics["mutation_score_percent"] == round(100 * killed / (killed + 2), 2)


@pytest.mark.usefixtures("suites_here")
def test_missing_extra_is_reported_and_fails_required_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libcst", None)
    given = once(tmp_path)
    assert given.run("sign.py", mutation=True, target_mutation_score=50).exit_code == 1
    (result,) = given.results
    assert (result["mutation"]["status"], result["metrics"]["mutation_score_percent"]) == ("not judged", None)
    assert "pip install 'codex-multi-role[mutation]'" in result["mutation"]["reason"]
    assert (result["status"], "50 % are required" in result["reason"]) == ("incomplete", True)
    assert given.asked == ["test_planner", "test_developer"]
