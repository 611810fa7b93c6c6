"""The page of the shipped flows, and a drawing of each."""

from __future__ import annotations

import json
import re

from codex_multi_role.catalog import FlowSpec, list_flows
from codex_multi_role.extensions.pages.report.flow_picture import PathTaken, draw
from codex_multi_role.extensions.pages.report.rendering import template
from codex_multi_role.flow.chart import chart_of
from codex_multi_role.reading.shipped import packaged_roles
from tests.docs.markdown import code, page, prose, table
from tests.docs.pages import TOP

ABOUT = """
These flows are part of the package. No command on this page asks a model: a playbook gives the answers. In the
drawings, the edge of a box has the colour of its kind: a role's turn is blue, a check green, a question to you
yellow, another flow violet. `flows graph NAME` draws a flow with all that it calls, and `flows show NAME` explains
it.
"""
FUNCTION = r"printf 'def sign(number):\n    if number < 0:\n        return -1\n    return 1\n' > sign.py"
NOTES = (
    r"mkdir -p notes && printf 'The old bridge was built by Hanna Berg.\n' > notes/a.md && "
    r"printf 'The old bridge was opened in 1887.\n' > notes/b.txt"
)
SHORT_FUNCTION = r"printf 'def sign(number):\n    return -1 if number < 0 else 1\n' > sign.py"
TRIED = {
    "cycles": ("teams", 'codex-multi-role --playbook roman-numerals --workspace "$(mktemp -d)"'),
    "testgen": (
        "generate-tests",
        f"{FUNCTION} && codex-multi-role --flow testgen --input target=sign.py --playbook testgen",
    ),
    "testgen-duel": (
        "generate-tests",
        f"{FUNCTION} && codex-multi-role --flow testgen-duel --input target=sign.py --input mutation=false "
        "--playbook testgen-duel",
    ),
    "plan-solve": ("plan-and-solve", "codex-multi-role --flow plan-solve --playbook circle"),
    "research": (
        "research",
        f"{NOTES} && codex-multi-role --flow research --input sources=notes --input depth=quick --playbook research",
    ),
    "document": (
        "document-a-repository",
        f"{SHORT_FUNCTION} && codex-multi-role --flow document --playbook document --yes",
    ),
}
"""The guide of each flow, and a command that plays it."""
STYLE = """
svg { color-scheme: light dark; --paper: light-dark(#fff, #1e2129); --line: light-dark(#868e9c, #76808f);
  --ink: light-dark(#1b2330, #e4e8f0); --soft: light-dark(#556074, #a3adc0); }
.ground { fill: var(--paper); } text { font: 13px system-ui, sans-serif; fill: var(--soft); }
.name { font-weight: 650; fill: var(--ink); } .box rect { fill: none; stroke: var(--line); }
.box rect.edge { stroke: none; fill: #4a73d9; } .box.check rect.edge { fill: #2f9e78; }
.box.review rect.edge { fill: #d9962b; } .box.call rect.edge { fill: #8a63c9; }
.box.end.good rect { stroke: #2f9e78; } .box.end.bad rect { stroke: #d1563f; }
.way path { fill: none; stroke: var(--line); } .way path.arrow, .arrow { fill: var(--line); stroke: none; }
.way text { font-size: 12px; }
"""


def exhibits() -> dict[str, FlowSpec]:
    """The shipped flows that people start: those that no other shipped flow calls, and those with a playbook."""
    shipped = {entry.name: entry.flow for entry in list_flows(packaged_roles()) if entry.flow is not None}
    called = {step.call for flow in shipped.values() for step in flow.steps}
    if missing := shipped.keys() - called - TRIED.keys():
        raise ValueError(f"no command tries {', '.join(missing)}")
    return {name: shipped[name] for name in TRIED}


def shipped_flows() -> str:
    """Each flow with its command, its drawing, its inputs and its ends."""
    return page("Shipped flows", ABOUT, *(part for flow in exhibits().values() for part in _exhibit(flow)))


def _exhibit(flow: FlowSpec) -> list[str]:
    guide, command = TRIED[flow.name]
    rows = [
        (code(name), spec.type, _default(spec.default), prose(_about(spec.description, spec.wanted)))
        for name, spec in flow.inputs.items()
    ]
    return [
        f"## {flow.name}",
        prose(flow.description) + f" Guide: [{_title(guide)}](../how-to/{guide}.md).",
        f"```sh\n{command}\n```",
        f"![The flow {flow.name}: {', '.join(step.id for step in flow.steps)}](flows/{flow.name}.svg)",
        table(("input", "type", "default", "meaning"), rows),
    ]


def _title(guide: str) -> str:
    """The heading of the guide's page."""
    return (TOP / f"docs/how-to/{guide}.md").read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def _default(value: object) -> str:
    return "" if value in (None, "", []) else code(value if isinstance(value, str) else json.dumps(value))


def _about(description: str, accepted: str) -> str:
    return "; ".join(filter(None, (description, accepted)))


def drawing(flow: FlowSpec) -> str:
    """The flow as an SVG file, drawn as in a report but without a run."""
    picture = draw(chart_of(flow), PathTaken())
    drawn = str(template("drawings.html").module.flow(picture, 1))  # type: ignore[attr-defined]  # a macro
    found = re.search(r"<svg class=\"flow\".*</svg>", drawn, re.DOTALL)
    assert found is not None
    plain = re.sub(r"<title.*?</title>", "", found[0], flags=re.DOTALL)
    head, _, body = plain.partition(">")
    title = f"<title>Flow {flow.name}</title><style>{STYLE}</style>"
    ground = '<rect class="ground" width="100%" height="100%"/>'
    head = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"').replace(
        ' aria-labelledby="flow-title-1"', ""
    )
    return f"{head}>{title}{ground}{body}\n"
