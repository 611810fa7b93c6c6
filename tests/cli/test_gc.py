from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.run_folder import Owner, RunFolder
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.worktrees import Worktrees
from tests.support.console import console
from tests.support.recorded_runs import make_run

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def _run_with_copies(project: Path, run_id: str = "first") -> tuple[RunFolder, Worktrees]:
    """A run with a merged copy ``duel.1.0`` and one that nobody wanted, ``duel.1.1``."""
    folder = make_run(project / "runs", run_id)
    workspace = Workspace(project, (project / "runs",))
    worktrees = Worktrees(folder.path / "worktrees", workspace, Snapshots(folder.snapshots_path, workspace), run_id)
    for key in ("duel.1.0", "duel.1.1"):
        (worktrees.create(key).workspace.root / f"{run_id}.{key}.txt").write_text("work\n")
    worktrees.merge("duel.1.0")
    worktrees.keep("duel.1.1")
    return folder, worktrees


def test_without_runs_or_copies_there_is_nothing_to_do(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first")
    for folder in (tmp_path, tmp_path / "runs"):
        done = console("gc", folder=folder)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == "There are no workspace copies in runs.\n"


def test_each_copy_has_its_line(tmp_path: Path) -> None:
    folder, worktrees = _run_with_copies(tmp_path)
    _run_with_copies(tmp_path, "second")
    merged, kept = (worktrees.open(key).workspace.root for key in ("duel.1.0", "duel.1.1"))
    told = console("gc", "--dry-run", folder=tmp_path).stdout.splitlines()
    assert [line.split(" (")[0] for line in told] == [
        "would remove: first duel.1.0: merged",
        "kept: first duel.1.1: not merged: another copy was chosen",
        "would remove: second duel.1.0: merged",
        "kept: second duel.1.1: not merged: another copy was chosen",
    ]
    assert merged.is_dir()
    done = console("gc", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == f"removed: first duel.1.0: merged ({merged})"
    assert (merged.exists(), kept.is_dir()) == (False, True)
    assert folder.owner_path.read_text() == ""
    assert console("gc", folder=tmp_path).stdout.count("\n") == 2


def test_live_runs_copies_stay(tmp_path: Path) -> None:
    folder, worktrees = _run_with_copies(tmp_path)
    owner = Owner(folder.owner_path)
    owner.acquire()
    for arguments in (["gc"], ["gc", "--dry-run"]):
        told = console(*arguments, folder=tmp_path).stdout.splitlines()
        assert {line.split(": ")[2].split(" (")[0] for line in told} == {"its run is being worked on"}
    owner.release()
    assert worktrees.open("duel.1.0").workspace.root.is_dir()


def test_one_bad_manifest_does_not_hide_the_others(tmp_path: Path) -> None:
    _run_with_copies(tmp_path, "bad")[0].path.joinpath("worktrees", "manifest.json").write_text("{")
    _run_with_copies(tmp_path, "good")
    done = console("gc", folder=tmp_path)
    assert done.returncode == 3
    assert "failed: bad -: " in done.stdout
    assert "removed: good duel.1.0" in done.stdout
    assert "error: 1 could not be checked or removed" in done.stderr
