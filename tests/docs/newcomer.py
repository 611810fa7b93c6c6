"""A newcomer who types what a page says."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from tests.support.console import Completed, console

OURS = re.compile("codex-multi-role (?!codex )")
"""Not what becomes Codex itself."""
NEW_FOLDER = "$(mktemp -d)"


def give(command: str, folder: Path) -> Completed:
    """Give the parts of ``command`` until one fails: in this process what is ours, the rest to a shell."""
    for part in command.split(" && "):
        done = _in_this_process(part, folder) if OURS.match(part) else _in_a_shell(part, folder)
        if done.returncode:
            break
    return done


def _in_a_shell(command: str, folder: Path) -> Completed:
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=240, check=False)


def _in_this_process(command: str, folder: Path) -> Completed:
    given, _, file = command.partition(" > ")
    (temporary := folder.parent / "temporary").mkdir(exist_ok=True)
    _, *arguments = shlex.split(given.replace(NEW_FOLDER, str(temporary)))
    done = console(*arguments, folder=folder)
    if file:
        (folder / file).write_text(done.stdout)
    return done
