"""Flow diagrams: Mermaid, and plain text for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from textwrap import wrap

from codex_multi_role.catalog import FlowSpec, StepSpec
from codex_multi_role.flow.conditions import with_called
from codex_multi_role.flow.ends import ends
from codex_multi_role.flow.routing import End
from codex_multi_role.flow.words import Arrow, arrows, end_words, one_line, step_notes, step_words

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
    shown = with_called(flows, name)
    lines = ["flowchart TD"]
    for number, flow in enumerate(shown):
        title = f'subgraph f{number}["{_label([f"flow {flow.name}"])}"]'
        body = list(_mermaid_flow(flow, f"f{number}"))
        lines += [f"    {line}" for line in ([title, *(f"    {line}" for line in body), "end"] if number else body)]
    numbers = {flow.name: number for number, flow in enumerate(shown)}
    for flow in shown:
        for index, step in enumerate(flow.steps):
            if step.call is not None:
                lines.append(f'    f{numbers[flow.name]}s{index} -.->|"calls"| f{numbers[step.call]}start')
    return "\n".join(lines) + "\n"


def _mermaid_flow(flow: FlowSpec, prefix: str) -> Iterator[str]:
    nodes: dict[str | End, str] = {step.id: f"{prefix}s{index}" for index, step in enumerate(flow.steps)}
    nodes |= {end: f"{prefix}e{index}" for index, end in enumerate(ends(flow))}
    yield f'{prefix}start(("start"))'
    for step in flow.steps:
        named = [] if step.id in (step.ask, step.check, step.call) else [step.id]
        yield nodes[step.id] + _shape(_MERMAID_SHAPES, step) % _label([*named, step_words(step), *step_notes(step)])
    for end in ends(flow):
        yield f'{nodes[end]}(["{_label([end.outcome, f"exit {end.exit_code}"])}"])'
    yield f"{prefix}start --> {nodes[flow.steps[0].id]}"
    for index, step in enumerate(flow.steps):
        for arrow in arrows(flow, index):
            label = f'|"{_label([arrow.label])}"|' if arrow.label else ""
            yield f"{nodes[step.id]} -->{label} {nodes[arrow.to]}"


def _shape(shapes: Mapping[str, str], step: StepSpec) -> str:
    """The shape of the step's kind; that of an ask for a kind without one."""
    return shapes.get(step.kind, shapes["ask"])


def outline(flow: FlowSpec) -> str:
    """A Mermaid flowchart of ``flow`` alone, in the shapes of `mermaid`: its steps, ends and one arrow per transition.

    Conditions and the contents of called flows are left out.
    """
    nodes: dict[str | End, str] = {step.id: f"s{index}" for index, step in enumerate(flow.steps)}
    nodes |= {end: f"e{index}" for index, end in enumerate(ends(flow))}
    lines = [nodes[step.id] + _shape(_MERMAID_SHAPES, step) % _label([step.id, *_who(step)]) for step in flow.steps]
    lines += [f'{nodes[end]}(["{_label([end.outcome])}"])' for end in ends(flow)]
    for index, step in enumerate(flow.steps):
        ways = dict.fromkeys(nodes[arrow.to] for arrow in arrows(flow, index))
        lines.append(f"{nodes[step.id]} --> {' & '.join(ways)}")
    return "\n".join(["flowchart LR", *(f"    {line}" for line in lines)]) + "\n"


def _who(step: StepSpec) -> list[str]:
    """The role that is asked, unless the step is named after it."""
    return [step_words(step)] if step.ask not in (None, step.id) else []


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
    return "\n\n".join("\n".join(_ascii_flow(flow)) for flow in with_called(flows, name)) + "\n"


def _ascii_flow(flow: FlowSpec) -> Iterator[str]:
    title = f"flow {flow.name}: {one_line(flow.description)}" if flow.description else f"flow {flow.name}"
    yield from _wrapped(title, "", "  ")
    yield from ("", "(start)", "   |", "   v")
    for index, step in enumerate(flow.steps):
        yield from _wrapped(f"{_shape(_ASCII_SHAPES, step) % step.id} {step_words(step)}", "", "      ")
        for note in step_notes(step):
            yield from _wrapped(note, "      ", "        ")
        ways = arrows(flow, index)
        falls_through = index + 1 < len(flow.steps) and ways[-1].to == flow.steps[index + 1].id
        yield from _ascii_ways(flow, index, ways[:-1] if falls_through else ways, falls_through)
        if falls_through:
            yield from (f"   | {ways[-1].label}".rstrip(), "   v")
        else:
            yield from [""] if index + 1 < len(flow.steps) else []


def _ascii_ways(flow: FlowSpec, index: int, ways: tuple[Arrow, ...], continues: bool) -> Iterator[str]:
    order = [step.id for step in flow.steps]
    for number, way in enumerate(ways):
        if isinstance(way.to, End):
            target = f"({end_words(way.to)})"
        else:
            target = way.to + (" (back)" if order.index(way.to) <= index else "")
        stays = continues or number + 1 < len(ways)
        label = f"-- {way.label} " if way.label else ""
        yield from _wrapped(f"{label}--> {target}", "   |" if stays else "   `", "   |     " if stays else "         ")


def _wrapped(text: str, first: str, others: str) -> list[str]:
    return wrap(text, COLUMNS, initial_indent=first, subsequent_indent=others, break_on_hyphens=False) or [first]
