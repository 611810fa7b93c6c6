"""The console command as a user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OWN_VARIABLES = "CODEX_MULTI_ROLE_"
DEADLINE_SECONDS = 120


def console(
    *arguments: str, folder: Path, variables: dict[str, str] | None = None, text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run ``codex-multi-role`` with ``arguments`` in ``folder``; ``text`` is its standard input."""
    return subprocess.run(
        [sys.executable, "-m", "codex_multi_role", *arguments],
        cwd=folder,
        env=environment(**(variables or {})),
        input=text,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def environment(**variables: str) -> dict[str, str]:
    """This process's variables without the command's own, plus ``variables``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OWN_VARIABLES)}
    return {**inherited, **variables}
