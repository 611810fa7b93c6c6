"""A newcomer who types what a page says."""

from __future__ import annotations

import re
import shlex
import subprocess
from functools import partial
from pathlib import Path

from tests.support.console import Completed, console, console_process

OURS = re.compile("codex-multi-role (?!codex )")
"""Not what becomes Codex itself."""
NEW_FOLDER = "$(mktemp -d)"


def give(command: str, folder: Path, exported: dict[str, str] | None = None) -> Completed:
    """Give the parts of ``command`` until one fails: in this process what is ours, the rest to a shell.

    With ``exported``, ours get these variables, and a process of their own, which closes its connections.
    """
    for part in command.split(" && "):
        done = _ours(part, folder, exported) if OURS.match(part) else _in_a_shell(part, folder)
        if done.returncode:
            break
    return done


def _in_a_shell(command: str, folder: Path) -> Completed:
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=240, check=False)


def _ours(command: str, folder: Path, exported: dict[str, str] | None) -> Completed:
    given, _, file = command.partition(" > ")
    (temporary := folder.parent / "temporary").mkdir(exist_ok=True)
    _, *arguments = shlex.split(given.replace(NEW_FOLDER, str(temporary)))
    run = console if exported is None else partial(console_process, variables=exported)
    done = run(*arguments, folder=folder)
    if file:
        (folder / file).write_text(done.stdout)
    return done
