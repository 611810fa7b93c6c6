"""Where a flow reads the result of a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog import FlowSpec
from codex_multi_role.catalog.step_spec import CheckStep, ReviewStep
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.result_reads import check_measured, fields_read, routes_on_result
from tests.support.teams import Record

LINT: Record = {"id": "lint", "check": "command", "allow": ["bad"], "with": {"argv": ["true"]}}


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("{{ steps.lint.stdout }}", {"stdout"}),
        ("{{ steps['lint']['stdout'] }} {{ steps.lint.seconds }}", {"stdout", "seconds"}),
        ("{{ steps.lint.json.items }}", {"json"}),
        ("{{ steps.lint }}", {""}),
        ("{{ steps.lint | tojson }} {{ steps.lint.visits }}", {"", "visits"}),
        ("{% for each in steps.lint.json %}{{ each }}{% endfor %}", {"json"}),
        ("{{ steps.other.lint }} lint", set()),
    ],
)
def test_fields_that_a_template_reads(text: str, fields: set[str]) -> None:
    assert fields_read(text, "lint") == fields


@pytest.mark.parametrize(
    ("when", "decides"),
    [
        ("steps.lint.exit_code == 1", True),
        ("steps.lint.verdict == 'ok' and cycle < cycles", True),
        ("steps.lint.json.found | length > 2", True),
        ("steps.lint.visits < 3", False),
        ("steps.lint.status == 'done' or steps.lint.error or steps.lint.comment", False),
        ("steps.other.exit_code == 1", False),
        ("vars.red", False),
        ("steps.lint", False),
    ],
)
def test_condition_decides_if_it_names_a_field_of_the_result(when: str, decides: bool) -> None:
    step = CheckStep.model_validate({**LINT, "next": [{"when": when, "end": "red"}, {"end": "green"}]})
    assert routes_on_result(step) is decides


GIVEN: Record = {"ask": "fixer", "with": {"a": 1}}


def check(*steps: Record, **more: object) -> None:
    check_measured({"own": flow("own", *steps, **more)})


def flow(name: str, *steps: Record, **more: object) -> FlowSpec:
    return FlowSpec.model_validate({"name": name, "source": Path(f"{name}.yaml"), "steps": [*steps], **more})


@pytest.mark.parametrize(
    ("steps", "more"),
    [
        ([LINT, {"ask": "fixer", "prompt": "Fix {{ steps.lint.stdout }}"}], {}),
        ([LINT, {"ask": "fixer", "with": {"found": "{{ steps.lint }}"}}], {}),
        ([LINT, {"ask": "fixer"}], {}),
        ([LINT, {"check": "command", "id": "other", "with": {"argv": ["true"]}}, {"ask": "fixer"}], {}),
        ([LINT, GIVEN, {"ask": "writer", "next": [{"when": "steps.lint.exit_code", "end": "red"}]}], {}),
        ([LINT], {"result": {"title": "Found", "text": "{{ steps.lint.stdout }}"}}),
        ([LINT], {"internal": True}),
    ],
)
def test_measured_result_is_read(steps: list[Record], more: Record) -> None:
    check(*steps, **more)


@pytest.mark.parametrize(
    ("steps", "more"),
    [
        ([LINT], {}),
        ([LINT, {**GIVEN, "prompt": "Run lint, it's steps.lint.stdout"}], {"result": {"title": "What lint found"}}),
        ([LINT, {**GIVEN, "prompt": "Fix what {{ steps.lint.visits }} visits found"}], {}),
        ([{"ask": "fixer", "prompt": "{{ steps.lint.stdout | default('') }}"}, LINT], {}),
        ([LINT, GIVEN], {}),
        ([LINT, GIVEN, {"ask": "writer"}], {}),
        ([LINT], {"internal": True, "outputs": []}),
    ],
)
def test_measured_result_that_nothing_reads_is_refused(steps: list[Record], more: Record) -> None:
    with pytest.raises(DefinitionError, match=r"allow: \[bad\], but nothing after the step reads steps\.lint"):
        check(*steps, **more)


CALL: Record = {"id": "inner", "call": "linted"}


@pytest.mark.parametrize(
    ("caller", "more", "is_read"),
    [
        ([CALL, {"ask": "fixer", "prompt": "{{ steps.inner.steps.lint.stdout }}"}], {}, True),
        ([{**CALL, "next": [{"when": "steps.inner.steps.lint.exit_code", "end": "red", "exit": 1}]}], {}, False),
        ([CALL], {}, False),
        ([CALL, {"ask": "fixer", "prompt": "{{ steps.inner.vars.found }}"}], {"outputs": []}, False),
    ],
)
def test_known_caller_must_read_what_its_flow_measures(caller: list[Record], more: Record, is_read: bool) -> None:
    flows = {"own": flow("own", *caller), "linted": flow("linted", LINT, internal=True, **more)}
    if is_read:
        check_measured(flows)
        return
    with pytest.raises(DefinitionError, match=r"linted\.yaml.*allow: \[bad\], but nothing after the step reads"):
        check_measured(flows)


def test_rejection_is_never_only_measured() -> None:
    with pytest.raises(ValueError, match=r"allow: \[bad\] does not go with review"):
        ReviewStep(id="gate", review="Continue?", allow=["bad"])
