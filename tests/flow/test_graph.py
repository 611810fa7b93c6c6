from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.catalog import FlowSpec
from codex_multi_role.flow import End
from codex_multi_role.flow.chart import BACK, NEXT, OUT, Arrow, chart_of, end_words, one_line, step_notes, step_words
from codex_multi_role.flow.graph import ascii, mermaid, outline
from tests.support.flows import flow_of, flows_of, specs_of
from tests.support.random_flows import BOUNDED, Record, flows

FLOWS = flows_of(
    main="""
description: Everything that can be drawn.
steps:
  - {id: all, ask: "*"}
  - id: look
    review: Is "all" well?
    limits: {visits: 2}
    next: [{when: "steps.look.approved and 1 < 2", to: work}, {when: "cycle < 3", to: all}, {end: given up, exit: 1}]
  - {id: work, ask: developer, for_each: {items: "{{ steps.all.todos }}", as: todo, max_items: 8}, isolate: worktree}
  - {id: dig, call: topic}
  - {check: choose}
""",
    topic="steps: [{ask: reader}, {call: topic, limits: {depth: 2}}, {id: again, call: other}]",
    other="steps: [{check: c}]",
    unrelated="steps: [{check: c}]",
)

NODE = re.compile(r'(?P<id>f\d+\w+)(?P<shape>\["|\[\["|\{\{"|\[/"|\(\["|\(\(")(?P<label>[^"]*)"[\]\)\}/]+')
EDGE = re.compile(r'(?P<origin>f\d+\w+) (?:-->|-\.->)(?:\|"(?P<label>[^"]+)"\|)? (?P<target>f\d+\w+)')
SUBGRAPH = re.compile(r'subgraph f\d+\["(?P<label>[^"]*)"\]')
HARMLESS = re.compile(r"(?:[^\"&<>`%:;\\*~#]|#\d+;|<br/>)*")


def parts(text: str) -> tuple[dict[str, tuple[str, str]], list[tuple[str, str, str]], list[str]]:
    """Nodes (shape, label) by id, edges (origin, label, target) and subgraphs; every line is one of these."""
    first, *lines = text.splitlines()
    assert first == "flowchart TD"
    nodes: dict[str, tuple[str, str]] = {}
    edges, subgraphs = [], []
    for line in map(str.strip, lines):
        if node := NODE.fullmatch(line):
            assert node["id"] not in nodes
            nodes[node["id"]] = (node["shape"], read(node["label"]))
        elif edge := EDGE.fullmatch(line):
            edges.append((edge["origin"], read(edge["label"] or ""), edge["target"]))
        elif subgraph := SUBGRAPH.fullmatch(line):
            subgraphs.append(read(subgraph["label"]))
        else:
            assert line == "end"
    assert {each for origin, _, target in edges for each in (origin, target)} == nodes.keys()
    return nodes, edges, subgraphs


def read(label: str) -> str:
    """What a label shows. Nothing in it may be more than text to Mermaid."""
    assert HARMLESS.fullmatch(label)
    return unescape(re.sub(r"#(\d+);", r"&#\1;", label.replace("<br/>", "\n")))


def test_every_kind_of_node_has_its_shape() -> None:
    nodes, _, subgraphs = parts(mermaid(FLOWS, "main"))
    assert nodes["f0s0"] == ('["', "all\nask every role")
    assert nodes["f0s1"] == ('[/"', 'look\nreview: Is "all" well?\nat most 2 visits')
    assert nodes["f0s2"][0] == '["'
    assert "for each todo of steps.all.todos, 8 at most" in nodes["f0s2"][1].replace("\n", " ")
    assert "in a worktree of its own" in nodes["f0s2"][1]
    assert nodes["f0s3"] == ('[["', "dig\ncall topic")
    assert nodes["f0s4"] == ('{{"', "check choose")
    assert nodes["f0e0"] == ('(["', "look_visits_used_up\nexit 1")
    assert nodes["f0e1"] == ('(["', "given up\nexit 1")
    assert nodes["f0start"] == ('(("', "start")
    assert subgraphs == ["flow topic", "flow other"]


def test_routes_have_conditions_and_calls_lead_to_their_flow() -> None:
    _, edges, _ = parts(mermaid(FLOWS, "main"))
    assert edges[:6] == [
        ("f0start", "", "f0s0"),
        ("f0s0", "", "f0s1"),
        ("f0s1", "visit 3", "f0e0"),
        ("f0s1", "steps.look.approved and 1 < 2", "f0s2"),
        ("f0s1", "cycle < 3", "f0s0"),
        ("f0s1", "otherwise", "f0e1"),
    ]
    calls = [("f0s3", "calls", "f1start"), ("f1s1", "calls", "f1start"), ("f1s2", "calls", "f2start")]
    assert edges[-3:] == calls


