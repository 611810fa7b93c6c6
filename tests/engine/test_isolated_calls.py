"""Called flows that work in copies of the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError
from tests.support.teams import ECHO, WRITER, Record, TeamFolder, read, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

NAME = "{{ (prompt | string).split('ITEM ')[1].split('.')[0] }}"
WRITE: Record = {"id": "write", "ask": "writer", "prompt": "ITEM {{ inputs.name }}."}


def calling(folder: Path, inner: Record, **more: object) -> TeamFolder:
    """A team whose flow calls one with the step ``inner`` for each of two items, of which it writes a file."""
    file = {"path": f"{NAME}.txt", "content": "written\n"}
    team = TeamFolder(folder, {"writer": WRITER}, {"writer": [{"json": {**ECHO["json"], "files": [file]}}] * 2})
    with_flow(team, {"inputs": {"name": {"type": "string"}}, "steps": [inner]}, "inner")
    call = {
        "id": "each",
        "call": "inner",
        "with": {"name": "{{ item }}"},
        "for_each": {"items": ["a", "b"], "concurrency": 2},
    }
    return with_flow(team, {"steps": [{**call, "isolate": "worktree", **more}]})


def test_called_flows_work_in_copies(tmp_path: Path) -> None:
    team = calling(tmp_path, WRITE)
    report = team.run(flow="own")
    assert report.outcome == "success", report
    assert sorted(path.name for path in team.workspace.iterdir()) == ["a.txt", "b.txt"]
    assert [event["paths"] for event in team.of_type("copy_merged")] == [["a.txt"], ["b.txt"]]
    turns = [read(path)["unit"] for path in report.folder.glob("writer*/turn_*/turn.json")]
    assert sorted(turns) == ["each.1.0/write.1", "each.1.1/write.1"]


@pytest.mark.parametrize(
    ("inner", "keys", "problem"),
    [
        ({**WRITE, "isolate": "worktree"}, {}, "isolate: the flow inner has steps in copies of their own"),
        (WRITE, {"place": "workers"}, "step each: items no longer run on other machines; many goals can"),
    ],
)
def test_calls_that_cannot_work_are_refused(tmp_path: Path, inner: Record, keys: Record, problem: str) -> None:
    team = calling(tmp_path, inner, **keys)
    with pytest.raises(DefinitionError, match=problem):
        team.run(flow="own")
    assert not team.runs.exists()
