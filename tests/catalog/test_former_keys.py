"""Former keys of steps: what they load as, how files are rewritten, and how mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog import RoleSpecCatalog
from codex_multi_role.errors import DefinitionError
from codex_multi_role.extensions.setup.flow_migration import migrated
from codex_multi_role.reading.former_keys import rewrite
from codex_multi_role.reading.yaml_loader import parse_yaml
from tests.support.catalogs import Write, load_flow, message_at, write_team
from tests.support.console import console

pytestmark = pytest.mark.extensions

FORMER = {
    "{ask: planner, on_error: skip}": "{ask: planner, allow: [failed]}",
    "{check: c, on_error: skip}": "{check: c, allow: [bad, failed]}",
    "{check: c, on_bad: continue}": "{check: c, allow: [bad]}",
    "{check: c, on_bad: continue, on_error: skip}": "{check: c, allow: [bad, failed]}",
    "{call: f, on_error: skip, on_bad: fail}": "{call: f, allow: [bad, failed]}",
    "{check: c, on_error: fail, on_bad: fail}": "{check: c}",
    "{ask: planner, for_each: [1], on_error: skip}": "{ask: planner, for_each: {items: [1], allow: [failed]}}",
    "{check: c, for_each: [1], on_error: skip}": "{check: c, for_each: {items: [1], allow: [bad, failed]}}",
    "{check: c, for_each: [1], on_bad: continue}": "{check: c, for_each: [1], allow: [bad]}",
    "{id: x, ask: [planner, developer], on_error: skip, concurrency: 1}": (
        "{id: x, ask: [planner, developer], for_each: {allow: [failed], concurrency: 1}}"
    ),
    "{ask: planner, for_each: [1], as: n, on_item_error: stop}": (
        "{ask: planner, for_each: {items: [1], as: n, on_failure: finish}}"
    ),
    "{ask: planner, for_each: [1], on_item_error: cancel}": (
        "{ask: planner, for_each: {items: [1], on_failure: cancel}}"
    ),
    "{ask: planner, max_visits: 3, limits: {seconds: 2}}": "{ask: planner, limits: {seconds: 2, visits: 3}}",
    "{call: f, max_depth: 2}": "{call: f, limits: {depth: 2}}",
    "{ask: planner, isolate: worktree, merge: none}": "{ask: planner, isolate: {merge: none}}",
    "{check: c, repeatable: false}": "{check: c, once: true}",
    "{check: c, repeatable: true}": "{check: c}",
    "{id: r, review: q, show: s, options: [a]}": "{id: r, review: {question: q, show: s, options: [a]}}",
    "{id: r, review: q, time_limit_seconds: 5, default: reject}": (
        "{id: r, review: {question: q, after: {seconds: 5, answer: reject}}}"
    ),
    "{id: r, review: q, default: reject}": "{id: r, review: q}",
    "{id: r, review: q, on_error: skip}": "{id: r, review: q, allow: [bad, failed]}",
}


@pytest.mark.parametrize("former", FORMER)
def test_former_keys_load_and_are_rewritten_as_the_present_ones(former: str) -> None:
    text, now = f"steps: [{former}]", f"steps: [{FORMER[former]}]"
    assert parse_yaml(text, rewrite) == parse_yaml(now)
    assert parse_yaml(migrated(text)) == parse_yaml(now)
    assert migrated(now) == now


FILE = """\
# the flow
steps:
  # first
  - id: look
    check: command          # of files
    # it measures
    on_bad: continue        # so
    with:
      argv: [ls]  # list
    repeatable: false

    # at most
    max_visits: 3
  # second
  - {ask: planner, for_each: "{{ inputs.a }}", max_items: 3}
finally:
  - {check: tests, repeatable: false}  # last
"""
REWRITTEN = """\
# the flow
steps:
  # first
  - id: look
    check: command          # of files
    # it measures
    allow: [bad]  # so
    with:
      argv: [ls]  # list
    once: true
    # at most
    limits: {visits: 3}
  # second
  - {ask: planner, for_each: {items: "{{ inputs.a }}", max_items: 3}}
