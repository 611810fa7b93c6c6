"""The plugins that checks load into the pytest of the project, whose Python does not have this package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codex_multi_role.checks import plugins

FOLDER = Path(plugins.__path__[0])
WARM = "CODEX_MULTI_ROLE_WARM"
VARIABLES = {WARM: "/", f"{WARM}_SLOT": "/", f"{WARM}_TARGET": "/t.py", f"{WARM}_SECONDS": "1"}
IMPORT = "import sys; sys.modules['codex_multi_role'] = None; import {}"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("codex_*.py")))
def test_plugin_needs_nothing_of_this_package(name: str, tmp_path: Path) -> None:
    places = {"PYTHONPATH": str(FOLDER), "CODEX_MULTI_ROLE_MEASURING": str(tmp_path)}
    environment = {**os.environ, **VARIABLES, **places}
    command = [sys.executable, "-c", IMPORT.format(name)]
    subprocess.run(command, check=True, env=environment, cwd=tmp_path, timeout=60)
