"""Any command in Codex's own sandbox: writes only inside the workspace, no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codex_multi_role.codex.permissions import WriteAccess, profile


def sandboxed(
    codex: Path, argv: Sequence[str], writable: Path, read_only: Sequence[Path] = (), workspace: Path | None = None
) -> list[str]:
    """Wrap ``argv`` in ``codex sandbox``: only the working folder and ``writable`` can be written.

    ``read_only`` cannot be written even inside them, nor moved aside in ``workspace``. The temporary folders are not
    writable, so point TMPDIR into ``writable``. Source: ``codex sandbox --help``.
    """
    access = WriteAccess((str(writable),), exclude_tmpdir_env_var=True, exclude_slash_tmp=True)
    flags = [part for setting in profile(access, read_only, workspace) for part in ("-c", setting)]
    return [str(codex), "sandbox", *flags, "--", *argv]
