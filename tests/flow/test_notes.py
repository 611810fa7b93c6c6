"""Notes on a flow that is right but probably not meant so, never an error; and where a flow reads results of steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog import FlowSpec, list_flows
from codex_multi_role.catalog.step_spec import CheckStep, ReviewStep
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.notes import notes_on
from codex_multi_role.flow.references import unsent_roles
from codex_multi_role.flow.result_reads import check_measured, fields_read, routes_on_result
from codex_multi_role.lifecycle.team_loading import known_checks, load_team
from tests.support.console import console
from tests.support.paths import shipped_team
from tests.support.teams import Record
from tests.support.workspaces import write_files

CATALOG = """\
version: 1
roles:
  - {name: critic, prompt_text: Judge.}
  - {name: dev, prompt_text: Do it., prompt_flags: {allow_write: true}}
"""
LINT = "{id: lint, check: command, with: {argv: [ruff]}"
READ = "{id: read, check: read_file, with: {path: a.txt}"
UNREAD = "nothing reads the result of the step, and it changes nothing else"
EXIT = "the flow ends with exit code 0 after a bad result; add `exit: 1`, or `exit: 0` if that is meant"
NOTES = [
    # results that nothing reads
    ("{ask: critic}, {ask: dev, with: {a: 1}}", f"2:4: step critic: {UNREAD}"),
    ("{ask: critic}, {ask: dev, for_each: [1], prompt: x}", f"2:4: step critic: {UNREAD}"),
    (f"{READ}}}, {LINT}}}", f"2:4: step read: {UNREAD}"),
    (f"{READ}}}, {{ask: dev, for_each: [1], prompt: x}}", f"2:4: step read: {UNREAD}"),
    # a failure that ends as a success
    (
        "{id: ok, review: Good?, next: [{when: not steps.ok.approved, end: rejected}]}",
        f"2:35: step ok: next[0]: {EXIT}",
    ),
    (
        f"{LINT}, next: [{{when: steps.lint.verdict == 'failed', end: lint_failed}}]}}",
        f"2:60: step lint: next[0]: {EXIT}",
    ),
    (f"{LINT}, next: [{{when: steps.lint.verdict == 'failed', end: failed}}]}}", f"2:60: step lint: next[0]: {EXIT}"),
    (f"{LINT}, next: [{{when: steps.lint.verdict != 'ok', end: over}}]}}", f"2:60: step lint: next[0]: {EXIT}"),
    # tries that change nothing
    (
        "{id: best, check: choose, with: {candidates: [], by: [{key: a, prefer: lowest}]}, retry: {attempts: 2}}",
        "2:86: step best: retry: the check choose gives the same result again, unless its files change",
    ),
]
RIGHT = [
    "{ask: critic}, {ask: dev}",
    "{ask: critic}, {id: panel, ask: [dev], prompt: x}",
    "{ask: critic}, {ask: dev, prompt: '{{ roles.critic.advice }}', with: {a: 1}}",
    "{ask: dev}, {ask: critic}",
    "{ask: critic, next: [{when: steps.critic.good, end: good}]}, {ask: dev, with: {a: 1}}",
    f"{READ}}}, {{ask: dev}}",
    f"{READ}}}, {{ask: dev, with: {{a: '{{{{ steps.read.content }}}}'}}}}",
    f"{LINT}}}, {{ask: dev, with: {{a: 1}}}}",
    "{id: ok, review: Good?, next: [{when: not steps.ok.approved, end: rejected, exit: 1}]}",
    "{id: ok, review: Good?, next: [{when: not steps.ok.approved, end: kept, exit: 0}]}",
    "{id: ok, review: Good?, next: [{when: not steps.ok.approved or cycle > 2, end: kept}]}",
    "{id: ok, review: Good?, next: [{when: steps.ok.approved, end: failed}]}",
    f"{LINT}, next: [{{when: steps.lint.verdict == 'ok', end: failed}}]}}",
    f"{LINT}, retry: {{attempts: 2}}}}",
]


def notes(folder: Path, steps: str) -> list[str]:
    write_files(folder, {"catalog.yaml": CATALOG, "flows/own.yaml": f"steps:\n  [{steps}]\n"})
    flows, catalog = load_team("own", folder)
    return [
        note.replace(f"{folder}/flows/own.yaml:", "") for note in notes_on(flows["own"], catalog, known_checks(flows))
    ]


@pytest.mark.parametrize(("steps", "note"), NOTES)
def test_note_on_what_is_probably_not_meant(tmp_path: Path, steps: str, note: str) -> None:
    assert notes(tmp_path, steps) == [note]


@pytest.mark.parametrize("steps", RIGHT)
def test_no_note_on_what_is_meant(tmp_path: Path, steps: str) -> None:
    assert notes(tmp_path, steps) == []


EXAMPLES = [*Path(__file__).parents[2].glob("examples/*/roles/flows/*.yaml")]
PORTED = [*Path(__file__).parents[1].glob("verdicts/workflows/*/flows/*.yaml")]
SHIPPED = [entry.source for entry in list_flows(None)]


@pytest.mark.extensions
@pytest.mark.parametrize("source", [*SHIPPED, *EXAMPLES, *PORTED], ids=lambda source: source.stem)
def test_flows_that_work_have_neither_errors_nor_notes(source: Path) -> None:
    """Except for an answer that a person reads, and an example whose check is not installed here."""
    flow = source.stem
    if flow != "summary":
        flows, catalog = shipped_team(flow) if source in SHIPPED else load_team(flow, source.parents[1])
        found = [note.rpartition(": step ")[2] for note in notes_on(flows[flow], catalog, known_checks(flows))]
        assert not unsent_roles(flows, catalog)
        assert found == ([f"escalate: {UNREAD}"] if flow == "retry-budget" else [])


def test_validate_prints_notes_of_own_flows_with_exit_code_0(tmp_path: Path) -> None:
    notes(tmp_path, NOTES[0][0])
    done = console("flows", "validate", "own", "--roles", ".", folder=tmp_path)
    assert f"note: flows/own.yaml:2:4: step critic: {UNREAD}\n" in done.stderr
    assert done.returncode == 0


MEASURED_LINT: Record = {"id": "lint", "check": "command", "allow": ["bad"], "with": {"argv": ["true"]}}


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
    step = CheckStep.model_validate({**MEASURED_LINT, "next": [{"when": when, "end": "red"}, {"end": "green"}]})
    assert routes_on_result(step) is decides


GIVEN: Record = {"ask": "fixer", "with": {"a": 1}}


def review(**field: object) -> Record:
    return {"id": "ok", "review": {"question": "Good?", "fields": {"it": field}}}


def check(*steps: Record, **more: object) -> None:
    check_measured({"own": flow("own", *steps, **more)})


def flow(name: str, *steps: Record, **more: object) -> FlowSpec:
    return FlowSpec.model_validate({"name": name, "source": Path(f"{name}.yaml"), "steps": [*steps], **more})


@pytest.mark.parametrize(
    ("steps", "more"),
    [
        ([MEASURED_LINT, {"ask": "fixer", "prompt": "Fix {{ steps.lint.stdout }}"}], {}),
        ([MEASURED_LINT, {"ask": "fixer", "with": {"found": "{{ steps.lint }}"}}], {}),
        ([MEASURED_LINT, {"ask": "fixer"}], {}),
        ([MEASURED_LINT, {"check": "command", "id": "other", "with": {"argv": ["true"]}}, {"ask": "fixer"}], {}),
        ([MEASURED_LINT, GIVEN, {"ask": "writer", "next": [{"when": "steps.lint.exit_code", "end": "red"}]}], {}),
        ([MEASURED_LINT], {"result": {"title": "Found", "text": "{{ steps.lint.stdout }}"}}),
        ([MEASURED_LINT, {"ask": "fixer", "with": {"when": "after lunch", "found": "{{ steps.lint }}"}}], {}),
        ([MEASURED_LINT, review(default=["{{ steps.lint.stdout }}"])], {}),
        ([MEASURED_LINT], {"internal": True}),
    ],
)
def test_measured_result_is_read(steps: list[Record], more: Record) -> None:
    check(*steps, **more)


@pytest.mark.parametrize(
    ("steps", "more"),
    [
        ([MEASURED_LINT], {}),
        (
            [MEASURED_LINT, {**GIVEN, "prompt": "Run lint, it's steps.lint.stdout"}],
            {"result": {"title": "What lint found"}},
        ),
        ([MEASURED_LINT, {**GIVEN, "prompt": "Fix what {{ steps.lint.visits }} visits found"}], {}),
        ([{"ask": "fixer", "prompt": "{{ steps.lint.stdout | default('') }}"}, MEASURED_LINT], {}),
        ([MEASURED_LINT, GIVEN], {}),
        ([MEASURED_LINT, review(description="as in {{ steps.lint.stdout }", default={"when": "after lunch"})], {}),
        ([MEASURED_LINT, GIVEN, {"ask": "writer"}], {}),
        ([MEASURED_LINT], {"internal": True, "outputs": []}),
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
    flows = {"own": flow("own", *caller), "linted": flow("linted", MEASURED_LINT, internal=True, **more)}
    if is_read:
        check_measured(flows)
        return
    with pytest.raises(DefinitionError, match=r"linted\.yaml.*allow: \[bad\], but nothing after the step reads"):
        check_measured(flows)


def test_rejection_is_never_only_measured() -> None:
    with pytest.raises(ValueError, match=r"allow: \[bad\] does not go with review"):
        ReviewStep(id="gate", review="Continue?", allow=["bad"])
