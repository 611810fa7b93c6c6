"""The contracts that are derived for the shipped flows, the examples and the ported workflows, as text.

``python -m tests.verdicts.known_contracts`` writes them again; every line that changes is to be looked at by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog, list_flows
from codex_multi_role.cli.flow_explanation import answer_rows
from codex_multi_role.lifecycle.team_loading import load_catalog, load_flow_and_called
from codex_multi_role.reading.shipped import packaged_roles
from tests.support.examples import EXAMPLES
from tests.verdicts.workflows import FOLDER

FILE = Path(__file__).with_suffix(".txt")
ORIGINAL = Path(__file__).parents[1] / "catalog/original/config/developer_config.yaml"


def known_contracts() -> str:
    """One line per need: the team, the flow, the step, and what it must answer."""
    workflows = [path for path in sorted(FOLDER.iterdir()) if path.is_dir()]
    teams = {f"example {path.name}": path / "roles" for path in EXAMPLES}
    teams |= {f"workflow {path.name}": path for path in workflows}
    own = {name: sorted(path.stem for path in folder.glob("flows/*.yaml")) for name, folder in teams.items()}
    lines = [*_lines("shipped", packaged_roles(), [entry.name for entry in list_flows(None)])]
    lines += [line for name, folder in teams.items() for line in _lines(name, folder, own[name])]
    return "\n".join([*lines, *_lines("original", ORIGINAL, ["cycles"])]) + "\n"


def _lines(team: str, roles: Path, flows: list[str]) -> Iterator[str]:
    catalog = load_catalog(roles)
    found = [row for name in flows for row in _rows(name, *load_flow_and_called(name, catalog))]
    yield f"{team}: {', '.join(flows)}{'' if found else ': nothing'}"
    yield from found


def _rows(name: str, flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog) -> Iterator[str]:
    for step, needed in answer_rows(flows, name, catalog):
        yield f"  {name}: {step} must answer {needed}"


if __name__ == "__main__":
    FILE.write_text(known_contracts(), encoding="utf-8")
