"""Two runs in one workspace are noticed, wherever their folders are."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role import run
from codex_multi_role.workspace import occupied
from tests.support.teams import Record, TeamFolder, say

pytestmark = pytest.mark.usefixtures("scripted_codex")


def test_second_run_in_a_workspace_is_warned(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    seen: list[bool] = []

    def look(record: Record) -> None:
        team.events.append(record)
        if record["type"] == "turn_started":
            with occupied(team.workspace) as others:
                seen.append(others)

    run(team.options(), look)
    assert seen == [True]
    assert team.of_type("warning") == []
    with occupied(team.workspace):
        team.run(runs_dir=tmp_path / "elsewhere")
    [warning] = team.of_type("warning")
    assert f"another run is working in {team.workspace}" in warning["message"]


def test_whoever_came_first_may_leave_first(tmp_path: Path) -> None:
    with occupied(tmp_path) as second_of_others, occupied(tmp_path / "elsewhere") as missing:
        assert (second_of_others, missing) == (False, False)
    first, second = occupied(tmp_path), occupied(tmp_path)
    assert not first.__enter__()
    assert second.__enter__()
    first.__exit__(None, None, None)
    with occupied(tmp_path) as shared:
        assert shared
    second.__exit__(None, None, None)
    with occupied(tmp_path) as shared:
        assert not shared
