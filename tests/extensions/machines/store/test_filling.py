"""A workspace at another place gets exactly the files, modes and links that the saved one had."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.extensions.machines.store.restoring import fill_workspace, restore_run
from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.extensions.machines.store.workspace_sources import bundle_workspace, make_workspace
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace import Snapshots, Workspace
from tests.support.workspaces import Link, commit_all, contents, write_files


def test_clone_becomes_what_the_workspace_was(tmp_path: Path) -> None:
    store, workspace = Store.open(f"{tmp_path}/store"), tmp_path / "workspace"
    names = ("deleted.txt", "sub/changed.txt", "was_folder/x", "script.sh", "tracked.log")
    write_files(workspace, dict.fromkeys(names, "committed\r\n"))
    commit_all(workspace)
    write_files(workspace, {".gitignore": "*.log\n", ".gitattributes": "*.txt text eol=lf\n"})
    commit_all(workspace)
    source = bundle_workspace(store, workspace).source
    (workspace / "deleted.txt").unlink()
    (workspace / "sub/changed.txt").write_bytes(b"other\r\n\0")
    (workspace / "was_folder/x").unlink()
    (workspace / "was_folder").rmdir()
    (workspace / "was_folder").write_text("now a file\n")
    (workspace / "script.sh").chmod(0o755)
    write_files(workspace, {"new/link": Link("../script.sh"), "written.log": "ignored, but written by a role"})
    (workspace / "tracked.log").write_text("changed by a role")
    run = RunFolder(tmp_path / "runs/one")
    run.path.mkdir(parents=True)
    snapshots = Snapshots(run.snapshots_path, Workspace.of_run(workspace, run.path))
    saved = RunSaver(store, run, 1).save(lambda: {"": snapshots.take(force=["written.log", "tracked.log"])})
    expected = contents(workspace)

    elsewhere = RunFolder(tmp_path / "other/one")
    made = make_workspace(source, store, tmp_path / "made")
    (made / "local.log").write_text("ignored here")
    fill_workspace(restore_run(store, saved, elsewhere.path), elsewhere, made)
    assert contents(made) == expected | {"local.log": ("file", b"ignored here")}
    again = Snapshots(elsewhere.snapshots_path, Workspace.of_run(made, elsewhere.path))
    assert again.take() == snapshots.take()
    (made / "script.sh").unlink()
    (made / "left.txt").write_text("by a turn that was cut short")
    fill_workspace(restore_run(store, saved, elsewhere.path), elsewhere, made)
    assert contents(made) == expected | {"local.log": ("file", b"ignored here")}
