"""Bad results of real checks, called flows and people, in runs with real Codex processes: six cells of the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.teams import Record, TeamFolder, read, say, with_flow
from tests.verdicts.table import EXIT_CODES, Cell, cells

pytestmark = [pytest.mark.usefixtures("real_codex"), pytest.mark.real]

PLAYED = (
    "command: failed | through | middle",
    "command: failed | skip | called",
    "call: ended with exit 1 | nothing | middle",
    "call: ended with exit 1 | continue | before_done",
    "review: out of time | nothing | middle",
    "review: out of time | route | called",
)
"""Their results are bad as they stand; other cells need a second try or item that is good."""


@pytest.mark.parametrize("cell", [cell for cell in cells() if cell.name in PLAYED], ids=lambda cell: cell.name)
def test_cell_of_the_table(tmp_path: Path, cell: Cell) -> None:
    roles: dict[str, Record] = {"one": {}, "boss": {"behaviors": {"can_finish": True}}}
    team = TeamFolder(tmp_path, roles, {"one": [say()] * 2, "boss": [say(status="DONE")]})
    for number, flow in enumerate(cell.flows()):
        text = json.dumps({key: value for key, value in flow.items() if key != "name"}).replace('["true"]', '["false"]')
        with_flow(team, json.loads(text), flow.get("name", "own") if number else "own")
    report = team.run(flow="own")
    assert (report.outcome, report.exit_code) == (cell.end, EXIT_CODES[cell.end]), report.reason
    if cell.end == "x_failed":
        assert report.reason.startswith(f"step x: {cell.result.reason}")
        assert read(report.folder / "run.json")["suggestion"] == "fork RUN --from x:1"
        assert not team.turns()


def test_sandboxes_of_one_workspace_do_not_fail_each_other(tmp_path: Path) -> None:
    """They make and remove the same mount points: every run had a bad item before."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    true = {"check": "command", "with": {"argv": ["true"]}}
    with_flow(team, {"steps": [{"id": "x", **true, "for_each": {"items": [*range(60)], "concurrency": 12}}]})
    assert team.run(flow="own").exit_code == 0
