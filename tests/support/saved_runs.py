"""Runs that are saved in a store, killed, and continued in other folders as another machine would."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from codex_multi_role import RunReport
from codex_multi_role.extensions.machines.store import RunSaver, SavedState, Store, fill_workspace, restore_run
from codex_multi_role.lifecycle import running
from codex_multi_role.lifecycle.placement import Placement
from codex_multi_role.option_keywords import ResumeKeywords
from codex_multi_role.run_folder import RunFolder
from tests.support.preloaded import started
from tests.support.teams import Record, TeamFolder, with_traceback

RUN_ID = "saved"
PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from codex_multi_role import RunOptions
from codex_multi_role.lifecycle import running
from codex_multi_role.lifecycle.placement import Placement
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.extensions.machines.store import RunSaver, Store

record, store, last = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
options = RunOptions.from_record(record)
saver = RunSaver(Store.open(store), RunFolder(options.place.runs_dir / options.place.run_id), 1)
saves = 0

def save(take_trees):
    global saves
    saves += 1
    if saves > last:
        os.kill(os.getpid(), signal.SIGKILL)
    print(saver.save(take_trees), flush=True)

running.run(options, placement=Placement(save=save))
print(saver.save(), flush=True)
"""


@dataclass(frozen=True)
class Machines:
    """A team that starts on one machine, the folder ``team.folder``, and continues on another."""

    team: TeamFolder
    other: Path
    address: str = ""

    @property
    def store(self) -> str:
        return self.address or str(self.other.parent / "store")

    @property
    def database_url(self) -> str:
        return f"sqlite:///{self.other.parent}/shared.sqlite"

    def start(self, last: int, **options: Any) -> list[str]:
        """Run until the process is killed when it has saved ``last`` times; returns the manifests.

        That is just before the next save.
        """
        given = self.team.options(run_id=RUN_ID, database_url=self.database_url, **options)
        argv = [sys.executable, "-c", PROGRAM, json.dumps(given.as_record()), self.store, str(last)]
        process = started(argv, cwd=self.team.folder, stdout=subprocess.PIPE)
        printed, _ = process.communicate(timeout=120)
        assert process.returncode in (0, -signal.SIGKILL)
        return printed.split()

    def lose(self) -> None:
        """The first machine is gone with all its files."""
        self.team.folder.rename(self.other.parent / "lost")

    def restore(self, manifest: str, make_workspace: Callable[[Path], object] = Path.mkdir) -> SavedState:
        """Bring the run and its workspace to the other machine."""
        folder, workspace = RunFolder(self.other / "elsewhere" / RUN_ID), self.other / "files"
        shutil.rmtree(workspace, ignore_errors=True)
        workspace.parent.mkdir(parents=True, exist_ok=True)
        make_workspace(workspace)
        state = restore_run(Store.open(self.store), manifest, folder.path)
        fill_workspace(state, folder, workspace)
        return state

    def resume(
        self, manifest: str, on_event: Callable[[Record], None] | None = None, **changes: Unpack[ResumeKeywords]
    ) -> RunReport:
        """Continue on the other machine as the second attempt, and save there."""
        folder = RunFolder(self.other / "elsewhere" / RUN_ID)
        saver = RunSaver(Store.open(self.store), folder, 2, manifest)
        report = running.resume(
            RUN_ID,
            runs_dir=folder.path.parent,
            changes={"workspace": self.other / "files", **changes},
            on_event=on_event,
            placement=Placement(save=saver.save),
        )
        return with_traceback(report)
