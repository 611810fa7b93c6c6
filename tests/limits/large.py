"""Runs with more data than a playbook file holds, and the most memory that a run of its own process had."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from codex_multi_role.lifecycle.model_providers import provider_settings
from codex_multi_role.playbook import Playbook, PlaybookServer
from tests.support.teams import Record, TeamFolder

PYTHON = sys.executable
MOST_MEGABYTES = 130
"""Of a run's own process, whatever it has to do with."""


def command(code: str) -> Record:
    """A step in which the role runs this Python code."""
    return {"call": "exec_command", "arguments": {"cmd": f"'{PYTHON}' -c \"{code}\"", "yield_time_ms": 30_000}}


@contextmanager
def answering(plays: dict[str, list[Record]]) -> Iterator[tuple[str, ...]]:
    """The settings of a model that answers ``plays``, whatever their size."""
    with PlaybookServer(Playbook.model_validate({"name": "large", "roles": plays})) as server:
        yield provider_settings("playbook", "playbook", server.base_url, "playbook")


def run_alone(team: TeamFolder, *arguments: str, model: Sequence[str] = ()) -> tuple[int, float, list[Record]]:
    """A run in a process of its own: its exit code, the most megabytes it had by its last event, and its events.

    ``model``: the settings of one that answers, as of `answering`, in place of the playbook.
    """
    command = team.command("--json", *arguments)
    if model:
        begin = command.index("--playbook")
        command[begin : begin + 2] = [part for each in model for part in ("-c", each)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=team.folder, text=True, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    events, most = [], 0.0
    for line in process.stdout:
        events.append(json.loads(line))
        most = max(most, _peak_megabytes(process))
    process.communicate(timeout=60)
    return process.returncode, most, events


def _peak_megabytes(process: subprocess.Popen[str]) -> float:
    with contextlib.suppress(OSError):
        if found := re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text()):
            return int(found[1]) / 1024
    return 0.0
