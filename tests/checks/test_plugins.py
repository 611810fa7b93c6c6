"""The plugins that checks load into the pytest of the project, whose Python does not have this package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import codex_multi_role

pytestmark = pytest.mark.real

PLUGINS = sorted(Path(codex_multi_role.__path__[0]).rglob("plugins/codex_*.py"))
FOLDERS = {str(path.parent) for path in PLUGINS}
WARM, ITEMS = "CODEX_MULTI_ROLE_WARM", "CODEX_MULTI_ROLE_ITEMS"
VARIABLES = {WARM: "/", f"{WARM}_SLOT": "/", f"{WARM}_TARGET": "/t.py", f"{WARM}_SECONDS": "1"}
VARIABLES |= {ITEMS: "/", f"{ITEMS}_TARGET": "/t.py"}
EACH = """
import importlib, os, sys
import coverage, pytest
sys.modules["codex_multi_role"] = None
for name in sys.argv[1:]:
    if not (pid := os.fork()):
        importlib.import_module(name)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, name
"""
"""Each in a process of its own, which has what they all import."""


def test_no_plugin_needs_anything_of_this_package(tmp_path: Path) -> None:
    places = {"PYTHONPATH": ":".join(FOLDERS), "CODEX_MULTI_ROLE_MEASURING": str(tmp_path)}
    environment = {**os.environ, **VARIABLES, **places}
    command = [sys.executable, "-c", EACH, *(path.stem for path in PLUGINS)]
    subprocess.run(command, check=True, env=environment, cwd=tmp_path, timeout=60)
