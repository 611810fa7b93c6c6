"""A dry run: every prompt of the first pass of a flow, with placeholders for what only a run can know."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.dry_run import dry_run
from tests.support.teams import Record, TeamFolder, with_flow

ROLES: dict[str, Record] = {"planner": {}, "writer": {"behaviors": {"apply_files": True}}, "judge": {}}


def told(folder: Path, steps: Sequence[object], roles: dict[str, Record] = ROLES, **flow: Any) -> list[Record]:
    """The records of a dry run over ``steps``."""
    options = flow.pop("options", {})
    team = TeamFolder(folder, roles, {})
    for name, written in ({"own": {"steps": steps, **flow.pop("own", {})}} | flow).items():
        with_flow(team, written, name)
    return dry_run(team.options(flow="own", **{"run_tests": True, **options}))


def prompts(records: list[Record]) -> list[str]:
    return [record["prompt"] for record in records if record["type"] == "ask"]


def test_each_role_prompt_builds_on_previous_handoff(tmp_path: Path) -> None:
    """Placeholders stand for the handoff of the role before."""
    records = dry_run(TeamFolder(tmp_path, ROLES, {}).options())
    assert [(record["type"], record["step"], record["role"]) for record in records] == [
        ("ask", "team", "planner"),
        ("ask", "team", "writer"),
        ("ask", "team", "judge"),
    ]
    first, second, third = prompts(records)
    assert first.startswith("Role: planner\n")
    assert "reach it" in first
    assert '"summary"' not in first
    assert '"summary": "<planner.summary>"' in second
    assert '"summary": "<writer.summary>"' in third


def test_test_result_is_shown_only_where_tests_may_have_run(tmp_path: Path) -> None:
    steps = [{"ask": "planner"}, {"ask": "writer"}, {"ask": "judge"}]
    with_result = ["<test result>" in prompt for prompt in prompts(told(tmp_path, steps))]
    assert with_result == [False, False, True]
    without = prompts(told(tmp_path, steps, options={"run_tests": False}))
    assert not any("<test result>" in prompt for prompt in without)
    measured = prompts(told(tmp_path, [{"id": "measure", "check": "tests"}, {"ask": "planner"}]))
    assert "<test result>" in measured[0]


def test_reply_with_schema_is_shown_field_by_field(tmp_path: Path) -> None:
    reply = {"type": "object", "properties": {"grade": {"type": "integer"}, "why": {"type": "string"}}}
    asked, following = prompts(told(tmp_path, [{"ask": "judge", "reply": reply}, {"ask": "planner"}]))
    assert '"grade": {' in asked
    assert '"grade": "<judge.grade>",\n  "why": "<judge.why>"' in following


def test_templates_show_what_is_known_and_name_what_is_not(tmp_path: Path) -> None:
    text = "{{ goal }}, {{ inputs.size }}, {{ steps.planner.todos }}, {{ roles.planner.why }}, {{ vars.last }}"
    steps = [
        {"ask": "planner", "set": {"last": "{{ steps.planner.todos | length }}"}},
        {"ask": "judge", "prompt": text},
    ]
    own = {"inputs": {"size": 3}, "vars": {"last": 0}}
    _, prompt = prompts(told(tmp_path, steps, own=own))
    assert "reach it, 3, <planner.todos>, <planner.why>, <planner.todos | length>" in prompt


def test_later_step_result_is_absent_from_first_pass(tmp_path: Path) -> None:
    text = "{{ 'again' if steps.measure.visits else 'first' }}, {{ steps.measure.seconds | default('none') }}."
    steps = [
        {"ask": "planner", "prompt": text, "limits": {"visits": 3}},
        {"id": "measure", "check": "tests", "next": [{"when": "steps.measure.failed", "to": "planner"}]},
        {"ask": "judge", "prompt": text},
    ]
    before, after = prompts(told(tmp_path, steps))
    assert "first, none." in before
    assert "again, <measure.seconds>." in after


def test_first_item_stands_for_a_list_that_is_known(tmp_path: Path) -> None:
    (record,) = told(
        tmp_path, [{"ask": "judge", "for_each": {"items": ["a", "b"], "as": "part"}, "prompt": "On {{ part }}!"}]
    )
    assert record["item"] == "1 of 2"
    assert "On a!" in record["prompt"]
    assert '"part"' not in record["prompt"]
    assert told(tmp_path, [{"ask": "judge", "for_each": []}]) == []


def test_placeholder_stands_for_a_list_that_only_the_run_knows(tmp_path: Path) -> None:
    fan = {
        "for_each": {"items": "{{ steps.planner.todos }}", "max_items": 5, "as": "todo"},
        "prompt": "{{ todo.text }}, {{ index }}",
    }
    _, record = told(tmp_path, [{"ask": "planner"}, {"ask": "judge", **fan}])
    assert record["item"] == "each of <planner.todos>"
    assert "<todo.text>, <index>" in record["prompt"]


def test_step_inputs_replace_previous_handoff(tmp_path: Path) -> None:
    """What a step passes to its role by `with` replaces the handoff of the step before."""
    _, record = told(tmp_path, [{"ask": "planner"}, {"ask": "judge", "with": {"only": "{{ goal }}"}}])
    assert '"only": "' in record["prompt"]
    assert "<planner" not in record["prompt"]


def test_check_has_its_options_as_far_as_they_are_known(tmp_path: Path) -> None:
    argv = ["run", "{{ inputs.size }}", "{{ steps.planner.name }}"]
    steps = [{"ask": "planner"}, {"id": "measure", "check": "command", "with": {"argv": argv}}]
    record = told(tmp_path, steps, own={"inputs": {"size": 3}})[1]
    assert record == {
        "type": "check",
        "step": "measure",
        "item": None,
        "check": "command",
        "with": {"argv": ["run", 3, "<planner.name>"]},
    }


def test_review_has_its_question_and_what_is_shown_with_it(tmp_path: Path) -> None:
    after = {"seconds": 60, "answer": "reject"}
    review = {"question": "Is {{ goal }} fine?", "show": "{{ roles.planner.plan }}", "after": after}
    record = told(tmp_path, [{"ask": "planner"}, {"id": "sure", "review": review}])[1]
    assert (record["type"], record["question"], record["show"]) == ("review", "Is reach it fine?", "<planner.plan>")
    assert (record["time_limit_seconds"], record["default"]) == (60, "reject")


def test_called_flow_is_shown_once_with_its_own_inputs(tmp_path: Path) -> None:
    call = {"call": "inner", "with": {"word": "{{ steps.planner.word }}", "times": 2}}
    steps = [{"ask": "planner"}, {"id": "one", **call}, {"id": "two", **call}]
    inner = {
        "inputs": {"word": {"required": True}, "times": {"type": "integer", "default": 1}, "rest": 7},
        "steps": [{"ask": "judge", "prompt": "{{ inputs.word }} {{ inputs.times }} {{ inputs.rest }}"}],
    }
    records = told(tmp_path, steps, inner=inner)
    assert [(record["type"], record["step"]) for record in records] == [
        ("ask", "planner"),
        ("call", "one"),
        ("ask", "one/judge"),
        ("call", "two"),
    ]
    assert [records[1]["first"], records[3]["first"]] == [True, False]
    assert "<planner.word> 2 7" in records[2]["prompt"]


def test_recursive_flow_is_shown_once(tmp_path: Path) -> None:
    records = told(tmp_path, [{"ask": "planner"}, {"id": "deeper", "call": "own", "limits": {"depth": 2}}])
    assert [record["type"] for record in records] == ["ask", "call"]


def test_nothing_is_written_and_what_a_run_refuses_is_refused(tmp_path: Path) -> None:
    before = sorted(path for path in tmp_path.rglob("*"))
    told(tmp_path, [{"ask": "planner"}])
    written = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*") if path not in before}
    assert written == {"roles", "workspace", "playbook.yaml"}
    with pytest.raises(UsageError, match="planer"):
        told(tmp_path, [{"ask": "planer"}])
    with pytest.raises(UsageError, match="does not exist"):
        told(tmp_path, [{"ask": "planner"}], options={"workspace": tmp_path / "none"})


def test_prompt_says_what_later_steps_read(tmp_path: Path) -> None:
    steps = [{"id": "plan", "ask": "planner"}, {"id": "work", "ask": "writer", "prompt": "{{ steps.plan.n + 1 }}."}]
    first, second = prompts(told(tmp_path, steps))
    assert "Later steps read these fields of it:\n- n: a number, required (step work reads it)" in first
    assert "LATER STEPS" not in second