finally:
  - {check: tests, once: true}  # last
"""


def test_rewritten_file_keeps_comments_and_order() -> None:
    assert migrated(FILE) == REWRITTEN
    assert migrated(REWRITTEN) == REWRITTEN


def test_merged_mappings_are_rewritten() -> None:
    text = "steps:\n- &base {id: a, check: c, on_bad: continue}\n- {<<: *base, id: b, max_visits: 2}\n"
    first, second = parse_yaml(text, rewrite)["steps"]  # type: ignore[index]
    assert (first["allow"], second) == (["bad"], {"id": "b", "check": "c", "allow": ["bad"], "limits": {"visits": 2}})


# ruff: noqa: E501
MISTAKES = {
    # a former key beside present ones
    "check: c\n    allow: [bad]\n    on_bad: continue": '3: step c: "on_bad" is now `allow: [bad]`',
    "check: c\n    allow: [bad]\n    on_error: skip": '3: step c: "on_error" is now `allow: [bad, failed]`',
    "check: c\n    once: true\n    max_visits: 3": '3: step c: "max_visits" is now `limits: {visits}`',
    "check: c\n    limits: {visits: 3}\n    repeatable: false": '3: step c: "repeatable" is now `once: true`',
    "check: c\n    for_each: {items: [1]}\n    as: n": '3: step c: "as" is now `for_each: {as}`',
    "check: c\n    for_each: {items: [1]}\n    on_item_error: cancel": '3: step c: "on_item_error" is now',
    "check: c\n    for_each:\n      items: [1]\n      on_item_error: stop": '4: step c: for_each: "on_item_error" is now',
    "check: c\n    for_each:\n      items: [1]\n      on_error: skip": '4: step c: for_each: "on_error" is now',
    "check: c\n    limits:\n      max_visits: 3": '3: step c: limits: "max_visits" is now `limits: {visits}`',
    "id: r\n    review:\n      question: q\n      default: reject": '4: step r: review: "default" is now `review: {after:',
    "id: r\n    review:\n      question: q\n      time_limit_seconds: 3": '4: step r: review: "time_limit_seconds" is now',
    "id: r\n    review: {question: q}\n    fields: {}": '3: step r: "fields" is now `review: {fields}`',
    "ask: planner\n    isolate: {merge: none}\n    merge: none": '3: step planner: "merge" is now `isolate: {merge}`',
    # former values
    "check: c\n    on_bad: stop": '2: step c: allow[0]: must be "bad" or "failed", not "stop"',
    "check: c\n    max_visits: 0": "2: step c: limits.visits: must be at least 1, not 0",
    "check: c\n    repeatable: maybe": '2: step c: once: must be true or false, not "maybe"',
    "check: c\n    for_each: [1]\n    concurrency: 65": "3: step c: for_each.concurrency: must be at most 64 or text",
    "check: c\n    as: n": '2: step c: "as" is now `for_each: {as}`',
    "check: c\n    default: reject": '2: step c: "default" is now `review: {after: {answer}}`',
    # the groups
    "check: c\n    allow: bad": '2: step c: allow: must be a list, not "bad"',
    "check: c\n    allow: [skip]": '2: step c: allow[0]: must be "bad" or "failed", not "skip"',
    "ask: planner\n    once: true": "2: step planner: once belongs to check",
    "check: c\n    isolate: worktree": "2: step c: isolate belongs to ask or call",
    "check: c\n    prompt: x": "2: step c: prompt belongs to ask",
    "id: r\n    review: q\n    reply: {}": "3: step r: reply belongs to ask",
    "call: c\n    roles: [a]": "2: step c: roles belongs to ask",
    "ask: planner\n    isolate: copy": '2: step planner: isolate: must be "worktree" or a mapping with merge, not "copy"',
    "ask: planner\n    isolate: {merge: some}": '2: step planner: isolate.merge: must be "all", "passed" or "none", not "some"',
    "ask: planner\n    isolate: {mrge: all}": '2: step planner: isolate: unknown key "mrge"; did you mean "merge"?',
    "check: c\n    limits: 3": "2: step c: limits: must be a mapping, not 3",
    "ask: planner\n    limits: {depth: 3}": "2: step planner: limits: depth belongs to call",
    "check: c\n    limits: {visits: many}": '2: step c: limits.visits: must be a whole number, not "many"',
    "check: c\n    limits: {second: 3}": '2: step c: limits: unknown key "second"; did you mean "seconds"?',
    "call: c\n    limits: {depth: 51}": "2: step c: limits.depth: must be at most 50, not 51",
    "check: c\n    for_each: 3": "2: step c: for_each: must be text or a list, not 3",
    "check: c\n    for_each: {as: n}": '2: step c: for_each: missing key "items"',
    "check: c\n    for_each: {itms: [1]}": '2: step c: for_each: unknown key "itms"; did you mean "items"?',
    "check: c\n    for_each: '{{ goal }}'": "2: step c: for_each: a template needs max_items",
    "check: c\n    for_each: {items: [1], on_failure: stop}": '2: step c: for_each.on_failure: must be "finish" or "cancel"',
    "check: c\n    for_each: {items: [1], allow: [ok]}": '2: step c: for_each.allow[0]: must be "bad" or "failed"',
    "id: x\n    ask: [planner, developer]\n    for_each: [1]": "3: step x: for_each does not go with a list of roles",
    "id: x\n    ask: [planner]\n    for_each: {items: [1]}": "3: step x: for_each: items does not go with a list of roles",
    "id: x\n    ask: '*'\n    for_each: [1]": '3: step x: for_each goes with one role, not with "*"',
    "id: r\n    review: {}": '2: step r: review: missing key "question"',
    "id: r\n    review: 3": "2: step r: review: must be text, not 3",
    "id: r\n    review: {question: q, after: 3}": "2: step r: review.after: must be a mapping, not 3",
    "id: r\n    review: {question: q, after: {seconds: 3}}": '2: step r: review.after: missing key "answer"',
    "id: r\n    review: {question: q, after: {seconds: 3, answer: yes}}": "2: step r: review.after.answer: must be text",
    "id: r\n    review: {question: q, after: {seconds: 3, answer: go}}": "2: step r: review.after: answer: give one of reject",
    "id: r\n    review: {question: q, option: [a]}": '2: step r: review: unknown key "option"; did you mean "options"?',
    "id: r\n    review: q\n    allow: [bad]": "3: step r: allow: [bad] does not go with review",
}


@pytest.mark.parametrize("step", MISTAKES)
def test_mistake_names_file_line_and_key(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog, step: str) -> None:
    path = write(f"steps:\n  - {step}", "flows/f.yaml")
    with pytest.raises(DefinitionError) as caught:
        load_flow("f", tmp_path, two_roles)
    line, _, message = MISTAKES[step].partition(": ")
    assert message_at(path, caught.value).startswith(message)
    assert str(caught.value).startswith(f"{path}:{int(line) + 1}:")


def test_migrate_rewrites_what_validate_notes(tmp_path: Path) -> None:
    folder = write_team(tmp_path, own="# twice\nsteps: [{ask: thinker, max_visits: 2}]  # at most\n")
    file = "team/flows/own.yaml"
    note = f"note: {file}: former keys: max_visits; `codex-multi-role flows migrate {file}` rewrites them"
    assert console("flows", "validate", "own", "--roles", "team", folder=folder).stderr.count(note) == 1
    first, second = (console("flows", "migrate", "--roles", "team", folder=folder) for _ in range(2))
    assert (first.stderr, second.stderr) == (f"rewrote {file}\n", f"{file} has no former keys\n")
    assert (folder / file).read_text() == "# twice\nsteps: [{ask: thinker, limits: {visits: 2}}]  # at most\n"
    assert "former" not in console("flows", "validate", "own", "--roles", "team", folder=folder).stderr
