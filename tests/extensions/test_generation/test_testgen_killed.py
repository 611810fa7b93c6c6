"""``testgen`` killed on its way, and resumed: it leaves what an undisturbed run leaves, and no turn is paid twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.extensions.test_generation.mutants import is_installed
from tests.endurance.faults import Kill
from tests.endurance.points import Point
from tests.endurance.scenarios import Scenario
from tests.endurance.workbench import Workbench, workbench
from tests.support.generation import ABOVE, BELOW, IMPORT, P1, P2, SIGN, code, plan
from tests.support.teams import Record, read

INPUTS = {"target": "sign.py", "runs": "2", "max_mutants": "2", "mutation": str(is_installed())}
TESTGEN = Scenario(
    name="testgen",
    roles={"bystander": {}},
    plays={
        "test_planner": [plan(P1), plan(P2)],
        "test_developer": [code("import nowhere\n"), code(IMPORT + BELOW), code(ABOVE)],
    },
    files={"sign.py": (SIGN, 0o644)},
    flow="testgen",
    options=("--no-run-tests", *(part for name, value in INPUTS.items() for part in ("--input", f"{name}={value}"))),
)
DIFFERENT = ("run_id", "started_at")


def results(bench: Workbench) -> Record:
    """Without what is another's in every run: its name, its times, and the tokens of a turn that was cut off."""
    document: Record = read(bench.run.path / "results.json")
    for result in document["results"]:
        result["mutation"].pop("seconds", None)
        result["metrics"].pop("total_tokens")
    return {name: value for name, value in document.items() if name not in DIFFERENT}


class LateKill(Kill):
    """No other scenario runs so many programs."""

    process_seconds = 180.0


@pytest.mark.long
def test_run_killed_while_measuring_ends_like_undisturbed_run(tmp_path: Path) -> None:
    """Only here a run of a shipped system is killed while a check works."""
    with workbench(LateKill(), TESTGEN, tmp_path / "undisturbed") as bench:
        assert bench.start() == 0, bench.output.read_text()
        due, expected, children = bench.server.requests, results(bench), bench.passed()["children"]
        evidence = bench.evidence(0)
    measured = [number for number, name in enumerate(children, start=1) if name.endswith("codex sandbox")]
    with workbench(LateKill(), TESTGEN, tmp_path / "killed") as bench:
        assert bench.start(Point("children", measured[len(measured) // 2])) == -9
        assert bench.resume() == 0, bench.output.read_text()
        assert bench.server.requests == due
        assert results(bench) == expected
        assert evidence.differences(bench.evidence(0)) == []