def test_only_what_is_called_is_drawn() -> None:
    nodes, _, subgraphs = parts(mermaid(FLOWS, "other"))
    assert len(nodes) == 3
    assert subgraphs == []
    assert "flow unrelated" not in ascii(FLOWS, "main")


ODD = [
    '"',
    "#",
    ";",
    ":",
    "%%",
    "<br/>",
    "&amp;",
    "`md`",
    "{{",
    "}}",
    "|",
    "[x]",
    "(x)",
    "\\",
    "end",
    "style:#x;",
    "*b*",
]
NASTY = st.lists(st.sampled_from([*ODD, "__x__", "1. ", "- ", "subgraph", "-->", "\n", "é", "graph"]), min_size=1).map(
    " ".join
)


@given(question=NASTY.filter(str.strip), outcome=NASTY.filter(str.strip))
def test_label_content_is_always_text(question: str, outcome: str) -> None:
    step = {"id": "end", "review": question, "next": [{"when": f"x == '{question}'", "end": outcome}, {"to": "end"}]}
    flow = FlowSpec.model_validate({"name": "x", "steps": [step]})
    nodes, edges, _ = parts(mermaid({"x": flow}, "x"))
    assert nodes["f0s0"][1].replace("\n", " ") == f"end {one_line(f'review: {question}')}"
    assert nodes["f0e0"][1].replace("\n", " ") == f"{one_line(outcome)} exit 0"
    assert edges[1][1].replace("\n", " ") == one_line(f"x == '{question}'")


@settings(max_examples=settings().max_examples // 3)
@given(given=flows(BOUNDED))
def test_every_way_of_every_flow_is_an_edge(given: list[Record]) -> None:
    specs = specs_of(given)
    _, edges, subgraphs = parts(mermaid(specs, "own"))
    drawn = [specs["own"], *(specs[title.removeprefix("flow ")] for title in subgraphs)]
    steps = [step for flow in drawn for step in flow.steps]
    ways = [arrow for flow in drawn for node in chart_of(flow).nodes for arrow in node.arrows]
    assert len(edges) == len(drawn) + len(ways) + len([step for step in steps if step.call])
    text = ascii(specs, "own")
    assert all(len(line) <= 80 for line in text.splitlines())
    assert [text.count(f"\nflow {flow.name}\n") for flow in drawn[1:]] == [1] * (len(drawn) - 1)


def test_plain_text_reads_from_top_to_bottom() -> None:
    flow = flow_of(
        """
description: Draw it.
steps:
  - {ask: planner}
  - {id: work, ask: developer, for_each: [1, 2], isolate: worktree}
  - {check: tests, next: [{when: "steps.tests.verdict == 'failed' and cycle < 3", to: work}]}
  - {id: ok, review: "Ship?", next: [{when: "steps.ok.approved", to: ship}, {to: planner}]}
  - {id: ship, call: deliver}
""",
        "draw",
    )
    assert (
        ascii({"draw": flow, "deliver": flow_of("steps: [{check: c}]", "deliver")}, "draw")
        == """\
flow draw: Draw it.

(start)
   |
   v
[planner] ask planner
   |
   v
[work] ask developer
      for each item of 2 items, one at a time
      in a worktree of its own
   |
   v
{tests} check tests
   |-- steps.tests.verdict == 'failed' and cycle < 3 --> work (back)
   | otherwise
   v
/ok/ review: Ship?
   |-- steps.ok.approved --> ship
   `-- otherwise --> planner (back)

[[ship]] call deliver
   `--> (success, exit 0)

flow deliver

(start)
   |
   v
{c} check c
   `--> (success, exit 0)
"""
    )


@pytest.mark.parametrize("length", [5, 60, 64])
def test_long_names_and_conditions_are_wrapped(length: int) -> None:
    name, condition = "n" * length, " and ".join(["steps.x.y"] * 20)
    flow = flow_of(
        f"steps: [{{id: {name}, check: {name}, next: [{{when: {condition}, to: {name}}}, {{end: {name}}}]}}]"
    )
    text = ascii({"x": flow}, "x")
    assert max(map(len, text.splitlines())) <= 80
    assert name in text
    assert text.count("steps.x.y") == 20


def test_outline_has_the_flows_own_steps_and_each_way_once() -> None:
    assert outline(FLOWS["main"]) == (
        "flowchart LR\n"
        '    s0["all<br/>ask every role"]\n'
        '    s1[/"look"/]\n'
        '    s2["work<br/>ask developer"]\n'
        '    s3[["dig"]]\n'
        '    s4{{"choose"}}\n'
        '    e0(["look_visits_used_up"])\n'
        '    e1(["given up"])\n'
        '    e2(["success"])\n'
        "    s0 --> s1\n"
        "    s1 --> e0 & s2 & s0 & e1\n"
        "    s2 --> s3\n"
        "    s3 --> s4\n"
        "    s4 --> e2\n"
    )


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
