"""Every input of every shipped flow, changed on resume: refused before anything is paid, or nothing depends on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_multi_role.catalog import list_flows
from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle import resuming
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.lifecycle.resuming import _walk
from tests.support.documentation import Documentation
from tests.support.generation import BELOW, IMPORT, P1, SIGN, Generation, code, plan
from tests.support.plan_solve import DOUBTED, TWO, solve, solved, team_of
from tests.support.research import Researching
from tests.support.suites_here import suites_here
from tests.support.teams import Record, TeamFolder, read

pytestmark = pytest.mark.usefixtures("scripted_codex")

__all__ = ["suites_here"]

TESTS: Record = {
    "target": "b.py",
    "out": "t2",
    "max_iterations": 8,
    "target_coverage": 40,
    "timeout_seconds": 30,
    "runs": 2,
}
TESTS |= {"mutation": True, "target_mutation_score": 50}
UNUSED = {"concurrency": 4, "max_mutants": 3, "mutation_seconds": 50, "merge": "winner"}  # without mutants


def of_testgen(folder: Path) -> TeamFolder:
    developers = {name: [code(IMPORT + BELOW)] for name in ("test_developer", "test_developer_2")}
    made = Generation(folder, {"sign.py": SIGN, "b.py": SIGN}, test_planner=[plan(P1)], **developers)
    assert made.run("sign.py", "testgen-duel", max_iterations=1).outcome == "timeout"
    return made.team


def of_document(folder: Path) -> TeamFolder:
    made = Documentation(folder)
    assert made.run().outcome == "success"
    return made.team


def of_research(folder: Path) -> TeamFolder:
    made = Researching(folder, {"a.md": "nothing of use\n"})
    assert made.run().outcome == "nothing_found"
    return made.team


def of_plan_solve(folder: Path) -> TeamFolder:
    team = team_of(folder, [TWO], [solved("1")] * 2, DOUBTED)
    assert solve(team).outcome == "not_verified"
    return team


DOCUMENTS: Record = {"repo": "shop", "out": "d2", "planning": "agentic", "synthesis": "agentic", "threshold": 0.1}
DOCUMENTS |= {"exclude": "[shop/cli.py]"}
RESEARCH = {"depth": "standard", "sources": "", "language": "en", "results": 1}
FLOWS: dict[str, tuple[Callable[[Path], TeamFolder] | None, Record, Record]] = {
    "cycles": (None, {}, {}),
    "testgen": (None, {**TESTS, "duel": True}, UNUSED),
    "testgen-duel": (of_testgen, TESTS, UNUSED),
    "document": (of_document, DOCUMENTS, {"concurrency": 1}),
    "research": (of_research, RESEARCH, {"concurrency": 2}),
    "plan-solve": (of_plan_solve, {"confirm": True, "min_tasks": 2}, {"concurrency": 1}),
}
"""How a run of the flow ends, the inputs that its record depends on, and those on which nothing recorded depends.

``testgen`` takes the inputs of ``testgen-duel``; its run takes two minutes.
"""


def test_table_has_every_input_of_every_flow() -> None:
    flows = {entry.name: yaml.safe_load(entry.source.read_text()) for entry in list_flows(None)}
    own = {name: set(flow.get("inputs", {})) for name, flow in flows.items() if "Called by" not in flow["description"]}
    assert {name: {*refused, *accepted} for name, (_, refused, accepted) in FLOWS.items()} == own


@pytest.fixture
def walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk with the inputs as they were is the same for every input that changes."""
    walks: dict[str, object] = {}

    def walk(definitions: Definitions, *given: Any) -> object:
        inputs = json.dumps(dict(definitions.inputs))
        if inputs not in walks:
            walks[inputs] = _walk(definitions, *given)
        return walks[inputs]

    monkeypatch.setattr(resuming, "_walk", walk)


@pytest.mark.long(
    "engine/test_resume_changed.py::test_input_that_recorded_work_depends_on_cannot_change",
    "extensions/test_resumed_with_other_inputs.py::test_table_has_every_input_of_every_flow",
)
@pytest.mark.parametrize("flow", [name for name, (ended, *_) in FLOWS.items() if ended])
@pytest.mark.usefixtures("walked_once", "suites_here")
def test_input_changes_the_verdict_or_nothing(tmp_path: Path, flow: str) -> None:
    ended, refused, accepted = FLOWS[flow]
    assert ended is not None
    team = ended(tmp_path)
    before = read(team.runs / "latest/run.json")
    for name, value in refused.items():
        with pytest.raises(UsageError, match=f"inputs.{name} cannot be changed"):
            team.resume(inputs={**before["options"]["inputs"], name: str(value)})
    assert team.turns() == []
    assert read(team.runs / "latest/run.json") == before
    report = team.resume(
        inputs={**before["options"]["inputs"], **{name: str(value) for name, value in accepted.items()}}
    )
    assert (report.outcome, team.turns()) == (before["outcome"], [])
