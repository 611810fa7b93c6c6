"""Every edge of the flow ``testgen-rounds`` is walked: the shipped YAML and the real check, with scripted figures.

The sections are those of the diagrams that the system was drawn from: 1 the planner, 2 the
developer, 4 one developer, 5 the duel; 3, the executor, is in the tests of the check ``coverage``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.errors import RoleFailed
from codex_multi_role.replies import read_reply
from codex_multi_role.steps.ask import Ask
from tests.support.generation import item
from tests.support.paths import shipped_team
from tests.support.scripted import Script, Walked, routes_of
from tests.support.teams import Record

MODE = re.compile("from scratch|Improve|MODE: (.*)")
P1 = item("P1", "1", "one")
CODE = "def test_one():\n    assert one() == 1\n"
FILE = {"path": "tests/test_one.py", "content": CODE}
GREEN: Record = {
    **{"status": "passed", "reason": "", "crashed": False, "passed": 1, "failed": 0, "errors": 0, "failures": []},
    **{"coverage": 100.0, "uncovered": [], "output_tail": ""},
}
HALF = {**GREEN, "coverage": 50.0, "uncovered": [{"file": "one.py", "lines": "2", "branches": ""}]}
FAILS = {**GREEN, "status": "failed", "failed": 1, "failures": [{"test": "test_one", "message": "1 == 2"}]}
ERROR = {**GREEN, "status": "failed", "passed": 0, "errors": 1}
CRASH = {**GREEN, "status": "syntax error", "reason": "line 1", "crashed": True, "passed": 0, "coverage": None}
NOT_SCORED = {"status": "could not run", "reason": "no mutmut"}
SCORE = {"status": "ok", "mutants": 2, "score_percent": 50.0, "survivors": [{"line": 1, "diff": "-1\n+2"}]}
MERGED = {**SCORE, "status": "merged", "reason": "", "files": [FILE], "candidates": [], "merged": {}, "dropped": []}
NOT_MERGED = {"status": "timed out", "reason": "too slow"}


Results = Mapping[str, Sequence[Any]]


def walk(folder: Path, results: Results, **inputs: object) -> Walked:
    """``results``: by step, of those that vary one per visit, the last one for all further visits.

    Of ``candidates``, what the tests of both developers come to; None if one has no answer.
    """
    pairs = results.get("candidates", [(GREEN, HALF)])

    def measured(key: str) -> Record | None:
        _, visit, index = key.partition("/")[0].split(".")
        found: Record | None = pairs[min(int(visit), len(pairs)) - 1][int(index)]
        return found

    def develop(asked: Ask) -> Record | RoleFailed:
        is_missing = asked.unit.startswith("candidates") and measured(asked.unit) is None
        return RoleFailed("no", "bad_request") if is_missing else {"code": CODE}

    checks: dict[str, Sequence[Any]] = {**USUAL, **results}
    checks |= {f"candidates/{name}": checks[name] for name in ("source", "write")}
    checks["candidates/source"] = [{"status": "read", "content": ""}]
    checks["candidates/execute"] = [lambda unit: measured(unit.key)]
    plays = {"test_planner": checks["plan"], "test_developer": [develop], "test_developer_2": [develop]}
    script = Script(folder, plays, checks, computed=["testgen_state"])
    given = {"file": "one.py", "module": "one", "tests": "tests/test_one.py", "mutation": False, **inputs}
    return played("testgen-rounds", script, given)


def played(name: str, script: Script, inputs: Record) -> Walked:
    team = shipped_team(name)
    return script.walk_loaded(name, *team, inputs, contracts=team.contracts)


def way(walked: Walked) -> str:
    """The steps that were taken, with the mode in which a role was asked, and the end."""
    asked = {tuple(ask.unit.partition("/")[0].split(".")[:2]): MODE.search(ask.task) for ask in walked.asks}
    visits, steps = Counter[str](), list[str]()
    for step in (each for each in walked.path if "/" not in each):
        visits[step] += 1
        mode = asked.get((step, str(visits[step])))
        steps.append(f"{step}:{mode[1] or mode[0].split()[-1]}" if mode else step)
    return f"{' '.join(steps)} {walked.ending.outcome}/{walked.ending.exit_code}"


def rounds(walked: Walked) -> list[Record]:
    found: list[Record] = walked.state.vars["state"]["rounds"]
    return found


FACTS = {
    **{"status": "read", "content": "def one():\n    return 1\n\n\ndef two():\n    return 2\n"},
    **{"docstrings": "", "readme": "", "callers": "", "tests": [], "test_names": [], "example": ""},
}


HELD = {name: {"verdict": "holds", "got": "", "reason": ""} for name in ("P1", "P2")}
ITEMS: Record = {"status": "judged", "verdicts": HELD, "doubted": []}
UNKNOWN = {**ITEMS, "verdicts": {"P1": {"verdict": "cannot be evaluated", "got": "", "reason": "no file"}}}
FALSE = {"P1": {"verdict": "does not hold", "got": "2", "reason": ""}}
DOUBTED = {**ITEMS, "verdicts": FALSE, "doubted": [{**P1, **FALSE["P1"], "expected": "1", "quote": "", "test": ""}]}


USUAL: dict[str, list[Any]] = {
    "items": [ITEMS],
    "source": [FACTS],
    "plan": [{"plan": [P1]}],
    "write": [{"status": "written", **FILE}],
    "execute": [GREEN],
    "mutants": [SCORE],
    "take": [{"status": "merged"}],
}
PLAN = "source plan:scratch merge_plan"
JUDGED, MORE = f"{PLAN} items doubted", "plan:Improve merge_plan items doubted develop:append"
FIRST, REST = f"{JUDGED} develop:generate", "write execute weigh"
PAIR, LATER = f"{JUDGED} candidates:generate compare", "plan:Improve merge_plan items doubted candidates:append compare"
DUEL: Record = {"duel": True}
MERGES: Record = {"duel": True, "mutation": True}
SCORED: Record = {"mutation": True, "target_mutation_score": 60}
# sections and case: inputs, results other than the usual ones, the way
WAYS: dict[str, tuple[Record, Results, str]] = {
    "no Python": ({"problem": "too large"}, {}, "source not_python/1"),
    "1 no item": ({}, {"plan": [{"plan": ["x"]}]}, f"{PLAN} no_plan/1"),
    "nothing left": ({"existing": {"coverage": 100.0, "lines": [], "branches": []}}, {}, "source covered/0"),
    "omitted": ({"existing": {"coverage": 0.0, "places": 0}}, {}, "source omitted/1"),
    "1 doubted": (
        {},
        {"items": [DOUBTED], "plan": [{"plan": [P1]}, {"withdrawn": []}]},
        f"{PLAN} items confirm doubted develop:generate {REST} judge success/0",
    ),
    "1 2 4.4 at once": ({}, {}, f"{FIRST} {REST} judge success/0"),
    "1 2 4.3 append": ({}, {"execute": [HALF, GREEN]}, f"{FIRST} {REST} judge {MORE} {REST} judge success/0"),
    "2 4.2 fix": ({}, {"execute": [FAILS, GREEN]}, f"{FIRST} {REST} judge develop:fix {REST} judge success/0"),
    "2 4.2 not asserted": (
        {},
        {"items": [UNKNOWN], "write": [{**FILE, "content": CODE.replace("== 1", "!= 2")}, FILE]},
        f"{FIRST} {REST} judge develop:fix {REST} judge success/0",
    ),
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
    "5.1": ({**DUEL, "max_iterations": 1}, {"candidates": [(CRASH, FAILS)]}, f"{PAIR} take judge timeout/1"),
    "5.2": (
        DUEL,
        {"candidates": [(FAILS, FAILS), (GREEN, GREEN)]},
        f"{PAIR} take judge candidates:fix compare take judge success/0",
    ),
    "5.3": (
        DUEL,
        {"candidates": [(HALF, HALF), (GREEN, GREEN)]},
        f"{PAIR} take judge {LATER} take judge success/0",
    ),
    "5 merged": (MERGES, {"merge": [MERGED]}, f"{PAIR} merge execute weigh judge success/0"),
    "5 not merged": (MERGES, {"merge": [NOT_MERGED]}, f"{PAIR} merge take judge success/0"),
    "5 one crashes": (MERGES, {"candidates": [(CRASH, GREEN)]}, f"{PAIR} take judge success/0"),
    "5 one answer": (MERGES, {"candidates": [(None, GREEN)]}, f"{PAIR} take judge success/0"),
    "5 no answer": (DUEL, {"candidates": [(None, None)]}, f"{PAIR} no_candidate/1"),
    "5 conflict": (DUEL, {"take": [{"status": "conflicts"}]}, f"{PAIR} take conflicts/1"),
}


WALKED: dict[str, Walked] = {}
"""By case, what this process has walked."""


def walked(case: str, folder: Path) -> Walked:
    inputs, results, _ = WAYS[case]
    if case not in WALKED:
        WALKED[case] = walk(folder, results, **inputs)
    return WALKED[case]


@pytest.mark.parametrize("case", WAYS)
def test_results_decide_the_way(case: str, tmp_path: Path) -> None:
    assert way(walked(case, tmp_path)) == WAYS[case][-1]


def test_no_edge_of_the_flow_is_left_out(tmp_path: Path) -> None:
    taken = {route for case in WAYS for route in walked(case, tmp_path / case).routes}
    assert routes_of(shipped_team("testgen-rounds").flows["testgen-rounds"]) - taken == set()


def test_reason_against_a_merge_is_that_of_its_round(tmp_path: Path) -> None:
    walked = walk(tmp_path, {"merge": [NOT_MERGED], "candidates": [(HALF, HALF), (CRASH, GREEN)]}, **MERGES)
    assert [each["chosen"]["not_merged"] for each in rounds(walked)] == ["too slow", ""]


def test_mutants_of_an_earlier_round_do_not_count(tmp_path: Path) -> None:
    walked = walk(tmp_path, {"execute": [HALF, GREEN]}, mutation=True)
    assert [each["mutation_score"] for each in rounds(walked)] == [50.0, None]


def test_plan_keeps_its_items_and_reports_refused_ones(tmp_path: Path) -> None:
    state = walk(
        tmp_path, {"plan": [{"plan": [P1]}, {"plan": [P1, item("P2", "2", "two")]}], "execute": [HALF, GREEN]}
    ).state
    merged = state.steps["merge_plan"].output
    assert [each["id"] for each in state.vars["state"]["plan"]] == ["P1", "P2"]
    assert (merged["added"], [each["reason"] for each in merged["refused"]]) == (["P2"], ["the id P1 is taken"])


def test_results_of_a_round_are_in_the_next_prompt(tmp_path: Path) -> None:
    _, _, crashed, failed = (ask.task for ask in walk(tmp_path, {"execute": [CRASH, FAILS, GREEN]}).asks)
    assert "MODE: syntax" in crashed
    assert "REPORT:\nline 1\n" in crashed
    assert "MODE: fix" in failed
    assert "test_one: 1 == 2" in failed
    assert f"TESTS SO FAR:\n{CODE}" in failed


def test_developer_that_gives_in_is_told_to_restore_the_assertion(tmp_path: Path) -> None:
    asserts = ({**FILE, "status": "written", "content": CODE.replace("== 1", f"== {value}")} for value in (1, 2, 1))
    fails = {**FAILS, "failures": [{"test": "tests.test_one::test_one", "message": "2 == 1"}]}
    walked = walk(tmp_path, {"write": [*asserts], "execute": [fails, GREEN, GREEN]})
    assert [each["status"] for each in rounds(walked)] == ["kept", "rolled back", "kept"]
    assert "Restore them" in walked.asks[-1].task


def test_what_is_not_reached_is_in_the_next_plan(tmp_path: Path) -> None:
    plans: list[Record] = [{"plan": [P1]}, {"plan": [item("P2", "2", "two")]}]
    asks = walk(tmp_path, {"plan": plans, "execute": [HALF, GREEN]}, **SCORED).asks
    replan, append = (ask.task for ask in asks[2:4])
    for words in ("one.py: lines 2", "Coverage: 50.0 %", CODE, "def one():", "SURVIVING MUTANTS", "line 1:\n-1\n+2"):
        assert words in replan
    assert "MODE: append" in append
    assert "for the items P2 and the lines 2." in append


def test_missing_tests_and_assertions_are_in_the_next_prompt(tmp_path: Path) -> None:
    idle = {**FILE, "status": "written", "content": "def test_one():\n    one()\n"}
    both = {**FILE, "status": "written", "content": CODE + CODE.replace("p1", "p2")}
    fix = walk(tmp_path, {"plan": [{"plan": [P1, item("P2", "2", "two")]}], "write": [idle, both]}).asks[2].task
    assert "write one for each: P2" in fix
    assert "make each assert what the plan expects: test_one" in fix


def test_plan_that_does_not_match_its_schema_is_refused() -> None:
    """Unknown fields are dropped."""
    (schema,) = (
        role.output_schema for role in shipped_team("testgen-rounds").catalog.roles if role.name == "test_planner"
    )
    assert "call" in read_reply(json.dumps({"plan": [{**P1, "call": 1}]}), schema).problem
    reply = read_reply(json.dumps({"plan": [{**P1, "colour": "red"}]}), schema)
    assert (reply.handoff, reply.corrections) == ({"plan": [P1]}, ("$.plan[0].colour dropped",))


@pytest.mark.parametrize(
    ("verdict", "outcome", "exit_code", "suggestion"),
    [
        ("incomplete", "incomplete", 1, "fork RUN --from rounds"),
        ("timeout", "timeout", 1, "show RUN --result"),
        ("suspected bugs", "suspected_bugs", 1, "show RUN --result"),
        ("success", "success", 0, ""),
    ],
)
def test_rounds_red_tests_and_mutants_out_of_time_are_judged_at_the_end(
    tmp_path: Path, verdict: str, outcome: str, exit_code: int, suggestion: str
) -> None:
    """The steps of ``testgen`` only measure: the last one judges, and says so.

    A bug and what is left when the iterations are used up are looked at before anything is paid for again.
    """
    file = {"file": "a.py", "module": "a", "tests": "tests/test_a.py", "problem": ""}
    checks = {
        "files": [{"status": "found", "reason": "", "files": [file, file]}],
        "rounds/source": USUAL["source"],
        "existing": [{"status": "no tests", "files": {}}],
        "finish": [{"status": "failed", "reason": "1 failed", "files": []}],
        "mutants": [{"status": "timed out", "reason": ""}],
        "results": [{"status": verdict, "reason": "a.py: incomplete", "bugs": [], "results": [], "existing": {}}],
    }
    script = Script(tmp_path, {"test_planner": [{"plan": []}]}, checks, computed=["testgen_state"])
    walked = played("testgen", script, {"target": "a.py"})
    assert [step for step in walked.path if "/" not in step] == [
        "files",
        "existing",
        "rounds",
        "finish",
        "mutants",
        "results",
    ]
    ending = walked.ending
    assert (ending.outcome, ending.exit_code, ending.suggestion) == (outcome, exit_code, suggestion), ending
