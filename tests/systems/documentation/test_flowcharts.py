"""The check of the flowchart subset, held against what Mermaid's own parser (11.12) said of the same texts."""

from __future__ import annotations

import pytest

from codex_multi_role.systems.documentation.flowcharts import flowchart_problem

PARSES = [
    'flowchart TD\n a["x y"]-->b',
    "graph LR\n  START((__START__)) --> analyze_structure",
    'flowchart TD\n A -- yes --> B\n A -- "no way" --> C{D?}\n B & C --> E([end it])\n E -.-> F\n G -->|text| H',
    "graph TD;\nA-->B;\nB-->C;",
    'flowchart LR\n subgraph one ["ONE"]\n direction LR\n a-->b\n end\n style a fill:#fff\n classDef big font-size:3',
    "flowchart TB\n Start@{ shape: doc}\n a:::big --> b",
    '%%{init: {"a":\n 1}}%%\nflowchart TD\n a-->b',
    "---\nconfig:\n  a: 1\n---\nflowchart TB\n a-->b",
    "flowchart TD\n n1 --> n3[(db)]\n %% hi\n n3 -. text .-> n4\n a-->b-->c",
    "flowchart TD\n a[some text with spaces] --> b(round, with comma)",
    "flowchart TD\n end1 --> backend\n a --x b\n c --o d\n e <--> f",
    'flowchart TD\n A["f(x)"] --> B["a; b"]',
    "flowchart\n a==>|t|b\n a.b --> c-d\n a --text--> b",
]
DOES_NOT = [
    ("flowchart TD\n a[x-->b", "line 2: 'a[x-->b'"),
    ('flowchart TD\n a["x]-->b', "line 2: 'a[\"x]-->b'"),
    ("flowchart TD\n a -> b", "line 2: 'a -> b'"),
    ("flowchart XX\n a-->b", "line 1: 'flowchart XX'"),
    ("flowchart TD\n a-->", "line 2: 'a-->'"),
    ("flowchart TD\n subgraph x\n a-->b", "subgraph without end"),
    ("flowchart TD\n a-->b\n end", "line 3: end without subgraph"),
    ("flowchart TD\n a[f(x)] --> b", "line 2: 'a[f(x)] --> b'"),
    ("flowchart TD\n a-->end", "line 2: 'a-->end'"),
    ("flowchart TD\n a b", "line 2: 'a b'"),
    ("flowchart TD\n a --> b ]", "line 2: 'a --> b ]'"),
    ("flowchart TD\n a{x --> b", "line 2: 'a{x --> b'"),
    ('flowchart TD\n a["q "r" s"] --> b', 'line 2: \'a["q "r" s"] --> b\''),
    ("", "it is empty"),
    ("-->", "it begins with '-->'"),
]


@pytest.mark.parametrize("text", PARSES)
def test_what_mermaid_takes_is_taken(text: str) -> None:
    assert flowchart_problem(text) == ""


@pytest.mark.parametrize(("text", "problem"), DOES_NOT)
def test_what_mermaid_refuses_is_refused_with_the_place(text: str, problem: str) -> None:
    assert flowchart_problem(text) == problem


@pytest.mark.parametrize(
    "piece", ["--b", "-- b ", "-", "& b", " & ", "--xo", "==x", "-.-", "~~~b", "-->|x", "[", '"', "%%{", "a["]
)
def test_no_text_keeps_it_busy(piece: str) -> None:
    """It runs in the process of the run, which nothing but its own end could free."""
    assert flowchart_problem(f"flowchart TD\n a{piece * 180}!")
    assert flowchart_problem(f"flowchart TD\n {piece * 20_000}") is not None


def test_other_diagrams_are_not_judged() -> None:
    assert flowchart_problem("sequenceDiagram\n A->>B: hi") is None
