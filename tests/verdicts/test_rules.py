"""The engine walks every flow as the rules of DESIGN require: the same end, the same steps, and the same work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, seed, settings

from codex_multi_role.catalog import FlowSpec
from codex_multi_role.errors import CheckFailed, RoleFailed
from codex_multi_role.lifecycle.team_loading import checked_team
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import Answer, Question
from codex_multi_role.steps import Unit
from codex_multi_role.steps.ask import Ask
from tests.support.flows import CATALOG
from tests.support.scripted import FAILS, Script
from tests.verdicts.rule_cases import MINIMAL_FLOWS, Expected, MinimalFlow
from tests.verdicts.rule_flows import Case, cases
from tests.verdicts.rules import FAILED, GOOD, Run, nth, step_of

SHARDS = 8
FLOWS = 2_000 // SHARDS
CONFLICTS: Json = {"status": "conflicts", "conflicts": [{"path": "a.py", "kind": "content"}]}


def by_the_rules(case: Case) -> Expected:
    run = Run({flow["name"]: flow for flow in case.flows}, case.results, case.merges)
    ended = run.end("own")
    return Expected(ended.exit_code, ended.outcome, run.path, run.work)


def by_the_engine(case: Case, folder: Path) -> Expected:
    work = list[str]()

    def check(result: str) -> Callable[[Unit], Json]:
        def carry_out(unit: Unit) -> Json:
            work.append(unit.key)
            if result == FAILED:
                raise CheckFailed("check command: could not run")
            return {"status": "ok" if result == GOOD else "failed", "reason": ""}

        return carry_out

    class Played(Script):
        def _person(self, question: Question, stop: object) -> Answer | None:
            work.append(question.key)
            return super()._person(question, stop)

    asked = Counter[str]()

    def answer(ask: Ask) -> Json | RoleFailed:
        work.append(ask.unit)
        step = step_of(_without_tries(ask.unit))
        asked[step] += 1
        return FAILS if nth(case.results[step], asked[step]) == FAILED else {"said": "ok"}

    script = Played(
        folder,
        {"reader": [answer]},
        {step: [check(each) for each in results] for step, results in case.results.items()},
        {step: [(each == GOOD, "") for each in results] for step, results in case.results.items()},
        {step: [{} if each else CONFLICTS for each in merges] for step, merges in case.merges.items()},
    )
    flows = {flow["name"]: FlowSpec.model_validate({"source": f"{flow['name']}.yaml", **flow}) for flow in case.flows}
    walked = script.walk_loaded("own", *checked_team(flows, CATALOG), None)
    return Expected(int(walked.ending.exit_code), walked.ending.outcome, walked.path, [*map(_without_tries, work)])


def _without_tries(key: str) -> str:
    """``s.1/x.1`` of ``s.1/try-2/x.1``: the rules count the executions of a unit in all tries together."""
    return re.sub(r"/try-\d+(?=/)", "", key)


@pytest.mark.parametrize("shard", [0, *(pytest.param(each, marks=pytest.mark.real) for each in range(1, SHARDS))])
def test_random_flows_follow_the_rules(tmp_path: Path, shard: int) -> None:
    @seed(shard)
    @settings(max_examples=max(FLOWS, settings().max_examples // SHARDS))
    @given(cases())
    def property(case: Case) -> None:
        assert by_the_engine(case, tmp_path) == by_the_rules(case)

    property()


@pytest.mark.parametrize("flow", MINIMAL_FLOWS, ids=lambda flow: flow.rule)
def test_minimal_flow_follows_its_rule(tmp_path: Path, flow: MinimalFlow) -> None:
    assert by_the_rules(flow.case) == flow.expected
    assert by_the_engine(flow.case, tmp_path) == flow.expected
