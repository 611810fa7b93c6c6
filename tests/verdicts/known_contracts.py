"""The contracts that are derived for the shipped flows, the examples and the ported workflows, as text.

``python -m tests.verdicts.known_contracts`` writes them again; every line that changes is to be looked at by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from codex_multi_role.catalog import list_flows
from codex_multi_role.cli.flow_explanation import answer_rows
from codex_multi_role.lifecycle.team_loading import CheckedTeam, load_catalog, load_flow_and_called
from codex_multi_role.reading.shipped import packaged_roles
from tests.support.examples import EXAMPLES
from tests.verdicts.playing import WORKFLOWS

CALLED = re.compile(r"\bcall: ([\w-]+)")
FILE = Path(__file__).with_suffix(".txt")
ORIGINAL = Path(__file__).parents[1] / "catalog/original/config/developer_config.yaml"


def known_contracts() -> str:
    """One line per need: the team, the flow, the step, and what it must answer."""
    lines = [*_lines("shipped", packaged_roles(), [entry.source for entry in list_flows(None)])]
    teams = {f"example {path.name}": path / "roles" for path in EXAMPLES}
    teams |= {f"workflow {path.name}": path for path in sorted(WORKFLOWS.iterdir())}
    for name, folder in teams.items():
        lines += _lines(name, folder, [*folder.glob("flows/*.yaml")])
    return "\n".join([*lines, *_lines("original", ORIGINAL, [Path("cycles.yaml")])]) + "\n"


def _lines(team: str, roles: Path, flows: Sequence[Path]) -> Iterator[str]:
    """Each flow is loaded once: those that another one calls, with that one."""
    called = CALLED.findall("".join(path.read_text(encoding="utf-8") for path in flows if path.exists()))
    names, catalog = sorted({path.stem for path in flows} - {*called}), load_catalog(roles)
    found = [row for name in names for row in _rows(name, load_flow_and_called(name, catalog))]
    yield f"{team}: {', '.join(names)}{'' if found else ': nothing'}"
    yield from found


def _rows(name: str, team: CheckedTeam) -> Iterator[str]:
    for step, needed in answer_rows(team, name):
        yield f"  {name}: {step} must answer {needed}"


if __name__ == "__main__":
    FILE.write_text(known_contracts(), encoding="utf-8")
