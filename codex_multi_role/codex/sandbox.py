"""Running any command in Codex's own sandbox: writes inside the workspace only, no network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path


def sandboxed(codex: Path, argv: Sequence[str], writable: Path) -> list[str]:
    """``argv`` wrapped in ``codex sandbox``: besides the working folder only ``writable`` can be written.

    The temporary folders are closed, so point TMPDIR into ``writable``. Source: ``codex sandbox --help``.
    """
    settings = (
        'sandbox_mode="workspace-write"',
        f"sandbox_workspace_write.writable_roots={json.dumps([str(writable)])}",
        "sandbox_workspace_write.network_access=false",
        "sandbox_workspace_write.exclude_slash_tmp=true",
        "sandbox_workspace_write.exclude_tmpdir_env_var=true",
    )
    flags = [part for setting in settings for part in ("-c", setting)]
    return [str(codex), "sandbox", *flags, "--", *argv]
