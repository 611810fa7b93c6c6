"""Flow diagrams: Mermaid, and plain text for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from codex_multi_role.catalog import FlowSpec
from codex_multi_role.flow.chart import BACK, NEXT, Arrow, Chart, Node, chart_of, charts, end_words, one_line
from codex_multi_role.flow.routing import End

COLUMNS = 80
_LABEL_COLUMNS = 44
_MERMAID_SHAPES = {"ask": '["%s"]', "check": '{{"%s"}}', "review": '[/"%s"/]', "call": '[["%s"]]'}
_ASCII_SHAPES = {"ask": "[%s]", "check": "{%s}", "review": "/%s/", "call": "[[%s]]"}
# What could end a label or start something else in it: HTML, a comment, a style (found by its colon), Markdown.
_NOT_TEXT = re.compile(r"""["#&<>`%:;\\*~]|(?<!\w)_|_(?!\w)|^[-+]|(?<=\d)\.(?= )""")


def mermaid(flows: Mapping[str, FlowSpec], name: str) -> str:
    """A Mermaid flowchart of the flow ``name``, with each flow that it calls once, as a subgraph.

    An ask is a box, a check a hexagon, a review slanted, a call a box with double sides, an end rounded.
    """
    shown = charts(flows, name)
    lines = ["flowchart TD"]
    for number, chart in enumerate(shown):
        title = f'subgraph f{number}["{_label([f"flow {chart.name}"])}"]'
        body = list(_mermaid_flow(chart, f"f{number}"))
        lines += [f"    {line}" for line in ([title, *(f"    {line}" for line in body), "end"] if number else body)]
    numbers = {chart.name: number for number, chart in enumerate(shown)}
    for chart in shown:
        for index, node in enumerate(chart.nodes):
            if node.step.call is not None:
                lines.append(f'    f{numbers[chart.name]}s{index} -.->|"calls"| f{numbers[node.step.call]}start')
    return "\n".join(lines) + "\n"


def _mermaid_flow(chart: Chart, prefix: str) -> Iterator[str]:
    names = _names(chart, prefix)
    yield f'{prefix}start(("start"))'
    for node in chart.nodes:
        named = [] if node.id in (node.step.ask, node.step.check, node.step.call) else [node.id]
        yield names[node.id] + _shape(_MERMAID_SHAPES, node) % _label([*named, node.words, *node.notes])
    for end in chart.ends:
        yield f'{names[end]}(["{_label([end.outcome, f"exit {end.exit_code}"])}"])'
    yield f"{prefix}start --> {names[chart.nodes[0].id]}"
    for node in chart.nodes:
        for arrow in node.arrows:
            label = f'|"{_label([arrow.label])}"|' if arrow.label else ""
            yield f"{names[node.id]} -->{label} {names[arrow.to]}"


def outline(flow: FlowSpec) -> str:
    """A Mermaid flowchart of ``flow`` alone, in the shapes of `mermaid`: its steps, ends and one arrow per transition.

    Conditions and the contents of called flows are left out.
    """
    chart = chart_of(flow)
    names = _names(chart)
    lines = [names[node.id] + _shape(_MERMAID_SHAPES, node) % _label([node.id, *_who(node)]) for node in chart.nodes]
    lines += [f'{names[end]}(["{_label([end.outcome])}"])' for end in chart.ends]
    for node in chart.nodes:
        ways = dict.fromkeys(names[arrow.to] for arrow in node.arrows)
        lines.append(f"{names[node.id]} --> {' & '.join(ways)}")
    return "\n".join(["flowchart LR", *(f"    {line}" for line in lines)]) + "\n"


def _names(chart: Chart, prefix: str = "") -> dict[str | End, str]:
    """Names for Mermaid, which does not allow every step's ID as one."""
    names: dict[str | End, str] = {node.id: f"{prefix}s{index}" for index, node in enumerate(chart.nodes)}
    return names | {end: f"{prefix}e{index}" for index, end in enumerate(chart.ends)}


def _shape(shapes: Mapping[str, str], node: Node) -> str:
    """The shape of the step's kind; that of an ask for a kind without one."""
    return shapes.get(node.step.kind, shapes["ask"])


def _who(node: Node) -> list[str]:
    """The role that is asked, unless the step is named after it."""
    return [node.words] if node.step.ask not in (None, node.id) else []


def _label(texts: list[str]) -> str:
    """The lines of a label, wrapped, with everything escaped that Mermaid would not read as text."""
    lines: list[str] = []
    for text in texts:
        lines += wrap(one_line(text), _LABEL_COLUMNS, break_long_words=False, break_on_hyphens=False)
    return "<br/>".join(_NOT_TEXT.sub(lambda found: f"#{ord(found[0])};", line) for line in lines)


def ascii(flows: Mapping[str, FlowSpec], name: str) -> str:
    """The flow ``name`` as text of at most 80 columns, followed by each flow that it calls.

    An ask is shown in ``[ ]``, a check in ``{ }``, a review in ``/ /``, a call in ``[[ ]]``, an end in ``( )``.
    """
    return "\n\n".join("\n".join(_ascii_flow(chart)) for chart in charts(flows, name)) + "\n"


def _ascii_flow(chart: Chart) -> Iterator[str]:
    title = f"flow {chart.name}: {chart.description}" if chart.description else f"flow {chart.name}"
    yield from _wrapped(title, "", "  ")
    yield from ("", "(start)", "   |", "   v")
    for node in chart.nodes:
        yield from _wrapped(f"{_shape(_ASCII_SHAPES, node) % node.id} {node.words}", "", "      ")
        for note in node.notes:
            yield from _wrapped(note, "      ", "        ")
        *ways, last = node.arrows
        if last.leads == NEXT:
            yield from _ascii_ways(ways, continues=True)
            yield from (f"   | {last.label}".rstrip(), "   v")
        else:
            yield from _ascii_ways(node.arrows, continues=False)
            yield from [""] if node is not chart.nodes[-1] else []


def _ascii_ways(ways: Sequence[Arrow], *, continues: bool) -> Iterator[str]:
    for number, way in enumerate(ways):
        target = f"({end_words(way.to)})" if isinstance(way.to, End) else way.to
        back = " (back)" if way.leads == BACK else ""
        stays = continues or number + 1 < len(ways)
        label = f"-- {way.label} " if way.label else ""
        yield from _wrapped(
            f"{label}--> {target}{back}", "   |" if stays else "   `", "   |     " if stays else "         "
        )


def _wrapped(text: str, first: str, others: str) -> list[str]:
    return wrap(text, COLUMNS, initial_indent=first, subsequent_indent=others, break_on_hyphens=False) or [first]
