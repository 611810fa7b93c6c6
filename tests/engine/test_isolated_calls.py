"""Called flows that work in copies of the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError
from tests.support.isolated_calls import calling
from tests.support.teams import Record, read

pytestmark = pytest.mark.usefixtures("scripted_codex")


def test_called_flows_work_in_copies(tmp_path: Path) -> None:
    team = calling(tmp_path, ["a", "b"])
    report = team.run(flow="own")
    assert report.outcome == "success", report
    assert sorted(path.name for path in team.workspace.iterdir()) == ["a.txt", "b.txt"]
    assert [event["paths"] for event in team.of_type("copy_merged")] == [["a.txt"], ["b.txt"]]
    turns = [read(path)["unit"] for path in report.folder.glob("writer*/turn_*/turn.json")]
    assert sorted(turns) == ["each.1.0/write.1", "each.1.1/write.1"]


NESTED: list[Record] = [{"id": "write", "ask": "writer", "isolate": "worktree"}]


@pytest.mark.parametrize(
    ("inner", "keys", "problem"),
    [
        (NESTED, {}, "isolate: the flow inner has steps in copies of their own"),
        (
            None,
            {"place": "workers"},
            "step each: items no longer run on other machines; many goals can",
        ),
    ],
)
def test_calls_that_cannot_work_are_refused(
    tmp_path: Path, inner: list[Record] | None, keys: Record, problem: str
) -> None:
    team = calling(tmp_path, ["a"], inner=inner, **keys)
    with pytest.raises(DefinitionError, match=problem):
        team.run(flow="own")
    assert not team.runs.exists()
