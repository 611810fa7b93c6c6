from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from codex_multi_role.run_folder import Owner, RunFolder
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.worktrees import Worktrees
from tests.support.console import console
from tests.support.recorded_runs import make_run
from tests.support.workspaces import commit_all, files_of, git

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


@pytest.mark.parametrize("arguments", [["gc"], ["gc", "--dry-run"]], ids=" ".join)
@pytest.mark.parametrize("kind", ["known places", "place", "path"])
def test_manifest_from_elsewhere_names_nothing_to_remove(
    kind: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its copies stay, where it says or anywhere else; git does not run, and no place becomes that of its run."""
    (project := tmp_path / "project").mkdir()
    (project / "a.txt").write_text("one\n")
    commit_all(project)
    folder, worktrees = _run_with_copies(project)
    kept = worktrees.open("duel.1.1").workspace.root
    manifest = folder.path / "worktrees/manifest.json"
    content = json.loads(manifest.read_text())
    shutil.rmtree(tmp_path / "state/codex-multi-role/owned", ignore_errors=True)
    if kind == "place":
        content["place"] = str(tmp_path / "place")
        (merged := tmp_path / "place" / content["copies"][0]["path"]).mkdir(parents=True)
        (tmp_path / "place/owner").write_text("/gone")
        assert merged.is_dir()
    elif kind == "path":
        content["copies"][0]["path"] = f"duel.1.0/copy/../../../../../../{project.name}"
    manifest.write_text(json.dumps(content))
    before, listed = files_of(tmp_path), git(project, "worktree", "list")
    with monkeypatch.context() as patch:
        patch.setattr(Git, "run", lambda *_, **__: pytest.fail("git has run"))
        done = console(*arguments, folder=project)
    said = "failed: first -: " if kind == "path" else "kept: first duel.1.0: this machine did not make it"
    assert said in done.stdout, done
    after = files_of(tmp_path)
    assert {path: after[path] for path in before if after.get(path) != before[path]}.keys() <= {
        "project/runs/first/owner.json"
    }
    assert git(project, "worktree", "list") == listed
    assert kept.is_dir()
