"""The engine walks every flow as the rules of DESIGN require: the same end, the same steps, and the same work.

Killed after any record and resumed, it ends in the same way, without repeating what was recorded. Random answers that
satisfy their contracts end no run as a wrong usage.

Costs: each of 500 flows is walked by the engine, by the rules, in a rehearsal and after a kill; each team of the
contracts is written, loaded, checked and walked."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import assume, given, seed, settings
from hypothesis import strategies as st

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog
from codex_multi_role.errors import CheckFailed, DefinitionError, Ending, RoleFailed
from codex_multi_role.lifecycle.team_loading import checked_team, load_team
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import Answer, Question
from codex_multi_role.steps import RunResources, Unit
from codex_multi_role.steps.ask import Ask
from tests.support.flows import CATALOG, specs_of
from tests.support.random_answers import answer_to
from tests.support.random_flows import Case, Weights, cases, flows
from tests.support.scripted import FAILS, Said, Script, Walked
from tests.support.teams import TeamFolder, with_flow
from tests.verdicts.playing import read
from tests.verdicts.rule_cases import MINIMAL_FLOWS, Expected
from tests.verdicts.rules import FAILED, GOOD, Run, nth, step_of

WALKED = Weights(
    kinds={"ask": 3, "check": 4, "review": 2, "call": 3, "panel": 1, "chosen": 1},
    keys={
        **{
            "for_each": 45,
            "needs": 33,
            "until": 25,
            "in_order": 100,
            "cancel": 50,
            "copy": 25,
            "kept": 25,
            "retry": 33,
        },
        **{"skip": 33, "measured": 25, "set": 20, "back": 25, "combined": 25, "otherwise": 10, "finally": 50},
    },
    roles=("reader", "planner", "developer"),
)
SHARDS = 4
FLOWS = 500 // SHARDS
CONFLICTS: Json = {"status": "conflicts", "conflicts": [{"path": "a.py", "kind": "content"}]}


def by_the_rules(case: Case) -> Expected:
    run = Run({flow["name"]: flow for flow in case.flows}, case.results, case.merges)
    ended = run.end("own")
    return Expected(ended.exit_code, ended.outcome, run.path, run.work)


@dataclass
class Played(Script):
    """``verdicts``: those of leaves and merges, by all that tells them apart; others are those of ``case``, if given.

    ``work``: what was carried out, in order.
    """

    case: Case | None = None
    verdicts: dict[str, str | bool] = field(default_factory=dict)
    work: list[str] = field(default_factory=list)
    _numbers: Counter[str] = field(default_factory=Counter)

    def verdict(self, key: str, what: object = "") -> str:
        self.work.append(f"{key} {what}")
        return str(self._said("results", key, what))

    def _said(self, kind: str, key: str, what: object = "") -> str | bool:
        place, name = step_of(_without_tries(key)), f"{kind} {key} {what}"
        if self.case is not None:
            self._numbers[f"{kind} {place}"] += 1
            self.verdicts[name] = nth(getattr(self.case, kind)[place], self._numbers[f"{kind} {place}"])
        return self.verdicts[name]

    def ask(self, question: Ask) -> Json | RoleFailed:
        what = f"{question.role.name} {question.visit}"
        tries = self.journal.done.count(f"{question.unit} {what}")
        return FAILS if self.verdict(question.unit, f"{what} {tries}") == FAILED else {"said": "ok"}

    def check(self, unit: Unit) -> Json | CheckFailed:
        verdict = self.verdict(unit.key, unit.attempt)
        failure = CheckFailed("check command: could not run")
        return failure if verdict == FAILED else {"status": "ok" if verdict == GOOD else "failed", "reason": ""}

    def _person(self, question: Question, _: object) -> Answer | None:
        return replace(Said(self.verdict(question.key) == GOOD).to(question), at="")

    def _merge(self, _: RunResources, key: str) -> Json:
        return {"status": "merged", "paths": [], "conflicts": []} if self._said("merges", key) else CONFLICTS


Team = tuple[dict[str, FlowSpec], RoleSpecCatalog]


def team_of(case: Case) -> Team:
    return checked_team(specs_of(case.flows), CATALOG)


def by_the_engine(team: Team, script: Played, places: Iterable[str]) -> Walked:
    script.plays = {role: [script.ask] for role in WALKED.roles}
    script.checks = {place: [script.check] for place in places}
    return script.walk_loaded("own", *team, None)


def check_rules(case: Case, team: Team, folder: Path) -> tuple[Played, Walked]:
    played = Played(folder, {}, case=case)
    walked = by_the_engine(team, played, case.results)
    work = [_without_tries(each.split()[0]) for each in played.work]
    assert Expected(int(walked.ending.exit_code), walked.ending.outcome, walked.path, work) == by_the_rules(case)
    return played, walked


def check_resumes(team: Team, played: Played, walked: Walked, records: int) -> None:
    """Killed after so many ``records``: these are not carried out again, but what follows, to the same end."""
    assert walked.rehearse().visits == {name: step.visits for name, step in walked.state.steps.items()}
    again = Played(played.folder, {}, journal=played.journal.until(records), verdicts=played.verdicts)
    resumed = by_the_engine(team, again, played.checks)
    assert (resumed.ending, resumed.state) == (walked.ending, walked.state)
    assert again.journal.records == played.journal.records
    assert Counter(again.journal.done) <= Counter(played.journal.done)


def _without_tries(key: str) -> str:
    """``s.1/x.1`` of ``s.1/try-2/x.1``: the rules count the executions of a unit in all tries together."""
    return re.sub(r"/try-\d+(?=/)", "", key)


@pytest.mark.parametrize("shard", [0, *(pytest.param(each, marks=pytest.mark.real) for each in range(1, SHARDS))])
def test_random_flows_follow_the_rules(tmp_path: Path, shard: int) -> None:
    @seed(shard)
    @settings(max_examples=max(FLOWS, settings().max_examples // SHARDS))
    @given(cases(WALKED), st.integers(min_value=0))
    def property(case: Case, killed: int) -> None:
        team = team_of(case)
        played, walked = check_rules(case, team, tmp_path)
        check_resumes(team, played, walked, killed % (len(played.journal.records) + 1))

    property()


@pytest.mark.parametrize("rule", MINIMAL_FLOWS)
def test_minimal_flow_follows_its_rule(tmp_path: Path, rule: str) -> None:
    case, expected = MINIMAL_FLOWS[rule]
    assert by_the_rules(case) == expected
    check_rules(case, team_of(case), tmp_path)


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


@dataclass
class Answering:
    """Plays of every role: answers that satisfy their contracts and schemas. ``stuck``: none was found."""

    chosen: Random
    stuck: bool = False

    def __call__(self, question: Ask) -> Json | RoleFailed:
        for _ in range(9):
            reply = read(json.dumps(answer_to(question.expected.contract, self.chosen)), question)
            if reply.handoff is not None and not reply.refusal:
                return reply.handoff
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


@settings(max_examples=settings().max_examples // 2)
@given(flows(READING), st.sampled_from(SCHEMAS), st.integers(0, 999))
def test_answers_that_satisfy_their_contracts_are_not_wrong_usage(drawn: list[Json], schema: Json, seed: int) -> None:
    answering = Answering(Random(seed))
    with tempfile.TemporaryDirectory() as folder:
        ending = ended(Path(folder), drawn, schema, answering)
    assume(ending is not None and not answering.stuck)
    assert ending is not None
    assert ending.exit_code != 2, ending
    assert ending.outcome not in ("internal_error", "storage_failed"), ending


@settings(max_examples=settings().max_examples // 2)
@given(flows(EXACT), st.integers(0, 999))
def test_no_step_fails_by_answers_that_satisfy_their_contracts(drawn: list[Json], seed: int) -> None:
    answering = Answering(Random(seed))
    with tempfile.TemporaryDirectory() as folder:
        ending = ended(Path(folder), drawn, {}, answering)
    assume(not answering.stuck)
    assert ending is not None
    assert ending.exit_code == 0, ending
