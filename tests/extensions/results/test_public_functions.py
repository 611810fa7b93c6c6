"""``diff`` and ``export`` as Python functions: of a run as an object or by its id, with the same errors."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import Run, RunNotFound, UsageError, load_run
from codex_multi_role.extensions.results import diff, export
from tests.support.histories import commit_all
from tests.support.scripted_codex import codex_replaced
from tests.support.teams import WRITER, Record, TeamFolder, say

pytestmark = pytest.mark.real


def writes(text: str) -> Record:
    return say(f"wrote {text}", files=[{"path": "a.txt", "content": f"{text}\n"}])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of three turns of ``one`` in a git repository: they write 1, 2 and 3 to ``a.txt``."""
    team = TeamFolder(tmp_path_factory.mktemp("team"), {"one": WRITER}, {"one": [*map(writes, "123")]})
    commit_all(team.workspace)
    with codex_replaced():
        report = team.run(cycles=3)
    return load_run(report.run_id, runs_dir=team.runs)


def test_diff_is_the_same_for_a_run_and_its_id(recorded: Run) -> None:
    found = diff(recorded)
    assert found.run_id == recorded.run_id
    assert found.text.splitlines()[-1] == "+3"
    assert found == diff("latest", runs_dir=str(recorded.folder.parent))
    of_turns = diff(recorded, role="one")
    assert [patch.partition(b"\n")[0] for patch in of_turns.patches] == [b"one, turn 1", b"one, turn 2", b"one, turn 3"]
    assert diff(recorded, turn=2, stat=True).text.startswith("one, turn 2\n\n a.txt | 2 +-\n")


def test_export_makes_a_commit_per_turn_once(recorded: Run) -> None:
    made = export(recorded, branch="agents/one")
    shown = subprocess.run(
        ["git", "show", f"{made.tip}:a.txt"], cwd=made.repository, capture_output=True, text=True, check=True
    )
    assert (made.repository, len(made.commits), made.is_new, shown.stdout) == (
        Path(recorded.record["workspace"]),
        3,
        True,
        "3\n",
    )
    again = export("latest", branch="agents/one", repo=str(made.repository), runs_dir=recorded.folder.parent)
    assert (again.commits, again.is_new) == (made.commits, False)


def test_missing_run_and_wrong_arguments_are_of_one_family(recorded: Run, tmp_path: Path) -> None:
    wrong: Any = 7
    with pytest.raises(RunNotFound):
        diff("2026", runs_dir=tmp_path)
    with pytest.raises(UsageError, match="run must be a recorded run or its id, not 7"):
        export(wrong, branch="x")
    with pytest.raises(UsageError, match="role two changed no files"):
        diff(recorded, role="two")
    with pytest.raises(UsageError, match="is not in a git repository"):
        export(recorded, branch="x", repo=tmp_path)
