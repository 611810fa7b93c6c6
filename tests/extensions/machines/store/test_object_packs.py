"""What is new in a private repository is sent as packs, wherever temporary files are."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from codex_multi_role.extensions.machines.store.saver import ObjectPacks
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.workspace import Snapshots, Workspace

pytestmark = pytest.mark.real
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
