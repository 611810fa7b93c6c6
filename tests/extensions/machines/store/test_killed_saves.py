"""A process is killed at any of its writes to the store: what was saved before is whole; what is new goes as packs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from codex_multi_role.extensions.machines.store.restoring import restore_run
from codex_multi_role.extensions.machines.store.saver import ObjectPacks, RunSaver
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.git import Git
from tests.support.kills import is_killed
from tests.support.run_folders import STATES, contents, make_state

pytestmark = pytest.mark.real

SAVES = """
import os, sys
from pathlib import Path
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.store import Store
from tests.support.run_folders import STATES, make_state

place = Path(sys.argv[1])
run = RunFolder(place / "run")
run.path.mkdir()
descriptor = os.open(place / "saved", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
saver = RunSaver(Store.open(str(place / "store")), run, 1)
for number in range(STATES):
    make_state(run.path, number)
    os.write(descriptor, (saver.save(lambda: {}) + "\\n").encode())
"""


def killed(place: Path, at: int) -> bool:
    """Whether the program was killed at its write ``at``; if so, all that it had saved must be whole."""
    place.mkdir()
    was_killed = is_killed(SAVES, place, at=at)
    saved = (place / "saved").read_text().split() if (place / "saved").exists() else []
    assert was_killed == (len(saved) < STATES)
    again = place / "again"
    again.mkdir()
    store = Store.open(str(place / "store"))
    for number, manifest in enumerate(saved):
        make_state(again, number)
        restore_run(store, manifest, place / "restored")
        assert contents(place / "restored") == contents(again)
        Git(place / "restored/.snapshots", place).run("fsck", "--full", "--strict")
    require_continues(store, place, saved)
    return was_killed


def require_continues(store: Store, place: Path, saved: list[str]) -> None:
    """Another attempt saves what the killed one had in its folder."""
    run = RunFolder(place / "run")
    if run.path.exists():
        latest = RunSaver(store, run, 2, saved[-1] if saved else "").save()
        restore_run(store, latest, place / "restored")
        assert contents(place / "restored") == contents(run.path)


@pytest.mark.parametrize("at", [60, 120])
def test_saved_states_are_whole_after_a_kill(at: int, tmp_path: Path) -> None:
    assert killed(tmp_path / "place", at)


OTHER_DISK = Path("/dev/shm")


def test_temporary_folder_on_another_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git moves a finished pack to its place, and cannot do so between two file systems."""
    if not OTHER_DISK.is_dir() or OTHER_DISK.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("this machine has no second file system to write to")
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/a.txt").write_text("a\n")
    Snapshots(tmp_path / "run/.snapshots", Workspace(tmp_path / "workspace")).take()
    (tmp_path / "run/.snapshots/unsent-of-a-kill").mkdir()
    with tempfile.TemporaryDirectory(dir=OTHER_DISK) as elsewhere:
        monkeypatch.setattr(tempfile, "tempdir", elsewhere)
        packs = ObjectPacks(Store.open(f"{tmp_path}/store"), tmp_path / "run", ".snapshots")
        packs.send_new()
    assert {Path(name).suffix for name in packs.files} == {".pack", ".idx"}
    assert not list((tmp_path / "run/.snapshots").glob("unsent-*"))
