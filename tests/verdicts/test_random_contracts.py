"""Random flows and answers that satisfy their contracts: no run of them ends as a wrong usage.

Costs: each example is a team that is written, loaded, checked and walked.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from codex_multi_role.errors import DefinitionError, Ending, RoleFailed
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps.ask import Ask
from tests.support.random_answers import answer_to
from tests.support.random_flows import Weights, flows
from tests.support.scripted import FAILS, Script
from tests.support.teams import TeamFolder, with_flow
from tests.verdicts.playing import read

ROLES = ("one", "two", "three")
KINDS = {"ask": 5, "check": 1, "review": 1, "call": 2, "panel": 1}
READ = {"found": 50, "prompt": 75, "with": 60, "show": 50, "given": 50}
CHECK = {"check": "answer", "with": {"text": "fine"}}
READING = Weights(
    kinds=KINDS,
    keys=READ
    | {"for_each": 33, "retry": 10, "skip": 10, "set": 20, "back": 33, "combined": 33, "result": 50, "finally": 20}
    | {"needs": 10, "until": 10, "measured": 10, "copy": 10},
    conditions={"answers": 5, "states": 1},
    roles=ROLES,
    check=CHECK,
    fields=("a", "n", "ok", "tasks", "c.d", "tasks[0]"),
)
EXACT = Weights(KINDS, READ | {"exact": 100, "for_each": 33, "ends": 0}, {"answers": 1}, ROLES, check=CHECK)
"""Flows without ways back, guards and failures that are tolerated: each template reads a field of its own."""
SCHEMAS: tuple[Json, ...] = (
    {},
    {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": ["number", "null"]}}, "required": ["a"]},
    {
        "type": "object",
        "properties": {"tasks": {"type": "array", "items": {"type": "object"}}, "ok": {"type": "boolean"}, "n": {}},
        "additionalProperties": False,
    },
)


SEEN: Counter[str] = Counter()


@dataclass
class Answering:
    """Plays of every role: answers that satisfy their contracts and schemas. ``stuck``: none was found."""

    chosen: Random
    stuck: bool = False

    def __call__(self, question: Ask) -> Json | RoleFailed:
        for _ in range(9):
            answer = answer_to(question.expected.contract, self.chosen)
            if not read(json.dumps(answer), question).problem:
                return answer
        self.stuck = True
        return FAILS


def ended(folder: Path, drawn: list[Json], schema: Json, answering: Answering) -> Ending | None:
    """How the flow ends; None if it is not valid."""
    team = TeamFolder(folder, {"one": {}, "two": {"output_schema": schema} if schema else {}, "three": {}}, {})
    for flow in drawn:
        with_flow(team, flow, flow["name"])
    try:
        loaded = load_team("own", team.folder / "roles")
    except DefinitionError:
        return None
    script = Script(folder, {role: [answering] for role in ROLES}, answers=[(True, "")] * 20)
    return script.walk_loaded("own", *loaded, {}).ending


def check(drawn: list[Json], schema: Json, seed: int) -> None:
    answering = Answering(Random(seed))
    with tempfile.TemporaryDirectory() as folder:
        ending = ended(Path(folder), drawn, schema, answering)
    assume(ending is not None and not answering.stuck)
    assert ending is not None
    SEEN[ending.outcome] += 1
    assert ending.exit_code != 2, ending
    assert ending.outcome not in ("internal_error", "storage_failed"), ending


FLOWS = (flows(READING), st.sampled_from(SCHEMAS), st.integers(0, 999))


@settings(max_examples=settings().max_examples // 2)
@given(*FLOWS)
def test_answers_that_satisfy_their_contracts_are_not_wrong_usage(drawn: list[Json], schema: Json, seed: int) -> None:
    check(drawn, schema, seed)


@settings(max_examples=settings().max_examples // 2)
@given(flows(EXACT), st.integers(0, 999))
def test_no_step_fails_by_answers_that_satisfy_their_contracts(drawn: list[Json], seed: int) -> None:
    answering = Answering(Random(seed))
    with tempfile.TemporaryDirectory() as folder:
        ending = ended(Path(folder), drawn, {}, answering)
    assume(not answering.stuck)
    assert ending is not None
    assert ending.exit_code == 0, ending


@pytest.mark.long
def test_a_thousand_valid_flows_are_not_wrong_usage() -> None:
    SEEN.clear()
    many = settings(max_examples=1000)(given(*FLOWS)(check))
    many()
    assert sum(SEEN.values()) >= 1000
    assert len(SEEN) >= 4, SEEN
