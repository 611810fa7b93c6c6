"""The command line in this process, and what it leaves: on the screen, in the run folder."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from codex_multi_role.cli.main import main
from codex_multi_role.run_folder.folder import PROGRAM
from tests.support.leftovers import processes_of
from tests.support.teams import Record, read


@dataclass(frozen=True)
class Seen:
    """What a command said, and the newest run as it left it."""

    exit_code: int
    text: str
    run: Path

    @property
    def record(self) -> Record:
        found: Record = read(self.run / "run.json")
        return found

    @property
    def turns(self) -> list[Record]:
        """The ``turn.json`` of every turn, in order."""
        return [read(path) for path in sorted(self.run.glob("*/turn_*/turn.json"))]

    def events(self, kind: str) -> list[Record]:
        told = [json.loads(line) for line in (self.run / "events.jsonl").read_text().splitlines()]
        return [event for event in told if event["type"] == kind]

    def line(self, name: str) -> str:
        """What the summary says under this name."""
        (found,) = [line for line in self.text.splitlines() if line.startswith(f"  {name} ")]
        return found.removeprefix(f"  {name}").strip()

    @property
    def next_command(self) -> list[str]:
        """The arguments of the command that the screen says to give next."""
        program, *arguments = shlex.split(self.line("next"))
        assert program == PROGRAM
        return arguments


class Screen:
    """Commands given one after the other in ``folder``."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._patch = patch
        self._capture = capture
        patch.chdir(folder)

    def give(self, *arguments: str) -> Seen:
        self._patch.setattr("sys.argv", [PROGRAM, *arguments])
        code = main()
        return Seen(code, self._capture.readouterr().err, (self._folder / "runs/latest").resolve())

    def left_running(self) -> list[str]:
        """The processes that work in the folder, or know of it, but this one."""
        return [str(process) for process in processes_of(self._folder) if process.pid != os.getpid()]
