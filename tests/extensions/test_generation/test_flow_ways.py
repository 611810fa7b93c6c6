"""Every edge of the flow ``testgen-rounds`` is walked: the shipped YAML and the real check, with scripted figures.

No process is started. The sections are those of the diagrams that the system was drawn from: 1 the planner, 2 the
developer, 4 one developer, 5 the duel; 3, the executor, is in the tests of the check ``coverage``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from codex_multi_role.catalog import FlowSpec, StepSpec, render
from codex_multi_role.catalog.flow_spec import step_place, ways_out
from codex_multi_role.extensions.test_generation.testgen_state import advance_state
from codex_multi_role.flow import End, FlowState, after, new_state
from codex_multi_role.replies import read_reply
from tests.support.checks import MakeContext
from tests.support.generation import item
from tests.support.paths import shipped_team
from tests.support.teams import Record

P1 = item("P1", "1")
CODE = "def test_p1_one():\n    assert one() == 1\n"
FILE = {"path": "tests/test_one.py", "content": CODE}
GREEN: Record = {
    **{"status": "passed", "reason": "", "crashed": False, "passed": 1, "failed": 0, "errors": 0, "failures": []},
    **{"coverage": 100.0, "uncovered": [], "output_tail": ""},
}
HALF = {**GREEN, "coverage": 50.0, "uncovered": [{"file": "one.py", "lines": "2", "branches": ""}]}
FAILS = {**GREEN, "status": "failed", "failed": 1, "failures": [{"test": "test_p1_one", "message": "1 == 2"}]}
ERROR = {**GREEN, "status": "failed", "passed": 0, "errors": 1}
CRASH = {**GREEN, "status": "syntax error", "reason": "line 1", "crashed": True, "passed": 0, "coverage": None}
NOT_SCORED = {"status": "could not run", "reason": "no mutmut"}
SCORE = {"status": "ok", "mutants": 2, "score_percent": 50.0, "survivors": [{"line": 1, "diff": "-1\n+2"}]}
MERGED = {**SCORE, "status": "merged", "reason": "", "files": [FILE], "candidates": [], "merged": {}, "dropped": []}
NOT_MERGED = {"status": "timed out", "reason": "too slow"}


def candidates(*measured: Record | None) -> Record:
    """The answers of both developers; None if a developer has none."""
    own = {"developer": "test_developer", "code": CODE, "copy": "candidates.1.0"}
    none = {"status": "failed", "error": "no"}
    results = [{"vars": own, "steps": {"write": FILE, "execute": each}} if each else none for each in measured]
    return {"results": results, "failed": measured.count(None)}


@dataclass
class Script:
    """What the steps come to: of those that vary one result per visit, the last one for all further visits.

    ``way``: the steps that were taken, with the mode in which a role was asked, and the end.
    ``prompts``: of the roles that were asked.
    """

    results: Mapping[str, list[Record]]
    context: MakeContext
    way: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)

    def walk(self, flow: FlowSpec, **inputs: object) -> FlowState:
        given = {"file": "one.py", "module": "one", "tests": "tests/test_one.py", "mutation": False, **inputs}
        state = new_state(flow, "goal", flow.resolve_inputs(given), 1)
        step = flow.steps[0]
        while True:
            visit = state.enter(step.id)
            state.leave(step.id, self._result(step, state, visit))
            state.set_vars(step, step_place(flow, flow.steps.index(step)))
            move = after(flow, step, state)
            if isinstance(move, End):
                self.way.append(f"{move.outcome}/{move.exit_code}")
                return state
            step = move.step

    def _result(self, step: StepSpec, state: FlowState, visit: int) -> Record:
        context = {**state.context(), "developer": "test_developer"}
        options: Record = render(step.with_, context, step.id)
        prompt = render(step.prompt, context, step.id) or options.get("prompt", "")
        asked = re.search("from scratch|Improve|MODE: (.*)", str(prompt))
        self.way.append(f"{step.id}:{asked[1] or asked[0].split()[-1]}" if asked else step.id)
        self.prompts += [str(prompt)] if asked else []
        if step.check == "testgen_state":
            return advance_state(self.context({}, **options))
        results = self.results.get(step.id) or USUAL[step.id]
        return results[min(visit, len(results)) - 1]


USUAL: dict[str, list[Record]] = {
    "source": [{"status": "read", "content": "def one():\n    return 1\n"}],
    "plan": [{"plan": [P1]}],
    "develop": [{"code": CODE}],
    "write": [{"status": "written", **FILE}],
    "execute": [GREEN],
    "mutants": [SCORE],
    "candidates": [candidates(GREEN, HALF)],
    "take": [{"status": "merged"}],
}
PLAN, MORE = "source plan:scratch merge_plan", "plan:Improve merge_plan develop:append"
FIRST, REST = f"{PLAN} develop:generate", "write execute weigh"
PAIR, LATER = f"{PLAN} candidates:generate compare", "plan:Improve merge_plan candidates:append compare"
DUEL: Record = {"duel": True}
MERGES: Record = {"duel": True, "mutation": True}
SCORED: Record = {"mutation": True, "target_mutation_score": 60}
# sections and case: inputs, results other than the usual ones, the way
WAYS: dict[str, tuple[Record, Mapping[str, list[Record]], str]] = {
    "no Python": ({"problem": "too large"}, {}, "source not_python/1"),
    "1 no item": ({}, {"plan": [{"plan": ["x"]}]}, f"{PLAN} no_plan/1"),
    "1 2 4.4 at once": ({}, {}, f"{FIRST} {REST} judge success/0"),
    "1 2 4.3 append": ({}, {"execute": [HALF, GREEN]}, f"{FIRST} {REST} judge {MORE} {REST} judge success/0"),
    "2 4.2 fix": ({}, {"execute": [FAILS, GREEN]}, f"{FIRST} {REST} judge develop:fix {REST} judge success/0"),
    "2 4.2 error": ({}, {"execute": [ERROR, GREEN]}, f"{FIRST} {REST} judge develop:fix {REST} judge success/0"),
    "2 4.2 syntax": ({}, {"execute": [CRASH, GREEN]}, f"{FIRST} {REST} judge develop:syntax {REST} judge success/0"),
    "4.1": ({"max_iterations": 1}, {"execute": [HALF]}, f"{FIRST} {REST} judge timeout/1"),
    "4.1 failing": ({"max_iterations": 1}, {"execute": [FAILS]}, f"{FIRST} {REST} judge timeout/1"),
    "4.4 last": ({"max_iterations": 1}, {}, f"{FIRST} {REST} judge success/0"),
    "4 mutants": (
        {"mutation": True},
        {"execute": [HALF, GREEN]},
        f"{FIRST} {REST} mutants judge {MORE} {REST} judge success/0",
    ),
    "4 no score": (SCORED, {"mutants": [NOT_SCORED]}, f"{FIRST} {REST} mutants judge success/0"),
    "4 low score": (
        {**SCORED, "max_iterations": 2},
        {},
        f"{FIRST} {REST} mutants judge {MORE} {REST} mutants judge timeout/1",
    ),
    "5.4 winner": (DUEL, {}, f"{PAIR} take judge success/0"),
    "5.1": ({**DUEL, "max_iterations": 1}, {"candidates": [candidates(CRASH, FAILS)]}, f"{PAIR} take judge timeout/1"),
    "5.2": (
        DUEL,
        {"candidates": [candidates(FAILS, FAILS), candidates(GREEN, GREEN)]},
        f"{PAIR} take judge candidates:fix compare take judge success/0",
    ),
    "5.3": (
        DUEL,
        {"candidates": [candidates(HALF, HALF), candidates(GREEN, GREEN)]},
        f"{PAIR} take judge {LATER} take judge success/0",
    ),
    "5 merged": (MERGES, {"merge": [MERGED]}, f"{PAIR} merge execute weigh judge success/0"),
    "5 not merged": (MERGES, {"merge": [NOT_MERGED]}, f"{PAIR} merge take judge success/0"),
    "5 one crashes": (MERGES, {"candidates": [candidates(CRASH, GREEN)]}, f"{PAIR} take judge success/0"),
    "5 one answer": (MERGES, {"candidates": [candidates(None, GREEN)]}, f"{PAIR} take judge success/0"),
    "5 no answer": (DUEL, {"candidates": [candidates(None, None)]}, f"{PAIR} no_candidate/1"),
    "5 conflict": (DUEL, {"take": [{"status": "conflicts"}]}, f"{PAIR} take conflicts/1"),
}


@pytest.fixture(scope="module")
def flow() -> FlowSpec:
    return shipped_team("testgen-rounds").flows["testgen-rounds"]


def way(case: str, flow: FlowSpec, context: MakeContext) -> list[str]:
    inputs, results, _ = WAYS[case]
    script = Script(results, context)
    script.walk(flow, **inputs)
    return script.way


@pytest.mark.parametrize("case", WAYS)
def test_results_decide_the_way(case: str, flow: FlowSpec, make_context: MakeContext) -> None:
    assert " ".join(way(case, flow, make_context)) == WAYS[case][-1]


def test_no_edge_of_the_flow_is_left_out(flow: FlowSpec, make_context: MakeContext) -> None:
    edges = {
        (step.id, route.to or f"{route.end}/{route.exit or 0}")
        for index, step in enumerate(flow.steps)
        for route in ways_out(flow, index)
    }
    ways = [[step.partition(":")[0] for step in way(case, flow, make_context)] for case in WAYS]
    assert {edge for each in ways for edge in pairwise(each)} == edges


def test_reason_against_a_merge_is_that_of_its_round(flow: FlowSpec, make_context: MakeContext) -> None:
    script = Script(
        {"merge": [NOT_MERGED], "candidates": [candidates(HALF, HALF), candidates(CRASH, GREEN)]}, make_context
    )
    rounds = script.walk(flow, **MERGES).vars["state"]["rounds"]
    assert [each["chosen"]["not_merged"] for each in rounds] == ["too slow", ""]


def test_mutants_of_an_earlier_round_do_not_count(flow: FlowSpec, make_context: MakeContext) -> None:
    script = Script({"execute": [HALF, GREEN]}, make_context)
    rounds = script.walk(flow, mutation=True).vars["state"]["rounds"]
    assert [each["mutation_score"] for each in rounds] == [50.0, None]


def test_plan_keeps_its_items_and_reports_refused_ones(flow: FlowSpec, make_context: MakeContext) -> None:
    script = Script({"plan": [{"plan": [P1]}, {"plan": [P1, item("P2", "2")]}], "execute": [HALF, GREEN]}, make_context)
    state = script.walk(flow)
    merged = state.steps["merge_plan"].output
    assert [each["id"] for each in state.vars["state"]["plan"]] == ["P1", "P2"]
    assert (merged["added"], [each["reason"] for each in merged["refused"]]) == (["P2"], ["the id P1 is taken"])


def test_results_of_a_round_are_in_the_next_prompt(flow: FlowSpec, make_context: MakeContext) -> None:
    script = Script({"execute": [CRASH, FAILS, GREEN]}, make_context)
    script.walk(flow)
    _, _, crashed, failed = script.prompts
    assert "MODE: syntax" in crashed
    assert "REPORT:\nline 1\n" in crashed
    assert "MODE: fix" in failed
    assert "test_p1_one: 1 == 2" in failed
    assert f"TESTS SO FAR:\n{CODE}" in failed


def test_developer_that_gives_in_is_told_to_restore_the_assertion(flow: FlowSpec, make_context: MakeContext) -> None:
    asserts = ({**FILE, "status": "written", "content": CODE.replace("== 1", f"== {value}")} for value in (1, 2, 1))
    fails = {**FAILS, "failures": [{"test": "tests.test_one::test_p1_one", "message": "2 == 1"}]}
    script = Script({"write": [*asserts], "execute": [fails, GREEN, GREEN]}, make_context)
    rounds = script.walk(flow).vars["state"]["rounds"]
    assert [each["status"] for each in rounds] == ["kept", "rolled back", "kept"]
    assert "Restore them" in script.prompts[-1]


def test_what_is_not_reached_is_in_the_next_plan(flow: FlowSpec, make_context: MakeContext) -> None:
    plans: list[Record] = [{"plan": [P1]}, {"plan": [item("P2", "2")]}]
    script = Script({"plan": plans, "execute": [HALF, GREEN]}, make_context)
    script.walk(flow, mutation=True)
    replan, append = script.prompts[2:4]
    for words in ("one.py: lines 2", "Coverage: 50.0 %", CODE, "def one():", "SURVIVING MUTANTS", "line 1:\n-1\n+2"):
        assert words in replan
    assert "MODE: append" in append
    assert "for the items P2." in append


def test_missing_tests_and_assertions_are_in_the_next_prompt(flow: FlowSpec, make_context: MakeContext) -> None:
    idle = {**FILE, "status": "written", "content": "def test_p1_one():\n    one()\n"}
    both = {**FILE, "status": "written", "content": CODE + CODE.replace("p1", "p2")}
    script = Script({"plan": [{"plan": [P1, item("P2", "2")]}], "write": [idle, both]}, make_context)
    script.walk(flow)
    fix = script.prompts[2]
    assert "write one for each: P2" in fix
    assert "make each assert what the plan expects: test_p1_one" in fix


def test_plan_that_does_not_match_its_schema_is_refused() -> None:
    """Unknown fields are dropped."""
    catalog = shipped_team("testgen-rounds").catalog
    (schema,) = (role.output_schema for role in catalog.roles if role.name == "test_planner")
    assert "target" in read_reply(json.dumps({"plan": [{**P1, "target": 1}]}), schema).problem
    reply = read_reply(json.dumps({"plan": [{**P1, "colour": "red"}]}), schema)
    assert (reply.handoff, reply.corrections) == ({"plan": [P1]}, ("$.plan[0].colour dropped",))
