from __future__ import annotations

import pytest

from codex_multi_role.flow import End
from codex_multi_role.flow.chart import BACK, NEXT, OUT, Arrow, chart_of, end_words, step_notes, step_words
from tests.support.flows import flow_of

FAN_OUT = "check: c, for_each: {items: '{{ goal }}', max_items: 8}"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("ask: planner", "ask planner"),
        ("id: a, ask: '*'", "ask every role"),
        ("check: tests", "check tests"),
        ('id: a, review: "Is it\\n  all right?\\n"', "review: Is it all right?"),
        ("call: topic", "call topic"),
    ],
)
def test_what_a_step_does(keys: str, words: str) -> None:
    assert step_words(flow_of(f"steps: [{{{keys}}}]").steps[0]) == words


@pytest.mark.parametrize(
    ("keys", "notes"),
    [
        ("check: c", []),
        (FAN_OUT, ["for each item of goal, 8 at most, one at a time"]),
        (
            "check: c, for_each: {items: '{{ goal }}', max_items: 8, as: file, concurrency: 4}",
            ["for each file of goal, 8 at most, 4 at a time"],
        ),
        (
            "check: c, for_each: {items: [1], concurrency: '{{ inputs.n }}'}",
            ["for each item of 1 item, inputs.n at a time"],
        ),
        ("check: c, for_each: [1, 2]", ["for each item of 2 items, one at a time"]),
        ("ask: a, isolate: worktree, retry: {attempts: 3}", ["in a worktree of its own", "up to 3 tries"]),
        ("check: c, allow: [failed], limits: {visits: 2}", ["a failure does not end the run", "at most 2 visits"]),
        ("id: r, review: {question: Well, after: {seconds: 90, answer: reject}}", ["reject after 90 s"]),
        ("call: x, limits: {depth: 3}, set: {a: 1, b: 2}", ["at most 3 deep", "sets a, b"]),
    ],
)
def test_what_stands_around_a_step(keys: str, notes: list[str]) -> None:
    assert list(step_notes(flow_of(f"steps: [{{{keys}}}]").steps[0])) == notes


def test_ways_out_in_the_order_they_are_tried() -> None:
    flow = flow_of("""steps:
      - {check: a, limits: {visits: 2}, next: [{when: "steps.a.red\\n or cycle > 1", to: a}]}
      - {check: b}
      - {check: c, next: [{end: over, exit: 1}]}
    """)
    first, second, third = chart_of(flow).nodes
    assert first.arrows == (
        Arrow("visit 3", End("a_visits_used_up", 1), OUT),
        Arrow("steps.a.red or cycle > 1", "a", BACK),
        Arrow("otherwise", "b", NEXT),
    )
    assert second.arrows == (Arrow("", "c", NEXT),)
    assert (third.arrows, third.ends) == ((Arrow("", End("over", 1), OUT),), (End("over", 1),))
    assert end_words(End("over", 1)) == "over, exit 1"
