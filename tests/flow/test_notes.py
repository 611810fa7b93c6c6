"""Notes on a flow that is right but probably not meant so; they never make it an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog import list_flows
from codex_multi_role.flow.notes import notes_on
from codex_multi_role.flow.references import unsent_roles
from codex_multi_role.lifecycle.team_loading import known_checks, load_team
from tests.support.console import console
from tests.support.paths import shipped_team

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
    (folder / "flows").mkdir()
    (folder / "catalog.yaml").write_text(CATALOG)
    (folder / "flows/own.yaml").write_text(f"steps:\n  [{steps}]\n")
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
