"""All generated files of ``docs/``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.docs.command_line import command_line, settings
from tests.docs.parts import checks, events, tools
from tests.docs.python_api import python_api
from tests.docs.shipped_flows import drawing, exhibits, shipped_flows
from tests.docs.yaml_keys import flows, goal_file, prices, roles
from tests.house import with_figures

DOCS = Path(__file__).parents[2] / "docs"
PAGES: dict[str, Callable[[], str]] = {
    "command-line": command_line,
    "settings": settings,
    "roles": roles,
    "flows": flows,
    "goal-file": goal_file,
    "prices": prices,
    "checks": checks,
    "tools": tools,
    "events": events,
    "shipped-flows": shipped_flows,
    "python-api": python_api,
}


def generated() -> dict[Path, str]:
    """The content of each generated file."""
    pages = {DOCS / "reference" / f"{name}.md": write() for name, write in PAGES.items()}
    drawings = {DOCS / "reference/flows" / f"{name}.svg": drawing(flow) for name, flow in exhibits().items()}
    contributing = DOCS.parent / "CONTRIBUTING.md"
    return {**pages, **drawings, contributing: with_figures(contributing.read_text(encoding="utf-8"))}
