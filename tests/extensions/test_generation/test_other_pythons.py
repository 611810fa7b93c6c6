"""Tests generated, measured and mutants judged in a project whose Python is of another version than ours.

Costs: an environment of another Python, in which tests are measured and mutants judged.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.checks.interpreter import Interpreter, find_interpreter
from codex_multi_role.extensions.measuring.coverage import measure_coverage
from codex_multi_role.extensions.measuring.flaky import find_flaky
from codex_multi_role.extensions.test_generation.mutants import is_installed
from codex_multi_role.extensions.test_generation.mutation import judge_mutants
from tests.support.checks import MakeContext
from tests.support.generation import ABOVE, BELOW, IMPORT, P1, P2, SIGN, Generation, code, plan
from tests.support.teams import read

pytestmark = pytest.mark.real

WHOLE = IMPORT + BELOW + ABOVE
FILES = {"sign.py": SIGN, "tests/test_sign.py": WHOLE}


def test_figures_are_right_in_another_python(make_context: MakeContext, others: dict[str, Interpreter]) -> None:
    for version, python in others.items():
        (link := make_context(FILES).workspace.root / ".venv").unlink(missing_ok=True)
        link.symlink_to(python.environment)
        coverage = measure_coverage(make_context(FILES, target="sign.py"))
        assert (coverage["status"], coverage["coverage"]) == ("passed", 100.0), (version, coverage)
        half = {**FILES, "tests/test_sign.py": IMPORT + BELOW}
        assert measure_coverage(make_context(half, target="sign.py"))["coverage"] == 66.67
        flaky = find_flaky(make_context(FILES, runs=2))
        assert (flaky["status"], flaky["tests"], flaky["flaky"]) == ("ok", 2, {}), (version, flaky)


def test_same_mutants_die_in_another_python(make_context: MakeContext, others: dict[str, Interpreter]) -> None:
    pytest.importorskip("libcst", reason="the extra [mutation] is not installed")
    ours = _killed(make_context)
    for version, python in others.items():
        (link := make_context(FILES).workspace.root / ".venv").unlink(missing_ok=True)
        link.symlink_to(python.environment)
        assert _killed(make_context) == ours, version


def _killed(make_context: MakeContext) -> tuple[object, object]:
    result = judge_mutants(make_context(FILES, target="sign.py"))
    return result["status"], result["killed"]


def test_tests_are_generated_for_another_python(tmp_path: Path, others: dict[str, Interpreter]) -> None:
    for version, python in others.items():
        plays = {"test_planner": [plan(P1, P2)], "test_developer": [code(WHOLE)]}
        given = Generation(tmp_path / version, {"sign.py": SIGN}, **plays)
        (given.team.workspace / ".venv").symlink_to(python.environment)
        assert find_interpreter(given.team.workspace, {}).source == ".venv"
        report = given.run("sign.py", sandbox=True, runs=2, mutation=is_installed(), max_mutants=3)
        assert (report.exit_code, given.metrics()["coverage_percent"]) == (0, 100.0), report
        told = read(report.folder / "results.json")["python"]
        assert (told["version"], told["source"]) == (version, ".venv")
