from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace with a run folder in it, and something outside that nobody may touch."""
    root = tmp_path / "work"
    (root / "runs" / "r1").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("precious")
    return Workspace(root, (root / "runs",))
