"""Commands of a copy or of an environment, one after another in one process."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.console import completed

SECONDS = 60.0
COMMANDS = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.cli.main import group

ends = []
for command in sys.argv[1:]:
    with redirect_stdout(StringIO()) as stdout, redirect_stderr(StringIO()) as stderr:
        code = run_guarded(group, command.split())
    ends.append((code, stdout.getvalue(), stderr.getvalue()))
print(json.dumps(ends))
"""
Ends = list[tuple[int, str, str]]


def run_commands(
    workspace: Path, *commands: str, env: Mapping[str, str], python: str = sys.executable, before: str = ""
) -> Ends:
    """The exit code, stdout and stderr of each. ``before``: a program that runs in the process first."""
    done = completed([python, "-c", before + COMMANDS, *commands], workspace, env, seconds=SECONDS)
    assert done.returncode == 0, done
    return [(code, stdout, stderr) for code, stdout, stderr in json.loads(done.stdout)]
