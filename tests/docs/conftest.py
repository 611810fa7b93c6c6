"""A newcomer's environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No login, and the console command is found."""
    (home := tmp_path / "home").mkdir()
    for name in [name for name in os.environ if name.startswith(("CODEX_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
