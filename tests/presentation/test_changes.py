"""What changed between two points of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

import codex_multi_role.run_folder.events as e
from codex_multi_role.errors import UsageError
from codex_multi_role.presentation.recorded import changes_of
from codex_multi_role.workspace.differences import FileChange
from tests.support.histories import Files, History
from tests.support.recorded_runs import make_run


def asked_twice(folder: Path) -> History:
    """Turns, each followed by the review ``look``, and a last one."""
    made = History(folder, {"a.txt": "one\ntwo\n", "b.txt": "b\n" * 5, ".gitignore": "!runs\n"}, inside=True)
    changed: list[Files] = [{"a.txt": "one\n2\n"}, {"new é.txt": "new\n", "b.txt": None}]
    for visit, files in enumerate(changed, start=1):
        made.turn("writer", files)
        made.happened(e.StepStarted("look", visit, visit, visit + 1, made.snapshots.take()))
        made.happened(e.ReviewAsked(f"look.{visit}", "Ship it?"))
    made.turn("writer", {"c.txt": "b\n" * 5})
    made.ended()
    return made


def test_changes_between_points_of_a_run(tmp_path: Path) -> None:
    run = asked_twice(tmp_path).run
    first, second = FileChange("a.txt", "modified", 1, 1), FileChange("new é.txt", "added", 1, 0)
    gone = FileChange("b.txt", "deleted", 0, 5)
    assert changes_of(run, until="look.1").files == changes_of(run, until="look:1").files == (first,)
    assert changes_of(run, since="look.1", until="look.2").files == (gone, second)
    assert b"+new\n" in changes_of(run, "look.1", "look.2").patch("new é.txt")
    moved = FileChange("c.txt", "renamed", 0, 0, "b.txt")
    assert changes_of(run).files == (first, moved, second)  # without the folder of the runs
    with pytest.raises(UsageError, match=r"no state of the workspace at look\.3 or now"):
        changes_of(run, since="look.3")


def test_run_without_states_has_no_points(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="recorded no state of the workspace"):
        changes_of(make_run(tmp_path, "first"))
