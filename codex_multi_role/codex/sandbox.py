"""Running any command in Codex's own sandbox: writes inside the workspace only, no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codex_multi_role.codex.permissions import WriteAccess, profile


def sandboxed(
    codex: Path, argv: Sequence[str], writable: Path, read_only: Sequence[Path] = (), workspace: Path | None = None
) -> list[str]:
    """``argv`` wrapped in ``codex sandbox``: besides the working folder only ``writable`` can be written.

    ``read_only`` cannot, even within them, nor can it be moved aside in ``workspace``. The temporary folders are
    closed, so point TMPDIR into ``writable``.
    Source: ``codex sandbox --help``.
    """
    access = WriteAccess((str(writable),), exclude_tmpdir_env_var=True, exclude_slash_tmp=True)
    flags = [part for setting in profile(access, read_only, workspace) for part in ("-c", setting)]
    return [str(codex), "sandbox", *flags, "--", *argv]
