"""Random flows and answers that satisfy their contracts: no run of them ends as a wrong usage."""

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
from tests.support.contract_flows import SCHEMAS, answer_to, flows_that_contracts_suffice, flows_that_read
from tests.support.scripted import FAILS, Script
from tests.support.teams import TeamFolder, with_flow
from tests.verdicts.playing import read

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


def ended(folder: Path, flows: list[Json], schema: Json, answering: Answering) -> Ending | None:
    """How the flow ends; None if it is not valid."""
    team = TeamFolder(folder, {"one": {}, "two": {"output_schema": schema} if schema else {}, "three": {}}, {})
    with_flow(team, flows[0])
    with_flow(team, {key: value for key, value in flows[1].items() if key != "name"}, "inner")
    try:
        loaded = load_team("own", team.folder / "roles")
    except DefinitionError:
        return None
    script = Script(folder, {role: [answering] for role in ("one", "two", "three")}, answers=[(True, "")] * 20)
    return script.walk_loaded("own", *loaded, {}).ending


def check(flows: list[Json], schema: Json, seed: int) -> None:
    answering = Answering(Random(seed))
    with tempfile.TemporaryDirectory() as folder:
        ending = ended(Path(folder), flows, schema, answering)
    assume(ending is not None and not answering.stuck)
    assert ending is not None
    SEEN[ending.outcome] += 1
    assert ending.exit_code != 2, ending
    assert ending.outcome not in ("internal_error", "storage_failed"), ending


FLOWS = (flows_that_read(), st.sampled_from(SCHEMAS), st.integers(0, 999))


@settings(max_examples=50)
@given(*FLOWS)
def test_answers_that_satisfy_their_contracts_are_not_wrong_usage(flows: list[Json], schema: Json, seed: int) -> None:
    check(flows, schema, seed)


@settings(max_examples=50)
@given(flows_that_contracts_suffice(), st.integers(0, 999))
def test_no_step_fails_by_answers_that_satisfy_their_contracts(flows: list[Json], seed: int) -> None:
    answering = Answering(Random(seed))
    with tempfile.TemporaryDirectory() as folder:
        ending = ended(Path(folder), flows, {}, answering)
    assume(not answering.stuck)
    assert ending is not None
    assert ending.exit_code == 0, ending


@pytest.mark.long("verdicts/test_random_contracts.py::test_answers_that_satisfy_their_contracts_are_not_wrong_usage")
def test_a_thousand_valid_flows_are_not_wrong_usage() -> None:
    SEEN.clear()
    many = settings(max_examples=1000)(given(*FLOWS)(check))
    many()
    assert sum(SEEN.values()) >= 1000
    assert len(SEEN) >= 4, SEEN
