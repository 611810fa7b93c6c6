"""Minimal flows and what the rules say about each: those on which the engine and the rules have differed, or may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.support.random_flows import Case
from tests.verdicts.rules import Record

WORK: dict[str, Record] = {
    "ask": {"ask": "reader"},
    "check": {"check": "command", "with": {"argv": ["true"]}},
    "review": {"review": "Continue?"},
}
SKIP, TWICE, COPY = (
    {"allow": ["bad", "failed"]},
    {"retry": {"attempts": 2, "backoff_seconds": 0}},
    {"isolate": "worktree"},
)
EACH = {"items": [0, 1]}
ITEMS = {"for_each": [0, 1]}


class Expected(NamedTuple):
    exit_code: int
    outcome: str
    path: list[str]
    work: list[str]


def step(name: str, kind: str, *keys: Record, **more: Any) -> dict[str, Any]:
    """A step that does the work of ``kind``, or calls the flow of that name."""
    merged: dict[str, Any] = {"id": name, **(WORK.get(kind) or {"call": kind}), "next": []}
    for each in (*keys, more):
        merged |= each
    return merged


def case(
    own: Sequence[Record],
    results: Mapping[str, str],
    *,
    final: Sequence[Record] = (),
    merges: Mapping[str, list[bool]] | None = None,
    **called: Sequence[Record],
) -> Case:
    """``results``: of each leaf, the words for its executions."""
    flows = [{"name": "own", "steps": [*own], "finally": [*final]}]
    flows += [{"name": name, "steps": [*steps]} for name, steps in called.items()]
    return Case(flows, {place: words.split() for place, words in results.items()}, dict(merges or {}))


def expect(end: str, path: str, work: str) -> Expected:
    code, outcome = end.split()
    return Expected(int(code), outcome, path.split(), work.split())


A_P = "a a/p"
TOLD_FAILED = {"next": [{"when": "steps.a.exit_code == 3", "end": "told"}]}
TOLD_BAD = {"next": [{"when": "steps.a.exit_code == 1", "end": "told"}]}
FINAL = ({"id": "f", **WORK["check"]}, {"id": "g", **WORK["check"]})
NEEDED = {"for_each": {"items": [{"id": "x", "needs": []}, {"id": "y", "needs": ["x"]}], "needs": "{{ item.needs }}"}}

MINIMAL_FLOWS: Mapping[str, tuple[Case, Expected]] = {
    "R1: each try of a call repeats its items": (
        case([step("a", "inner", TWICE)], {"a/p": "good bad good"}, inner=[step("p", "check", ITEMS)]),
        expect("0 success", "a a/p a/p", "a.1/p.1.0 a.1/p.1.1 a.1/p.1.0 a.1/p.1.1"),
    ),
    "R1: each try of a call repeats its reviews": (
        case([step("a", "inner", TWICE)], {"a/p": "bad good"}, inner=[step("p", "review")]),
        expect("0 success", "a a/p a/p", "a.1/p.1 a.1/p.1"),
    ),
    "R2: within a skipped call, a failed item stops the others": (
        case([step("a", "inner", SKIP)], {"a/p": "failed"}, inner=[step("p", "check", ITEMS)]),
        expect("0 success", A_P, "a.1/p.1.0"),
    ),
    "R2: within a try that is not the last, a failed item stops the others": (
        case([step("a", "inner", TWICE)], {"a/p": "failed good"}, inner=[step("p", "check", ITEMS)]),
        expect("0 success", "a a/p a/p", "a.1/p.1.0 a.1/p.1.0 a.1/p.1.1"),
    ),
    "R2: within an item under `until`, a failed item stops the others": (
        case(
            [step("a", "inner", for_each={**EACH, "until": "results | selectattr('status', 'eq', 'done') | list"})],
            {"a/p": "failed good"},
            inner=[step("p", "check", ITEMS)],
        ),
        expect("0 success", "a a/p a/p", "a.1.0/p.1.0 a.1.1/p.1.0 a.1.1/p.1.1"),
    ),
    "R2: within a skipped call, a copy that cannot be merged fails the call": (
        case(
            [step("a", "inner", SKIP, TOLD_FAILED)],
            {"a/p": "good", "a/q": "good"},
            merges={"a/p": [False]},
            inner=[step("p", "ask", COPY), step("q", "ask")],
        ),
        expect("0 told", A_P, "a.1/p.1"),
    ),
    "R2: `exit_code` of a skipped call is 3 if it failed": (
        case([step("a", "inner", SKIP, TOLD_FAILED)], {"a/p": "failed"}, inner=[step("p", "ask")]),
        expect("0 told", A_P, "a.1/p.1"),
    ),
    "R2: `exit_code` of a skipped call is 1 if it was bad": (
        case([step("a", "inner", SKIP, TOLD_BAD)], {"a/p": "bad"}, inner=[step("p", "check")]),
        expect("0 told", A_P, "a.1/p.1"),
    ),
    "R2: a call that failed is no bad call for `next` and `allow: [bad]`": (
        case(
            [step("a", "inner", next=[{"when": "steps.a.exit_code > 0", "end": "told"}])],
            {"a/p": "failed"},
            inner=[step("p", "ask")],
        ),
        expect("3 bad_request", A_P, "a.1/p.1"),
    ),
    "R2: an item that needs a bad one is skipped, not failed": (
        case([step("a", "check", NEEDED, next=[{"when": "steps.a.failed > 0", "end": "failed"}])], {"a": "bad"}),
        expect("1 a_failed", "a", "a.1.0"),
    ),
    "V2: a route that reads no result does not decide on it": (
        case([step("a", "check", next=[{"when": "cycle == 1", "end": "unread"}])], {"a": "bad"}),
        expect("1 a_failed", "a", "a.1"),
    ),
    "V: an item that is bad counts as failed for `needs`, and the author may decide": (
        case(
            [step("a", "check", NEEDED, next=[{"when": "steps.a.results[0].bad", "end": "told"}])],
            {"a": "bad"},
        ),
        expect("0 told", "a", "a.1.0"),
    ),
    "V: with allowed items, no good one makes a fan-out bad, which that does not save": (
        case([step("a", "ask", for_each={**EACH, "allow": ["failed"]})], {"a": "failed"}),
        expect("1 a_failed", "a", "a.1.0 a.1.1"),
    ),
    **{
        f"V: `allow: [{word}]` of a {kind} saves what ended {leaf}": (
            case([step("a", kind, allow=[word])], {where: leaf}, inner=[step("p", "check")]),
            expect(end, path, work),
        )
        for kind, where, path, work in (("check", "a", "a", "a.1"), ("inner", "a/p", A_P, "a.1/p.1"))
        for word, leaf, end in (("failed", "failed", "0 success"), ("failed", "bad", "1 a_failed"))
    },
    **{
        f"V: `for_each: {{allow: [{word}]}}`, with an item that ends {items.split()[0]}": (
            case([step("a", "check", for_each={**EACH, "allow": [word]})], {"a": items}),
            expect(end, "a", work),
        )
        for word, items, end, work in (
            ("bad", "bad good", "0 success", "a.1.0 a.1.1"),
            ("bad", "failed good", "3 check_failed", "a.1.0"),
            ("failed", "bad good", "1 a_failed", "a.1.0 a.1.1"),
            ("failed", "failed good", "0 success", "a.1.0 a.1.1"),
        )
    },
    "V: `until` that is not met is bad with allowed items as well": (
        case(
            [step("a", "ask", for_each={**EACH, "allow": ["failed"], "until": "results | selectattr('bad') | list"})],
            {"a": "good"},
        ),
        expect("1 a_failed", "a", "a.1.0 a.1.1"),
    ),
    "V: a bad called flow whose copy cannot be merged has failed": (
        case([step("a", "inner", COPY)], {"a/p": "bad"}, merges={"a": [False]}, inner=[step("p", "check")]),
        expect("3 merge_conflicts", A_P, "a.1/p.1"),
    ),
    "V: merging is not part of the work that `retry` repeats": (
        case([step("a", "ask", COPY, TWICE)], {"a": "good"}, merges={"a": [False, True]}),
        expect("3 merge_conflicts", "a", "a.1"),
    ),
    "R4: every final check runs, and one that could not run turns 0 into 1": (
        case([step("a", "ask")], {"a": "good", "finally.f": "failed", "finally.g": "good"}, final=FINAL),
        expect("1 finally_failed", "a", "a.1 finally.f finally.g"),
    ),
    "R4: final checks change no other end": (
        case([step("a", "ask")], {"a": "failed", "finally.f": "bad", "finally.g": "bad"}, final=FINAL),
        expect("3 bad_request", "a", "a.1 finally.f finally.g"),
    ),
}
"""By the rule that decides, with what happens in it."""
