"""All generated files: those of ``docs/``, and the schemas, and what follows from the table of options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from codex_multi_role.extensions.setup.json_schemas import all_kinds, schema_text
from tests.docs.command_line import command_line, commands, settings
from tests.docs.option_keywords import option_keywords
from tests.docs.parts import checks, events, tools, with_bad_results
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
    pages |= {DOCS / "reference/commands" / f"{name}.md": text for name, text in commands().items()}
    drawings = {DOCS / "reference/flows" / f"{name}.svg": drawing(flow) for name, flow in exhibits().items()}
    house, keywords = DOCS / "development/house.md", DOCS.parent / "codex_multi_role/option_keywords.py"
    failing = DOCS / "how-to/when-a-step-fails.md"
    others = {
        house: with_figures(house.read_text(encoding="utf-8")),
        failing: with_bad_results(failing.read_text(encoding="utf-8")),
        keywords: option_keywords(),
    }
    schemas = {DOCS.parent / "schemas" / f"{kind}.json": schema_text(kind) for kind in all_kinds()}
    return {**pages, **drawings, **schemas, **others}
