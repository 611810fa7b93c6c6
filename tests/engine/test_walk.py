"""The way through a flow: routes, variables, retries, calls, fan-outs, needs, bounds. No process is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps.ask import Ask
from tests.support.scripted import FAILS, Play, Said, Script, Walked
from tests.support.teams import read


def walk(folder: Path, steps: list[Json], *plays: Play, **more: Json) -> Walked:
    """The walk of a flow with the role ``one``, which answers with ``plays``."""
    return Script(folder, {"one": plays or ({},)}).walk({"steps": steps, **more})


def outcome(walked: Walked) -> tuple[str, int]:
    return walked.ending.outcome, walked.ending.exit_code


# Routes and ends.


def test_condition_error_ends_the_walk_with_its_location(tmp_path: Path) -> None:
    steps = [{"ask": "one", "next": [{"when": "steps.one.verdict.grade > 1", "end": "ok"}]}]
    walked = walk(tmp_path, steps)
    assert (walked.ending.status, walked.ending.exit_code) == ("failed", 3)
    assert "next[0].when" in walked.ending.reason


@pytest.mark.parametrize(
    ("keys", "answer"), [({}, "steps.one"), ({"for_each": ["a"]}, "steps.one.results[0]"), ({}, "roles.one")]
)
def test_flow_can_route_on_a_status_that_its_role_answers(tmp_path: Path, keys: Json, answer: str) -> None:
    place = answer if answer == "roles.one" else f"{answer}.handoff"
    when = f"{place}.status == 'blocked' and {place}.error == 'no key'"
    steps = [{"ask": "one", **keys, "next": [{"when": when, "end": "blocked", "exit": 1}, {"end": "missed"}]}]
    assert walk(tmp_path, steps, {"status": "blocked", "error": "no key"}).ending.outcome == "blocked"


FORK = "fork RUN --from a -i most={{ inputs.most * 2 }}"


@pytest.mark.parametrize(
    ("route", "suggestion", "reason"),
    [
        ({}, "fork RUN --from ask:1", "own finished: bad"),
        ({"suggest": FORK, "reason": "it said {{ roles.one.summary }}"}, "fork RUN --from a -i most=6", "it said no"),
        ({"reason": "{{ roles.one.summary | sum }}"}, "fork RUN --from ask:1", "own finished: bad"),
    ],
)  # fmt: skip
def test_flow_without_cycles_suggests_what_it_says_itself(
    tmp_path: Path, route: Json, suggestion: str, reason: str
) -> None:
    step = {"id": "ask", "ask": "one", "next": [{"end": "bad", "exit": 1, **route}]}
    walked = walk(tmp_path, [step], {"summary": "no"}, inputs={"most": 3})
    assert (*outcome(walked), walked.ending.reason) == ("bad", 1, reason)
    assert walked.ending.suggestion == suggestion


# Retries.


def test_failure_is_tried_again_as_often_as_declared(tmp_path: Path) -> None:
    steps = [{"id": "it", "ask": "one", "retry": {"attempts": 3, "backoff_seconds": 0}}]
    walked = walk(tmp_path, steps, FAILS, FAILS, {"summary": "third"})
    assert (outcome(walked), [each.tolerate for each in walked.asks]) == (("success", 0), [True, True, False])


# Reviews.


@pytest.mark.parametrize(
    ("tasks", "said", "given", "warning"),
    [
        (["sort", "\ud800 count"], Said(), ["sort", "? count"], ""),
        (["sort", "count"], Said(values={"tasks": ["count"]}), ["count"], ""),
        ([1], Said(False), [], "ok.1: default left out: tasks[0]: 1 is not of type 'string'"),
        (["x" * 100_001], Said(False), [], "ok.1: default left out: tasks: too long"),
    ],
)
def test_default_of_a_field_is_what_a_role_answered_until_a_person_edits_it(
    tmp_path: Path, tasks: object, said: Said, given: list[str], warning: str
) -> None:
    field = {"type": "array", "items": {"type": "string"}, "default": "{{ steps.plan.tasks }}"}
    after = {"seconds": 3600, "answer": "approve"}
    steps: list[Json] = [
        {"id": "plan", "ask": "one"},
        {"id": "ok", "review": {"question": "Good?", "fields": {"tasks": field}, "after": after}},
        {"id": "work", "ask": "one", "for_each": {"items": "{{ steps.ok.tasks }}", "max_items": 5}},
    ]
    walked = Script(tmp_path, {"one": [{"tasks": tasks}]}, answers=[said]).walk({"steps": steps})
    assert [each.payload for each in walked.asks[1:]] == [{"item": each} for each in given]
    assert "".join(walked.warnings) == warning
    [question] = tmp_path.rglob("ok.1.json")
    assert read(question)["default"] == ("reject" if warning else "approve")


# Called flows.


def test_called_flow_has_its_own_state_and_returns_its_outcome(tmp_path: Path) -> None:
    routes = [
        {"when": "steps.sub.outcome == 'inner_end' and steps.sub.vars.count == 2", "end": "good"},
        {"end": "bad", "exit": 1},
    ]
    steps = [{"id": "sub", "call": "inner", "with": {"word": "{{ goal }}"}, "next": routes}]
    inner: Json = {
        "name": "inner",
        "inputs": {"word": {"required": True}},
        "vars": {"count": 0},
        "steps": [
            {
                "ask": "one",
                "prompt": "Say {{ inputs.word }}.",
                "set": {"count": "{{ vars.count + 1 }}"},
                "limits": {"visits": 5},
                "next": [{"when": "vars.count < 2", "to": "one"}, {"end": "inner_end", "exit": 1}],
            }
        ],
    }
    walked = Script(tmp_path, {"one": [{}]}).walk({"steps": steps}, inner)
    assert outcome(walked) == ("good", 0)
    assert [each.task for each in walked.asks] == ["Say reach it."] * 2
    assert [entry.role for entry in walked.state.history] == ["one", "one"]


def test_of_a_called_flow_its_caller_sees_the_outputs_alone(tmp_path: Path) -> None:
    inner = {
        "name": "inner",
        "outputs": ["shown"],
        "steps": [{"id": step, "ask": "one"} for step in ("hidden", "shown")],
    }
    seen = "steps.inner.steps.shown.summary == 'well' and 'hidden' not in steps.inner.steps"
    steps = [{"call": "inner", "next": [{"when": seen, "end": "as_declared"}, {"end": "otherwise", "exit": 1}]}]
    walked = Script(tmp_path, {"one": [{"summary": "well"}]}).walk({"steps": steps}, inner)
    assert walked.ending.outcome == "as_declared"


TWICE: Json = {"for_each": {"items": [1, 2], "concurrency": 2}}


@pytest.mark.parametrize(
    ("keys", "outputs", "handed"),
    [
        ({}, None, "last of inner 1"),
        ({}, ["one"], "first of inner 1"),
        ({}, [], "outside"),
        (TWICE, None, "last of inner"),
        (TWICE, ["one"], "first of inner"),
        (TWICE, [], "outside"),
    ],
)
def test_role_after_call_starts_from_called_flows_outputs(
    tmp_path: Path, keys: Json, outputs: list[str] | None, handed: str
) -> None:
    """It does not start from the handoff before the call, or from an older one of the role asked last."""

    def item(question: Ask) -> int:
        return int(question.unit.split("/")[0].rpartition(".")[2]) + 1 if keys else 1

    plays: dict[str, list[Play]] = {
        "one": [{"summary": "outside"}, lambda question: {"summary": f"first of inner {item(question)}"}],
        "two": [lambda question: {"summary": f"last of inner {item(question)}"}],
        "three": [{"summary": "end"}],
    }
    inner: Json = {"name": "inner", "steps": [{"ask": "one"}, {"ask": "two"}]}
    inner |= {} if outputs is None else {"outputs": outputs}
    steps = [{"ask": "one"}, {"call": "inner", **keys}, {"ask": "three"}]
    walked = Script(tmp_path, plays).walk({"steps": steps}, inner)
    called = ["one", "two"] * (2 if keys else 1)
    assert [entry.role for entry in walked.state.history] == ["one", *called, "three"]
    every = {"results": [{"summary": f"{handed} {number}"} for number in (1, 2)]}
    assert walked.asks[-1].payload == (every if keys and outputs != [] else {"summary": handed})


def test_handoffs_of_a_failed_called_flow_are_in_the_state(tmp_path: Path) -> None:
    inner = {"name": "inner", "steps": [{"ask": "one"}, {"ask": "two"}]}
    walked = Script(tmp_path, {"one": [{"summary": "first"}], "two": [FAILS]}).walk(
        {"steps": [{"call": "inner"}]}, inner
    )
    assert walked.ending.exit_code == 3
    assert [entry.role for entry in walked.state.history] == ["one"]


# Fan-outs.


def each(items: object, **more: object) -> Json:
    """A step over ``items``; ``more``: other keys of its `for_each`."""
    return {"id": "solve", "ask": "one", "for_each": {"items": items, **more}, "with": {"item": "{{ item }}"}}


def did(question: Ask) -> Json:
    return {"summary": f"did {(question.payload or {})['item']}"}


def test_list_may_be_a_template_of_a_handoff(tmp_path: Path) -> None:
    steps = [
        {"id": "plan", "ask": "one"},
        each("{{ steps.plan.todos }}", max_items=5, concurrency="{{ inputs.at_once }}"),
    ]
    walked = walk(tmp_path, steps, {"todos": ["x", "y"]}, did, inputs={"at_once": 2})
    assert [result["summary"] for result in walked.state.steps["solve"].output["results"]] == ["did x", "did y"]


def test_more_items_than_declared_end_the_run(tmp_path: Path) -> None:
    steps = [{"id": "plan", "ask": "one"}, each("{{ steps.plan.todos }}", max_items=1)]
    walked = walk(tmp_path, steps, {"todos": ["x", "y"]})
    assert walked.ending.exit_code == 3
    assert "max_items is 1" in walked.ending.reason


def test_concurrency_that_only_the_run_knows_is_checked_by_it(tmp_path: Path) -> None:
    steps = [{"id": "plan", "ask": "one"}, each(["a"], concurrency="{{ steps.plan.at_once }}")]
    walked = walk(tmp_path, steps, {"at_once": 0})
    assert walked.ending.exit_code == 3
    assert "concurrency" in walked.ending.reason


# Items that need others.


def task(name: str, *needs: str) -> Json:
    return {"id": name, "needs": list(needs)}


def chain(folder: Path, tasks: list[Json], *plays: Play, **more: object) -> Walked:
    given = {"task": "{{ item.id }}", "from": "{{ needed | map(attribute='summary') | list }}"}
    after = [{"when": "steps.solve.failed", "end": "partly", "exit": 1}, {"end": "all"}]
    step = each(tasks, **{"needs": "{{ item.needs }}", "allow": ["failed"], **more})
    return walk(folder, [{**step, "next": after, "with": given}], *plays)


def test_item_starts_after_its_needs_and_receives_their_results(tmp_path: Path) -> None:
    def play(question: Ask) -> Json:
        return {"summary": (question.payload or {})["task"].lower()}

    walked = chain(tmp_path, [task("C", "A", "B"), task("A"), task("B", "A")], play, concurrency=3)
    assert outcome(walked) == ("all", 0)
    given = [(question.payload or {}) for question in walked.asks]
    assert [(each["task"], each["from"]) for each in given] == [("A", []), ("B", ["a"]), ("C", ["a", "b"])]


def test_item_whose_need_failed_is_skipped_and_stays_visible(tmp_path: Path) -> None:
    walked = chain(tmp_path, [task("A"), task("B", "A"), task("C"), task("D", "B")], FAILS, {}, {"summary": "c"}, {})
    assert outcome(walked) == ("partly", 1)
    results = walked.state.steps["solve"].output["results"]
    assert [result["status"] for result in results] == ["failed", "skipped", "done", "skipped"]
    assert [results[1]["error"], results[3]["error"]] == ["not started: it needs A", "not started: it needs B"]
    assert len(walked.asks) == 2


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        ([task("A", "B"), task("B", "A")], "items depend on each other: A -> B -> A"),
        ([task("A"), task("A")], "every item must have a unique id, but the ids are: A, A"),
        ([task("A", "Z")], "A needs ['Z']: must be a list of item ids"),
        ([1], "every item must have a unique id"),
    ],
)
def test_needs_that_cannot_be_met_are_named(tmp_path: Path, tasks: list[Json], problem: str) -> None:
    walked = chain(tmp_path, tasks, needs="{{ item.needs | default([]) }}")
    assert walked.ending.exit_code == 2
    assert problem in walked.ending.reason


def test_item_that_cannot_be_merged_is_not_chosen_and_nobody_gets_its_answer(tmp_path: Path) -> None:
    """The better of two attempts has conflicts."""
    write = {"id": "write", "ask": "one", "for_each": {"items": [1, 2], "allow": ["failed"]}, "isolate": "worktree"}
    by = [{"key": "score", "prefer": "highest"}]
    choose = {"id": "best", "check": "choose", "with": {"candidates": "{{ steps.write.results }}", "by": by}}
    conflict = {"status": "conflicts", "conflicts": [{"path": "a.txt", "kind": "content"}]}
    plays: dict[str, list[Play]] = {"one": [{"score": 1}, {"score": 2}], "two": [{"summary": "end"}]}
    script = Script(tmp_path, plays, merges={"write": [{}, conflict]})
    walked = script.walk({"steps": [write, choose, {"ask": "two"}]})
    assert walked.ending.outcome == "success", walked.ending
    assert walked.state.steps["best"].output["index"] == 0
    given = walked.asks[-1].payload or {}
    assert given["results"][0] == {"score": 1}
    assert "could not be merged: a.txt (content)" in given["results"][1]["error"]
    assert given["steps"]["best"]["winner"]["score"] == 1
