"""Run folders with a history: real snapshots of a workspace, and the events of the turns that changed it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from codex_multi_role.history import RecordedHistory, recorded_history
from codex_multi_role.run_folder import RunEvent, RunFolder, TurnFolder
from codex_multi_role.run_folder import events as e
from codex_multi_role.workspace import Snapshots, Workspace

Files = dict[str, str | bytes | None]
"""The content of files by path; None deletes one."""


def write(root: Path, files: Files) -> None:
    for name, content in files.items():
        path = root / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@dataclass
class History:
    """A run in ``folder/runs/first`` on ``folder/workspace``, step by step."""

    folder: Path
    start: Files
    events: list[RunEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.workspace = self.folder / "workspace"
        self.workspace.mkdir()
        self.run = RunFolder.create(self.folder / "runs", "first")
        self.run.write_record({"run_id": "first", "workspace": str(self.workspace)})
        self.snapshots = Snapshots(self.run.snapshots_path, Workspace(self.workspace))
        write(self.workspace, self.start)
        self._happened(e.StepStarted("team", 1, 1, 1, self.snapshots.take()))

    def turn(self, role: str, files: Files) -> None:
        """A turn of ``role`` that changes ``files``."""
        folder = TurnFolder.create(self.run, role)
        before = self.snapshots.take()
        self._happened(e.TurnStarted(role, folder.number, 1, 1, None))
        write(self.workspace, files)
        after = self.snapshots.take()
        if before != after:
            self.snapshots.write_patch(before, after, folder.patch_path)
            folder.write_changes(before, after)
        self._happened(e.TurnEnded(role, folder.number, "completed", "completed", "", 1, 1, 0.1, ""))

    def between(self, files: Files) -> None:
        """Somebody changes ``files`` between the turns."""
        write(self.workspace, files)

    def ended(self) -> RecordedHistory:
        self._happened(e.RunEnded("succeeded", "done", "", 0, {}, str(self.run.path), workspace=self.snapshots.take()))
        return recorded_history(self.run)

    def _happened(self, event: RunEvent) -> None:
        self.events.append(event)
        lines = "".join(json.dumps(each.as_record()) + "\n" for each in self.events)
        self.run.events_path.write_text(lines)
