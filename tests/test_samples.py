"""Every system and command that starts a process has one real test that the gate runs on every Python.

A system is an extension without commands.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.support.console import offered_commands

TOP = Path(__file__).parents[1]
SAMPLE = re.compile(r"^@pytest\.mark\.sample(\(.*\))$", re.MULTILINE)
PURE = {"apply", "config", "diff", "export", "init", "reject", "runs", "schema", "show", "trust"}
"""Commands that start no process except git: the pure tests of the command line try them on every Python."""
ELSEWHERE = {"demo"}
"""`tests/test_installation.py` tries it, which the gate does once."""


def test_every_system_and_command_has_one_sample() -> None:
    marks = [mark for path in (TOP / "tests").rglob("test_*.py") for mark in SAMPLE.findall(path.read_text())]
    names = [name for mark in marks for name in ast.literal_eval(f"{mark[:-1]},)")]
    folders = (path.parent for path in (TOP / "codex_multi_role/extensions").glob("*/__init__.py"))
    systems = [folder.name for folder in folders if not (folder / "extension.py").exists()]
    assert sorted(names) == sorted({*offered_commands(), *systems} - PURE - ELSEWHERE)
