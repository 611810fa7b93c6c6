"""``flows validate`` and ``run`` judge a flow by the same rules: each finds every mistake, in the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import console
from tests.support.workspaces import write_files

CATALOG = """\
version: 1
roles:
  - {name: dev, prompt_text: Do it., behaviors: {can_finish: true}}
  - {name: my-dev, prompt_text: Do it.}
"""
MISTAKES = {
    # words that YAML reads as something else
    "steps: [{ask: dev, next: [{end: no}]}]": (
        "1:28: step dev: next[0].end: must be text, not false\n"
        'hint: Quote it: "no". Without quotes, YAML reads it as false.'
    ),
    "steps: [{id: 1_0, ask: dev}]": (
        '1:10: step 1_0: id: must be text, not 10\nhint: Quote it: "1_0". Without quotes, YAML reads it as 10.'
    ),
    # names that templates read as something else
    "steps: [{ask: my-dev, next: [{when: steps.my-dev.visits > 2, end: x}, {end: y}]}]": (
        "1:31: step my-dev: next[0].when: a template reads steps.my-dev as several names\n"
        "hint: Write steps['my-dev'], or call it my_dev."
    ),
    # unknown and missing
    "steps: [{ask: dve}]": '1:10: step dve: ask: unknown role "dve"; did you mean "dev"?',
    "steps: [{ask: dev, next: [{to: x}]}]": '1:28: step dev: next[0].to: unknown step "x"',
    "steps: [{ask: dev, allwo: 2}]": '1:20: step dev: unknown key "allwo"; did you',
    "steps: [{call: other}]": '1:10: step other: call: unknown flow "other"',
    "steps: [{check: tset}]": '1:10: step tset: check: unknown check "tset"',
    "steps: [{check: command}]": (
        '1:9: step command: with: check command: the option "argv" is missing\n'
        "hint: argv: a list of strings, the program first: [git, status]"
    ),
    "steps: [{check: command, with: {argv: ls}}]": (
        "1:33: step command: with: check command: argv: must be a list of strings\n"
        "hint: argv: a list of strings, the program first: [git, status]"
    ),
    # at the line of the key
    "steps:\n  - id: r\n    review: Well?\n    with: {a: 1}": "4:5: step r: with belongs to ask",
    "steps:\n  - ask: dev\n    limits: {visits: 2}\n    check: tests": "4:5: step dev: give exactly one of",
    "steps:\n  - check: tests\n    limits:\n      turn_seconds: 3": (
        "4:7: step tests: limits: turn_seconds belongs to ask"
    ),
    "steps:\n  - check: command\n    with:\n      argv: [ls]\n      cdw: x": (
        '5:7: step command: with: check command: unknown option "cdw"; did you mean "cwd"?'
    ),
    "steps:\n  - ask: dev\nfinally:\n  - id: end\n    check: tests\n    retry: {attempts: 2}": (
        "6:5: finally end: retry does not belong there: finally takes checks only (id, check, w"
    ),
    "steps:\n  - ask: dev\nfinally:\n  - id: dev\n    check: tests": "4:5: finally dev: the id dev is given twice",
    "steps:\n  - ask: dev\nfinally:\n  - check: command\n    with:\n      argv: [ls, 1, no]": (
        "6:21: finally command: with: check command: argv[2]: must be text, not false\n"
        'hint: Quote it: "no". Without quotes, YAML reads it as false.'
    ),
    # meant otherwise
    "steps: [{id: panel, ask: []}]": "1:21: step panel: ask: the list is empty; name at least one",
    "steps: [{ask: 'dev, my-dev'}]": "1:10: step dev, my-dev: ask: several roles are a list: [dev, my-dev]",
    "steps: [{ask: dev}]\nfinally: [{review: 'Well?'}]": (
        "2:12: finally[0]: review does not belong there: finally takes checks only"
    ),
    "steps: [{id: panel, ask: [dev, my-dev], next: [{when: steps.panel.dev.ok, end: x}, {end: y}]}]": (
        '1:49: step panel: next[0].when: steps.panel: unknown field "dev"\nhint: Write steps.panel.by_role.dev.'
    ),
    "steps: [{ask: dev}]\nretry: {attempts: 2}": '2:1: unknown key "retry": it belongs to an entry of steps',
    "steps: [{ask: dev, attempts: 2}]": '1:20: step dev: unknown key "attempts": it belongs to retry',
    # without effect
    "steps: [{ask: dev, for_each: {items: [1, 2], until: steps.dev.results | length > 1}}]": (
        "1:46: step dev: for_each.until: steps.dev has no results of this visit yet\nhint: Read `results`"
    ),
    "steps: [{ask: dev, for_each: {items: [1, 2, 3], until: results | length > 5}}]": (
        "1:49: step dev: for_each.until: cannot be met: the step has at most 3 items"
    ),
    "steps: [{ask: dev, for_each: {items: [1, 2], until: results, on_failure: finish}}]": (
        "1:62: step dev: on_failure has no effect beside until: no item ends the run\nhint: Leave it out."
    ),
    "steps: [{ask: dev, for_each: {items: [1, 2], allow: [failed], on_failure: cancel}}]": (
        "1:63: step dev: on_failure has no effect beside allow: [failed]: no item ends the run\nhint: Leave it out."
    ),
    "steps: [{id: r, review: 'Well?', retry: {attempts: 2}}]": (
        "1:34: step r: retry has no effect on a review: a person's answer is final\n"
        "hint: Ask again with an entry of `next`"
    ),
    "steps: [{ask: dev, allow: [bad]}]": (
        "1:20: step dev: allow: [bad] has no effect on an ask: an answer is never bad by itself\n"
        "hint: Judge the answer with a `when`"
    ),
    "steps: [{id: work, ask: '{{ item.role }}', roles: [dev, my-dev], for_each: [{role: dev}, {role: dve}]}]": (
        '1:90: step work: for_each[1]: unknown role "dve"; did you mean "dev"?\nhint: Known: dev, my-dev.'
    ),
    # values
    "steps: [{check: read_file, with: {path: a}, next: [{when: steps.read_file.verdict == 'ok', end: x}]}]": (
        "1:53: step read_file: next[0].when: steps.read_file.verdict is never 'ok'"
    ),
    "inputs: {a: {type: string, default: x}}\nsteps: [{ask: dev, for_each: {items: '{{ inputs.a }}', max_items: 2}}]": (
        "2:31: step dev: for_each.items: must be a list, but {{ inputs.a }} is a text"
    ),
    "steps: [{ask: dev, prompt: '{{ steps.last.summary }}'}, {id: last, ask: dev}]": (
        "1:20: step dev: prompt: steps.last.summary cannot have a value here"
    ),
    "steps: [{check: command, with: {argv: [ls]}, allow: [bad]}]": (
        "1:46: step command: allow: [bad], but nothing after the step reads steps.command"
    ),
    # bounds
    "steps: [{ask: dev, next: [{to: dev}]}]": "1:9: step dev: can loop forever: dev -> dev",
    "vars: {n: 0}\nsteps: [{ask: dev, set: {n: '{{ vars.n + 1 }}'}, next: [{when: vars.n < 3, to: dev}]}]": (
        "2:9: step dev: can loop forever: dev -> dev; vars.n cannot bound a loop: use visits\n"
        "hint: Add `limits: {visits: N}` to dev"
    ),
    "steps: [{call: own}]": "1:10: step own: call: the circle of calls has no limit: own -> own",
}


@pytest.mark.parametrize("flow", MISTAKES)
def test_mistake_is_found_by_both(tmp_path: Path, flow: str) -> None:
    message, _, hint = MISTAKES[flow].partition("\n")
    said = said_by_both(tmp_path, flow)
    assert said.startswith(f"error: roles/flows/own.yaml:{message}")
    assert hint in said
    line, column = map(int, message.split(":")[:2])
    shown, caret = said.splitlines()[1:3]
    assert shown.find(flow.splitlines()[line - 1][column - 1 :][:20]) == caret.find("^") > 0


def test_secret_of_a_role_is_found_by_both(tmp_path: Path) -> None:
    secret = (
        "codex_config: {model_providers.x.http_headers.Authorization: sk-proj-0123456789abcdefghijklmnopqrstuvwxyz}"
    )
    said = said_by_both(tmp_path, "steps: [{ask: dev}]", CATALOG.replace("name: dev,", f"name: dev, {secret},"))
    assert "role dev: codex_config.model_providers.x" in said
    assert "what looks like a secret" in said
    assert "sk-proj" not in said.splitlines()[1]


def said_by_both(folder: Path, flow: str, catalog: str = CATALOG) -> str:
    """What both commands print to standard error, which is the same; no run starts."""
    write_files(folder, {"roles/catalog.yaml": catalog, "roles/flows/own.yaml": flow})
    validated = console("flows", "validate", "own", folder=folder)
    ran = console("run", "--flow", "own", "--goal", "Do it", folder=folder)
    assert (validated.returncode, ran.returncode) == (2, 2)
    assert validated.stderr == ran.stderr.replace(f"{folder}/", "")
    assert not (folder / "runs").exists()
    return validated.stderr
