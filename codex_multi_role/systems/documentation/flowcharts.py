"""Whether a Mermaid flowchart is well formed, in the subset of the language that nearly all of them use.

This is approximate: Mermaid may refuse what passes here, and the reverse. `mermaid` uses Mermaid's own parser if it is
available.

A model wrote the text: whatever it is, judging takes linear time. So a statement is read from left to right, node,
link, node, and no pattern can match a text in more than a few ways.
"""

from __future__ import annotations

import re

HEADER = re.compile(r"(?:flowchart|graph)(?:[ \t]+(?:TB|TD|BT|RL|LR))?[ \t]*;?\Z")
_FRONT_MATTER = re.compile(r"\A\s*---\n.*?\n---\n", re.DOTALL)
_OTHER = re.compile(r"(?:style|classDef|class|click|linkStyle|direction|accTitle|accDescr)\b")
_ID = r"\w(?:[\w./]|-(?=\w))*+"
_TEXT = r'(?:\s*+"[^"]*"\s*+|[^"\[\](){}|<>]+)'
_SHAPES = "|".join(
    rf"{re.escape(begin)}{_TEXT}{re.escape(end)}"
    for begin, end in (
        ("(((", ")))"),
        ("((", "))"),
        ("([", "])"),
        ("[[", "]]"),
        ("[(", ")]"),
        ("{{", "}}"),
        ("[/", "/]"),
        ("[\\", "\\]"),
        ("[/", "\\]"),
        ("[\\", "/]"),
        ("[", "]"),
        ("(", ")"),
        ("{", "}"),
        (">", "]"),
    )
)
_NODE = re.compile(rf"{_ID}(?:@\{{[^}}]*\}}|{_SHAPES})?(?::::{_ID})?")
_LINE = r"(?:<|[xo](?=[-=]))?(?:-{2,}|={2,}|-\.+-|~{3,})(?:[>xo](?=\s|\||\w|$))?"
_WORDS = {mark: rf'(?:"[^"]*"|[^"\n{mark}]+?)' for mark in ("-", "=", ".")}
_LABELLED = "|".join(
    (
        rf"<?--\s+{_WORDS['-']}\s*-{{2,}}[>xo]?",
        rf"<?==\s+{_WORDS['=']}\s*={{2,}}[>xo]?",
        rf"<?-\.\s+{_WORDS['.']}\s*\.-[>xo]?",
    )
)
_LINK = re.compile(rf"\s*+(?:&|{_LABELLED}|{_LINE}(?:\s*+\|(?:\"[^\"]*\"|[^|\"]*)\|)?)\s*+")
_LONGEST_LINE = 1_000


def flowchart_problem(text: str) -> str | None:
    """What is wrong with it, or an empty text; None for a diagram of another kind, which is not judged here."""
    lines = [line.strip() for line in _without_directives(_FRONT_MATTER.sub("", text)).splitlines()]
    statements = [(number, line) for number, line in enumerate(lines, 1) if line and not line.startswith("%%")]
    if not statements:
        return "it is empty"
    first = statements[0][1]
    if not first.startswith(("flowchart", "graph")):
        return None if re.match(r"[a-zA-Z][\w-]*\b", first) else f"it begins with {first[:40]!r}"
    header, *rest = first.split(";", 1)
    if not HEADER.match(header.strip()):
        return f"line 1: {header[:60]!r}"
    rest_of_first = [(statements[0][0], rest[0].strip())] if rest and rest[0].strip() else []
    return _body_problem([*rest_of_first, *statements[1:]])


def _without_directives(text: str) -> str:
    """Remove ``%%{ … }%%``, which may span several lines."""
    first, *others = text.split("%%{")
    return first + "".join(rest.partition("}%%")[2] if "}%%" in rest else f"%%{{{rest}" for rest in others)


def _body_problem(statements: list[tuple[int, str]]) -> str:
    opened = 0
    for number, line in statements:
        for part in _parts(line):
            if part == "end":
                opened -= 1
            elif re.match(r"subgraph\b", part):
                opened += 1
            elif not _OTHER.match(part) and not _is_statement(part):
                return f"line {number}: {part[:60]!r}"
            if opened < 0:
                return f"line {number}: end without subgraph"
    return "subgraph without end" if opened else ""


def _parts(line: str) -> list[str]:
    """The statements of a line, separated by ``;`` outside quotes."""
    pieces = re.findall(r'(?:"[^"]*"|[^";]|"(?=[^"]*$))+', line)
    return [piece.strip() for piece in pieces if piece.strip()]


def _is_statement(part: str) -> bool:
    reserved = re.search(r"(?:^|[>\-=&])\s*end\s*(?:$|[-=&])", part)
    return len(part) <= _LONGEST_LINE and not reserved and _links_nodes(part)


def _links_nodes(text: str) -> bool:
    """Whether it is a node, or nodes with links between them."""
    node = _NODE.match(text)
    while node is not None and node.end() < len(text):
        link = _LINK.match(text, node.end())
        node = link and _NODE.match(text, link.end())
    return node is not None
