from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role import Step
from codex_multi_role.catalog import FlowSpec, StepSpec, render
from codex_multi_role.catalog.templates import evaluate
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow import FlowState, new_state
from codex_multi_role.flow.fan_out_items import content_of_item
from codex_multi_role.flow.state import StepState
from codex_multi_role.reading.places import Place

PLACE = Place(Path("x.yaml"), ("steps", 0))


def flow_of(*step_ids: str, **keys: Any) -> FlowSpec:
    """A flow of checks; ``keys`` are its ``vars`` and more keys of its first step."""
    variables = keys.pop("vars", {})
    steps = [{"id": step_id, "check": "tests"} for step_id in step_ids]
    return FlowSpec.model_validate(
        {"name": "x", "source": Path("x.yaml"), "vars": variables, "steps": [steps[0] | keys, *steps[1:]]}
    )


def state_of(*step_ids: str, **keys: Any) -> FlowState:
    return new_state(flow_of(*step_ids, **keys), "a goal", {"target": "src"}, 3)


def test_new_state_knows_every_step_and_no_visit() -> None:
    assert state_of("plan", "build").context() == {
        "goal": "a goal",
        "inputs": {"target": "src"},
        "cycle": 0,
        "cycles": 3,
        "vars": {},
        "roles": {},
        "steps": {
            "plan": {"verdict": "", "visits": 0, "status": "not_started", "error": ""},
            "build": {"verdict": "", "visits": 0, "status": "not_started", "error": ""},
        },
    }


@given(entered=st.lists(st.sampled_from(["plan", "build"])))
def test_cycle_is_the_number_of_visits_of_the_first_step(entered: list[str]) -> None:
    state = state_of("plan", "build")
    numbers = [state.enter(step_id) for step_id in entered]
    assert numbers == [entered[: index + 1].count(step_id) for index, step_id in enumerate(entered)]
    assert state.cycle == state.context()["cycle"] == entered.count("plan")


def test_step_shows_what_its_latest_visit_left() -> None:
    """A failure until it is entered again; no answer can pass for the controller's own figures."""
    state = state_of("plan")

    def shown(visits: int, status: str, verdict: str = "", error: str = "") -> bool:
        own = {"verdict": verdict, "visits": visits, "status": status, "error": error}
        return bool(state.context()["steps"]["plan"] == {**state.steps["plan"].output, **own})

    state.enter("plan")
    state.leave("plan", {"tasks": [1], "only_now": True})
    state.enter("plan")
    assert shown(2, "running")
    assert state.context()["steps"]["plan"].items() >= {"tasks": [1], "only_now": True}.items()
    state.leave("plan", {"tasks": [2]})
    assert shown(2, "done")
    assert "only_now" not in state.context()["steps"]["plan"]
    state.leave("plan", {}, error="no answer")
    assert shown(2, "failed", error="no answer")
    state.enter("plan")
    assert shown(3, "running")
    state.leave("plan", {"visits": -9, "status": "great", "error": "none", "summary": "x"})
    assert shown(3, "done", verdict="great")


def test_fields_that_the_figures_hide_are_in_the_handoff() -> None:
    answer = {"status": "great", "summary": "x"}
    step = StepState(asks=True, visits=2, status="done", output=answer).seen()
    conditions = ["steps.plan.handoff.status == 'great'", "steps.plan.handoff.visits is undefined"]
    conditions += ["steps.plan.status == 'done'", "steps.plan['handoff'].summary == 'x'"]
    assert all(evaluate(each, {"steps": {"plan": step}}, "when") for each in conditions)
    assert render("{{ steps.plan }}", {"steps": {"plan": step}}, "with")["handoff"] == answer


def test_answer_that_nothing_hides_is_shown_once() -> None:
    """A prompt that holds the step does not hold the answer twice."""
    step = StepState(asks=True, visits=1, status="done", output={"summary": "x"}).seen()
    assert evaluate("steps.plan.handoff.summary == 'x'", {"steps": {"plan": step}}, "when")
    assert "handoff" not in render("{{ steps.plan }}", {"steps": {"plan": step}}, "with")
    check = StepState(visits=1, status="done", output={"status": "passed"}).seen()
    assert "handoff" not in check
    assert check["verdict"] == "passed"


