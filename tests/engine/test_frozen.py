"""Processes that freeze themselves, deaf to SIGTERM: the run ends, says why, and leaves none of them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil
import pytest

from tests.support.leftovers import processes_of
from tests.support.processes import FREE
from tests.support.teams import TeamFolder, say

pytestmark = pytest.mark.real

FREEZE = "trap '' TERM; kill -STOP $$"


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codex_multi_role.host.processes.GRACE_SECONDS", 0.3)


@pytest.mark.parametrize(
    ("role", "command"),
    [
        ({}, FREEZE),
        (FREE, f'setsid -f sh -c "{FREEZE.replace("$", chr(92) + "$")}"'),
    ],
)
def test_tool_command_that_freezes_does_not_outlive_the_run(
    tmp_path: Path, role: dict[str, object], command: str
) -> None:
    call = {"call": "exec_command", "arguments": {"cmd": command, "yield_time_ms": 250}}
    team = TeamFolder(tmp_path, {"one": role}, {"one": [{"steps": [call, say()]}]})
    assert team.run().outcome == "cycles_used_up"
    assert commands_of(tmp_path) == []


def commands_of(folder: Path) -> list[str]:
    found = []
    for process in processes_of(folder):
        with contextlib.suppress(psutil.Error):
            found.append(" ".join(process.cmdline()))
    return found
