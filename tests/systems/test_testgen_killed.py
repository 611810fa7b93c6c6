"""``testgen`` killed on its way, and resumed: it leaves what an undisturbed run leaves, and no turn is paid twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.systems.test_generation.mutants import is_installed
from tests.support.generation import ABOVE, BELOW, IMPORT, P1, P2, SIGN, code, plan
from tests.support.teams import Record, read
from tests.torture.ground import Ground, ground
from tests.torture.points import Point
from tests.torture.scenarios import Scenario

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


def results(place: Ground) -> Record:
    """Without what is another's in every run: its name, its times, and the tokens of a turn that was cut off."""
    document: Record = read(place.run.path / "results.json")
    for result in document["results"]:
        result["mutation"].pop("seconds", None)
        result["metrics"].pop("total_tokens")
    return {name: value for name, value in document.items() if name not in DIFFERENT}


class LongerGround(Ground):
    """No other scenario runs so many programs."""

    process_seconds = 180.0


@pytest.mark.long
def test_run_killed_while_measuring_ends_like_undisturbed_run(tmp_path: Path) -> None:
    with ground(TESTGEN, tmp_path / "undisturbed", LongerGround) as place:
        assert place.start() == 0, place.output.read_text()
        due, expected, children = place.server.requests, results(place), read(place.note)["children"]
        evidence = place.evidence(0)
    measured = [number for number, name in enumerate(children, start=1) if name.endswith("codex sandbox")]
    with ground(TESTGEN, tmp_path / "killed", LongerGround) as place:
        assert place.start(Point("children", measured[len(measured) // 2])) == -9
        assert place.resume() == 0, place.output.read_text()
        assert place.server.requests == due
        assert results(place) == expected
        assert evidence.differences(place.evidence(0)) == []
