"""Whether the user's own Codex home can take what Codex writes there: its databases, and the conversations."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from codex_multi_role.codex.settings import user_home
from codex_multi_role.errors import CodexUnavailable

LEAST_BYTES = 4_000_000
"""What Codex makes in a new home takes 3.1 MB (measured)."""


def require_user_home(environment: Mapping[str, str]) -> None:
    """Write to the home for a moment. Raises `CodexUnavailable`.

    One that is not there, or is no folder, is Codex's to make or to complain of.
    """
    home = user_home(environment)
    if home.is_dir():
        try:
            _try_to_write(home)
        except OSError as error:
            raise CodexUnavailable(
                f"Codex's home {home} cannot be written: {error.strerror or error}",
                "Make it writable, free some space, or name another with CODEX_HOME and log in there "
                "(`codex-multi-role codex login`); a provider of your own (-c), or --playbook, needs none.",
            ) from error


def _try_to_write(folder: Path) -> None:
    """What is written has no name, or loses it at once."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        left = LEAST_BYTES
        while left > 0:
            left -= file.write(bytes(left))
