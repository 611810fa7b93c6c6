"""Temporary folders of a check, outside the workspace."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from codex_multi_role.errors import StorageError
from codex_multi_role.workspace import Workspace


@contextmanager
def scratch_folder(workspace: Workspace) -> Iterator[Path]:
    """A folder for a command's temporary files, removed with its content. Raises StorageError.

    It is outside the workspace, wherever TMPDIR points, because it would otherwise show up in snapshots.
    """
    root, candidates = workspace.root, map(Path, (tempfile.gettempdir(), "/var/tmp", "/tmp"))
    parent = next((path for path in candidates if path.is_dir() and not path.resolve().is_relative_to(root)), None)
    try:
        scratch = tempfile.TemporaryDirectory(prefix="check-", dir=parent, ignore_cleanup_errors=True)
    except OSError as error:
        raise StorageError(f"a temporary folder cannot be created: {error.strerror}") from error
    with scratch as folder:
        yield Path(folder).resolve()
