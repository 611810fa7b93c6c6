"""The private copies of the workspace in which tests run."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.extensions.measuring.workspace_copies import copy_workspace
from codex_multi_role.workspace import Workspace


def test_copy_of_fork_has_the_name_of_the_project(tmp_path: Path) -> None:
    """Paths in test output are then the same, and so is a package that the folder itself is."""
    (tmp_path / "shop.fork-1a2b").mkdir()
    assert copy_workspace(Workspace(tmp_path / "shop.fork-1a2b"), tmp_path, ()).name == "shop"