def test_role_shows_latest_handoff_and_history_lists_all() -> None:
    state = state_of("plan")
    state.absorb_handoff("planner", "planner", 1, {"summary": "one"})
    state.absorb_handoff("developer", "developer", 1, {"summary": "two"})
    state.absorb_handoff("planner", "planner", 2, {"summary": "three"})
    assert state.context()["roles"] == {"planner": {"summary": "three"}, "developer": {"summary": "two"}}
    assert [(entry.role, entry.turn) for entry in state.history] == [("planner", 1), ("developer", 1), ("planner", 2)]


@given(asked=st.lists(st.sampled_from(["planner", "developer"])))
def test_asks_are_numbered_for_each_role(asked: list[str]) -> None:
    state = state_of("plan")
    numbers = [(role, state.next_ask(role)) for role in asked]
    assert numbers == [(role, asked[: index + 1].count(role)) for index, role in enumerate(asked)]


def test_context_is_plain_data() -> None:
    state = state_of("plan")
    state.leave("plan", {"passed": 2})
    context = state.context()
    assert json.loads(json.dumps(context)) == context
    assert context["steps"]["plan"]["passed"] == 2


def test_variables_begin_with_what_the_run_was_given() -> None:
    first = {"rounds": 0, "files": ["{{ inputs.target }}"], "note": "{{ goal }}, {{ cycles }} cycles"}
    state = state_of("plan", vars=first)
    assert state.context()["vars"] == {"rounds": 0, "files": ["src"], "note": "a goal, 3 cycles"}
    with pytest.raises(DefinitionError, match=r"^x\.yaml: vars\.a: "):
        state_of("plan", vars={"a": "{{ inputs.missing }}"})


def test_variables_are_set_all_at_once() -> None:
    keys = {"vars": {"new": 1, "old": 0}, "set": {"old": "{{ vars.new }}", "new": "{{ vars.new + steps.plan.found }}"}}
    state = state_of("plan", **keys)
    state.leave("plan", {"found": 4})
    state.set_vars(flow_of("plan", **keys).steps[0], PLACE)
    assert state.vars == {"new": 5, "old": 1}
    failing = flow_of("plan", vars={"new": 1}, set={"new": "{{ steps.plan.lost }}"})
    with pytest.raises(DefinitionError, match=r"^x\.yaml: steps\[0\]: set\.new: "):
        state.set_vars(failing.steps[0], PLACE)


def test_states_share_nothing() -> None:
    one, other = state_of("plan"), state_of("plan")
    one.enter("plan")
    one.next_ask("planner")
    one.absorb_handoff("planner", "planner", 1, {})
    assert other == state_of("plan")


def test_ask_after_a_called_flow_starts_from_its_last_handoff() -> None:
    """From the one before the call if it has none."""
    state = state_of("plan")
    state.absorb_handoff("planner", "planner", 1, {"summary": "before the call"})
    state.absorb_handoff("developer", "developer", 1, {"summary": "also before"})
    state.take_handoffs(state_of("build").shown_handoffs)
    assert state.input_handoff(None) == {"summary": "also before"}
    called = state_of("build")
    called.absorb_handoff("developer", "developer", 2, {"summary": "inner"})
    called.absorb_handoff("planner", "planner", 2, {"summary": "last"})
    called.absorb_handoff("reviewer", "reviewer", 1, {"summary": "hidden"}, shown=False)
    state.take_handoffs(called.shown_handoffs)
    assert state.input_handoff(None) == {"summary": "last"}
    assert state.context()["roles"] == {"developer": {"summary": "inner"}, "planner": {"summary": "last"}}
    assert called.input_handoff(None) == {"summary": "hidden"}


CHECK = Step(id="lint", check="command")
REVIEW = Step(id="gate", review="Continue?")
EVERY = Step(id="plan", ask="planner", for_each=["a", "b"])


def after_checks(*steps: StepSpec) -> FlowState:
    """A role has answered; then came these steps, each with a result that names it."""
    state = state_of("plan", "lint", "gate")
    state.absorb_handoff("planner", "planner", 1, {"summary": "mine"})
    for step in steps:
        state.leave(step.id, {"approved": False, "comment": "no", "by": "me"} if step.review else {"of": step.id})
        state.pass_on(step, [])
    return state


def test_next_role_gets_what_checks_and_people_said_since_the_answer() -> None:
    """Except what its prompt reads and the result of tests, which it gets elsewhere."""
    said = {"lint": {"of": "lint"}, "gate": {"approved": False, "comment": "no"}}
    state = after_checks(CHECK, REVIEW)
    assert state.input_handoff(None) == {"summary": "mine", "steps": said}
    state.absorb_handoff("developer", "developer", 1, {"summary": "new"})
    assert state.input_handoff(None) == {"summary": "new"}
    assert after_checks(CHECK).input_handoff(None, "{{ steps.lint.of }}") == {"summary": "mine"}
    assert after_checks(Step(id="lint", check="tests")).input_handoff(None) == {"summary": "mine"}
    state.absorb_handoff("planner", "planner", 2, {"steps": ["a"]})
    state.pass_on(CHECK, [])
    assert state.input_handoff(None) == {"steps": ["a"], "steps_": {"lint": {"of": "lint"}}}


def test_first_role_gets_the_inputs_and_what_was_checked_before() -> None:
    state = state_of("lint")
    state.leave("lint", {"of": "lint"})
    state.pass_on(CHECK, [])
    assert state.input_handoff(None) == {**state.inputs, "steps": {"lint": {"of": "lint"}}}
    shown = "Read {{ inputs.file }}. {% if inputs.other %}{{ inputs.other }}{% endif %}"
    assert replace(state, inputs={"file": "a", "other": "b"}).input_handoff(None, shown) == {
        "other": "b",
        "steps": {"lint": {"of": "lint"}},
    }


def test_answers_of_all_items_replace_that_of_the_last_one() -> None:
    state = after_checks(CHECK)
    done, failed = {"status": "done", "error": ""}, {"status": "failed", "error": "no answer"}
    state.leave("plan", {"results": [{**done, "summary": "a"}, failed, done, failed], "failed": 2})
    state.pass_on(EVERY, [{"summary": "a"}, None, {}, {"error": "declined"}])
    assert state.input_handoff(None) == {"results": [{"summary": "a"}, failed, {}, failed]}
    assert state.input_handoff(None, "{{ steps.plan.results }}") == (dict(state.inputs) or None)


@pytest.mark.parametrize(
    ("prompt", "is_shown"),
    [
        (None, False),
        ("Do {{ task }}.", True),
        ("Do {{ item }}.", True),
        ("Do {{ task.text }}.", False),
        ("Do {{ task | length }} things.", False),
        ("{% if task.late %}Do {{ task }} at once.{% endif %}", False),
        ("Do {{ steps.lint.task }}.", False),
    ],
)
def test_item_starts_from_itself_alone_unless_its_prompt_shows_it(prompt: str | None, is_shown: bool) -> None:
    state = after_checks(CHECK, REVIEW)
    item = content_of_item(Step(ask="developer", for_each={"items": [1], "as": "task"}), {"text": "a"})
    assert state.input_handoff(item, prompt) == (None if is_shown else {"task": {"text": "a"}})


@pytest.mark.parametrize(
    "step",
    [
        {"ask": ["planner", "developer"]},
        {"ask": "{{ item }}", "roles": ["planner"], "for_each": {"items": "{{ vars.roles }}", "max_items": 2}},
        {
            "ask": "{{ who }}",
            "for_each": {"items": "{{ vars.roles }}", "as": "who", "max_items": 2},
            "roles": ["planner"],
        },
        {"call": "other", "for_each": ["planner"]},
    ],
)
def test_item_that_names_a_role_or_is_for_a_called_flow_has_no_content(step: dict[str, Any]) -> None:
    assert content_of_item(Step(**{"id": "x", **step}), "planner") is None


def test_items_without_answers_replace_nothing() -> None:
    state = after_checks()
    state.leave("plan", {"results": [{"error": "no answer"}], "failed": 1})
    state.pass_on(EVERY, [None])
    assert state.input_handoff(None) == {"summary": "mine"}
